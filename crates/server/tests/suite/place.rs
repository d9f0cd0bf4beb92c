//! A server with keys and whatever is asked of it, without a socket.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode, header},
};
use orchestrix_core::{JobState, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_server::{App, Auth, Local, Metrics, ServerOptions, router};
use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport, Store};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A server with keys, its store, and whoever may do anything with it.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    server: Router,
    pub(crate) local: Local,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(MemoryStore::new()))
    }

    /// The same on this store.
    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        let metrics = Some(Metrics::new(|| "some 1\n".into()));
        let options = ServerOptions { auth: Auth::Keys, metrics, ..ServerOptions::default() };
        let server = router(App::new(Arc::clone(&store), options));
        let local = Local::new(Arc::clone(&store), "local:test");
        Self { store, server, local }
    }

    pub(crate) async fn key(&self, role: &str, tenant: Option<&str>) -> String {
        let body = json!({"name": "n", "role": role, "tenant": tenant}).to_string();
        let (status, body) = self.local.call("POST".parse().unwrap(), "/admin/keys", Some(body)).await.unwrap();
        assert_eq!(status, StatusCode::CREATED);
        let made: Value = serde_json::from_slice(&body).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn ask(&self, what: &str, key: Option<&str>, body: &Value) -> (StatusCode, Value) {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers = bearer.as_deref().map(|bearer| (header::AUTHORIZATION.as_str(), bearer));
        self.send(what, headers.as_slice(), body).await
    }

    /// Asks with these headers.
    pub(crate) async fn send(&self, what: &str, headers: &[(&str, &str)], body: &Value) -> (StatusCode, Value) {
        let (method, path) = what.split_once(' ').unwrap();
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let body = if matches!(method, "POST" | "PUT" | "DELETE") { body.to_string() } else { String::new() };
        let request =
            request.header(header::CONTENT_TYPE, "application/json").header(header::CONTENT_LENGTH, body.len());
        let response = self.server.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
        }
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The paths of all routes that the server has. Only the router knows them, and only tells them to those who look for faults.
    pub(crate) fn paths(&self) -> Vec<String> {
        let told = format!("{:?}", self.server);
        let (told, _) = told.split_once("fallback_router").expect("what is not found has a router of its own");
        let paths = told.split('"').skip(1).step_by(2).filter(|text| text.starts_with('/'));
        paths.map(str::to_owned).collect()
    }

    /// Has whoever may do anything ask, who gets what they ask for.
    pub(crate) async fn call(&self, what: &str, body: Value) -> Value {
        let (method, path) = what.split_once(' ').unwrap();
        let (status, body) = self.local.call(method.parse().unwrap(), path, Some(body.to_string())).await.unwrap();
        assert!(status.is_success(), "{what}: {status}");
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// A job of this tenant.
    pub(crate) async fn job(&self, tenant: &str) -> String {
        let body = json!({"jobType": "t", "tenant": tenant, "queue": tenant, "maxAttempts": 1}).to_string();
        let (_, body) = self.local.call("POST".parse().unwrap(), "/jobs", Some(body)).await.unwrap();
        let made: Value = serde_json::from_slice(&body).unwrap();
        made["jobId"].as_str().unwrap().to_owned()
    }

    /// One that has failed for good.
    pub(crate) async fn dead_job(&self, tenant: &str) -> String {
        let id = self.job(tenant).await;
        let claimed = self.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1_000)).await.unwrap();
        for job in claimed {
            let outcome = match job.id().to_string() == id {
                true => Outcome::Fail { error: "e".into(), retryable: false, retry_after: None },
                false => Outcome::Release,
            };
            self.store.finish_attempts(vec![OutcomeReport { token: job.token, outcome }]).await.unwrap();
        }
        assert_eq!(self.state(&id).await, JobState::Dead);
        id
    }

    pub(crate) async fn state(&self, id: &str) -> JobState {
        self.store.job_summary(id.parse().unwrap()).await.unwrap().unwrap().state
    }

    pub(crate) async fn schedule(&self, name: &str, tenant: &str) {
        let body = json!({"everySeconds": 3600, "job": {"jobType": "t", "tenant": tenant}}).to_string();
        let path = format!("/schedules/{name}");
        let (status, _) = self.local.call("PUT".parse().unwrap(), &path, Some(body)).await.unwrap();
        assert_eq!(status, StatusCode::CREATED);
    }
}
