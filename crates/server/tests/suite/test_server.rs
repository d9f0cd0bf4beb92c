//! A server with API keys that is called without a socket.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode, header},
};
use orchestrix_core::{JobState, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_server::{App, Auth, InProcessApi, Metrics, ServerOptions, router};
use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport, Store};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A server with API keys, its store, and a local caller with all permissions.
pub(crate) struct TestServer {
    pub(crate) store: Arc<dyn Store>,
    router: Router,
    pub(crate) local: InProcessApi,
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::with_store(Arc::new(MemoryStore::new()))
    }

    pub(crate) fn with_store(store: Arc<dyn Store>) -> Self {
        let metrics = Some(Metrics::new(|| "some 1\n".into()));
        let options = ServerOptions { auth: Auth::Keys, metrics, ..ServerOptions::default() };
        let router = router(App::new(Arc::clone(&store), options));
        let local = InProcessApi::new(Arc::clone(&store), "local:test");
        Self { store, router, local }
    }

    /// Creates an API key.
    pub(crate) async fn create_key(&self, role: &str, tenant: Option<&str>) -> String {
        let body = json!({"name": "n", "role": role, "tenant": tenant}).to_string();
        let (status, body) = self.local.call("POST".parse().unwrap(), "/admin/keys", Some(body)).await.unwrap();
        assert_eq!(status, StatusCode::CREATED);
        let created: Value = serde_json::from_slice(&body).unwrap();
        created["key"].as_str().unwrap().to_owned()
    }

    /// Sends a request such as `GET /jobs`, with an API key.
    pub(crate) async fn request(&self, request: &str, key: Option<&str>, body: &Value) -> (StatusCode, Value) {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers = bearer.as_deref().map(|bearer| (header::AUTHORIZATION.as_str(), bearer));
        self.request_with_headers(request, headers.as_slice(), body).await
    }

    /// Sends a request with these headers.
    pub(crate) async fn request_with_headers(
        &self,
        request: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (StatusCode, Value) {
        let (method, path) = request.split_once(' ').unwrap();
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let body = if matches!(method, "POST" | "PUT" | "DELETE") { body.to_string() } else { String::new() };
        let request =
            request.header(header::CONTENT_TYPE, "application/json").header(header::CONTENT_LENGTH, body.len());
        let response = self.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
        }
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The paths of all routes. axum exposes them in the debug output of the router only.
    pub(crate) fn paths(&self) -> Vec<String> {
        let debug = format!("{:?}", self.router);
        let (routes, _) = debug.split_once("fallback_router").expect("the debug output ends with the fallback router");
        let paths = routes.split('"').skip(1).step_by(2).filter(|text| text.starts_with('/'));
        paths.map(str::to_owned).collect()
    }

    /// Sends a request as the local caller and expects success.
    pub(crate) async fn call(&self, request: &str, body: Value) -> Value {
        let (method, path) = request.split_once(' ').unwrap();
        let (status, body) = self.local.call(method.parse().unwrap(), path, Some(body.to_string())).await.unwrap();
        assert!(status.is_success(), "{request}: {status}");
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// Enqueues a job of this tenant.
    pub(crate) async fn enqueue_job(&self, tenant: &str) -> String {
        let body = json!({"jobType": "t", "tenant": tenant, "queue": tenant, "maxAttempts": 1}).to_string();
        let (_, body) = self.local.call("POST".parse().unwrap(), "/jobs", Some(body)).await.unwrap();
        let created: Value = serde_json::from_slice(&body).unwrap();
        created["jobId"].as_str().unwrap().to_owned()
    }

    /// Enqueues a job of this tenant and lets it die.
    pub(crate) async fn enqueue_dead_job(&self, tenant: &str) -> String {
        let id = self.enqueue_job(tenant).await;
        let claimed = self.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1_000)).await.unwrap();
        for job in claimed {
            let outcome = match job.id().to_string() == id {
                true => Outcome::Fail { error: "e".into(), retryable: false, retry_after: None },
                false => Outcome::Release,
            };
            self.store.finish_attempts(vec![OutcomeReport { token: job.token, outcome }]).await.unwrap();
        }
        assert_eq!(self.job_state(&id).await, JobState::Dead);
        id
    }

    pub(crate) async fn job_state(&self, id: &str) -> JobState {
        self.store.job_summary(id.parse().unwrap()).await.unwrap().unwrap().state
    }

    /// Creates an hourly schedule.
    pub(crate) async fn create_schedule(&self, name: &str, tenant: &str) {
        let body = json!({"everySeconds": 3600, "job": {"jobType": "t", "tenant": tenant}}).to_string();
        let path = format!("/schedules/{name}");
        let (status, _) = self.local.call("PUT".parse().unwrap(), &path, Some(body)).await.unwrap();
        assert_eq!(status, StatusCode::CREATED);
    }
}
