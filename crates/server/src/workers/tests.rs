//! Who writes down what a worker says of itself, when it says several things at once.

use std::{pin::pin, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode, header},
};
use futures_util::poll;
use orchestrix_store::{MemoryStore, PageRequest, Queues, Store};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{App, Auth, ServerOptions, router};

async fn post(server: &Router, path: &str, body: &Value) -> Response<Body> {
    let body = body.to_string();
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_LENGTH, body.len())
        .body(Body::from(body));
    server.clone().oneshot(request.unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_first_heartbeat_beside_a_first_request_for_jobs_writes_over_nothing() {
    for heartbeat_first in [true, false] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let options = ServerOptions { auth: Auth::Own("test".into()), ..ServerOptions::default() };
        let app = App::new(Arc::clone(&store), options);
        let server = router(Arc::clone(&app));
        let beat = json!({"workerId": "w", "leaseTokens": [], "freeSlots": 3});
        let ask = json!({"workerId": "w", "queues": ["q"], "jobTypes": ["t"], "max": 3, "waitSeconds": 0});

        // Both have seen that nobody knows the worker, and are about to write it down.
        let alone = app.roster.alone().await;
        let (mut beats, mut asks) =
            (pin!(post(&server, "/worker/heartbeat", &beat)), pin!(post(&server, "/worker/leases", &ask)));
        if heartbeat_first {
            assert!(poll!(beats.as_mut()).is_pending());
        }
        assert!(poll!(asks.as_mut()).is_pending());
        assert!(poll!(beats.as_mut()).is_pending());
        let workers = async || store.workers(&PageRequest::first(10)).await.unwrap().items;
        assert!(workers().await.is_empty(), "nobody writes while another does");

        drop(alone);
        let (beaten, asked) = futures_util::join!(beats, asks);
        assert_eq!((beaten.status(), asked.status()), (StatusCode::OK, StatusCode::OK));
        let found = workers().await;
        let [worker] = found.as_slice() else { panic!("one worker: {found:?}") };
        assert_eq!(worker.info.job_types, Some(vec!["t".parse().unwrap()]), "heartbeat first: {heartbeat_first}");
        assert_eq!(worker.info.queues, Queues::Named(vec!["q".parse().unwrap()]));

        // Nor does a later one.
        assert_eq!(post(&server, "/worker/heartbeat", &beat).await.status(), StatusCode::OK);
        assert_eq!(workers().await[0].info.job_types, Some(vec!["t".parse().unwrap()]));
    }
}
