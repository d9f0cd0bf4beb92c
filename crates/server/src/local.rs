//! The same requests without a socket, for whoever has the store in the same process.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    http::{self, Method, Request, StatusCode, header},
};
use orchestrix_store::Store;
use tower::ServiceExt;

use crate::{App, Auth, ServerOptions, router};

/// A server that is asked by calls.
pub struct Local(Router);

impl Local {
    /// A server of this store that is asked in this name. What it has in the background ends with it.
    pub fn new(store: Arc<dyn Store>, name: impl Into<String>) -> Self {
        let options = ServerOptions { auth: Auth::Own(name.into()), ..ServerOptions::default() };
        Self(router(App::new(store, options)))
    }

    /// Answers one request: `path` with its question mark and all that follows, and a body of JSON if there is one.
    ///
    /// # Errors
    /// If the path is none.
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
        // Nothing can come between: the body is in this process.
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        Ok((status, body))
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn requests_are_answered_as_over_a_socket() {
        let local = Local::new(Arc::new(MemoryStore::new()), "test");
        let (status, body) =
            local.call(Method::POST, "/jobs", Some(r#"{"jobType": "t", "queue": "q"}"#.into())).await.unwrap();
        assert_eq!(status, StatusCode::ACCEPTED, "{body:?}");
        let (status, body) = local.call(Method::GET, "/admin/jobs?queue=q&state=pending%2Cdead", None).await.unwrap();
        let list: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &list["items"][0]["state"]), (StatusCode::OK, &"pending".into()), "{list}");
        let (status, body) = local.call(Method::GET, "/admin/jobs/nonsense", None).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &"job_not_found".into()));
        assert!(local.call(Method::GET, "not a path", None).await.is_err());
    }
}
