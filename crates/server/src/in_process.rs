//! The HTTP API called within the process, without a socket. The CLI uses it when it has direct access to the database.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    http::{self, Method, Request, StatusCode, header},
};
use orchestrix_store::Store;
use tower::ServiceExt;

use crate::{App, Auth, ServerOptions, router};

/// The HTTP API as an object. Its caller is trusted: it is an admin, under a given name.
pub struct InProcessApi(Router);

impl InProcessApi {
    /// Serves this store. Audit entries carry `name` as the actor. Background tasks end when the value is dropped.
    pub fn new(store: Arc<dyn Store>, name: impl Into<String>) -> Self {
        let options = ServerOptions { auth: Auth::InProcess(name.into()), ..ServerOptions::default() };
        Self(router(App::new(store, options)))
    }

    /// Handles one request. `path` may include a query string; `body` is JSON.
    ///
    /// # Errors
    /// If `path` is not a valid path.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<(StatusCode, Bytes), http::Error> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(body) = &body {
            request =
                request.header(header::CONTENT_TYPE, "application/json").header(header::CONTENT_LENGTH, body.len());
        }
        let request = request.body(body.map_or_else(Body::empty, Body::from))?;
        let response = match self.0.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        // The body is in memory, so reading it cannot fail.
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        Ok((status, body))
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn requests_are_handled_as_over_a_socket() {
        let api = InProcessApi::new(Arc::new(MemoryStore::new()), "test");
        let (status, body) =
            api.call(Method::POST, "/jobs", Some(r#"{"jobType": "t", "queue": "q"}"#.into())).await.unwrap();
        assert_eq!(status, StatusCode::ACCEPTED, "{body:?}");
        let (status, body) = api.call(Method::GET, "/admin/jobs?queue=q&state=pending%2Cdead", None).await.unwrap();
        let list: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &list["items"][0]["state"]), (StatusCode::OK, &"pending".into()), "{list}");
        let (status, body) = api.call(Method::GET, "/admin/jobs/nonsense", None).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &"job_not_found".into()));
        assert!(api.call(Method::GET, "not a path", None).await.is_err());
    }
}
