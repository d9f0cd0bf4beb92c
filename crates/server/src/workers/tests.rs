//! Registrations, heartbeats and lease requests of one worker that run concurrently.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode, header},
};
use futures_util::poll;
use orchestrix_core::{JobState, NewJob, Role};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{Clock, Directive, ManualClock, NewKey, PageRequest, Queues, Store, WorkerStatus};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{App, Auth, ServerOptions, auth::bearer_key::BearerKey, router};

async fn post(server: &Router, path: &str, body: &Value) -> Response<Body> {
    post_with(server, path, "", body).await
}

async fn post_with(server: &Router, path: &str, key: &str, body: &Value) -> Response<Body> {
    let body = body.to_string();
    let request = Request::post(path)
        .header(header::AUTHORIZATION, format!("Bearer {key}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_LENGTH, body.len())
        .body(Body::from(body));
    server.clone().oneshot(request.unwrap()).await.unwrap()
}

fn start_server(auth: Auth) -> (Arc<dyn Store>, Arc<App>, Router) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let app = App::new(Arc::clone(&store), ServerOptions { auth, ..ServerOptions::default() });
    (store, Arc::clone(&app), router(app))
}

async fn only_worker(store: &Arc<dyn Store>) -> WorkerStatus {
    let mut found = store.list_workers(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

async fn json(response: Response<Body>) -> (StatusCode, Value) {
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn a_drain_during_a_registration_is_not_lost() {
    let (store, app, server) = start_server(Auth::InProcess("test".into()));
    let name = "w".parse().unwrap();
    let lease_request = |queue: &str| json!({"workerId": "w", "queues": [queue], "max": 3, "waitSeconds": 0});
    assert_eq!(post(&server, "/worker/leases", &lease_request("a")).await.status(), StatusCode::OK);
    store.enqueue_job(NewJob { queue: "b".parse().unwrap(), ..NewJob::new("t".parse().unwrap()) }).await.unwrap();

    // The worker has received `run` and is about to register another queue.
    let guard = app.registrations.write_lock().await;
    let other = lease_request("b");
    let mut leases = pin!(post(&server, "/worker/leases", &other));
    assert!(poll!(leases.as_mut()).is_pending());
    assert!(store.direct_worker(&name, Directive::Drain).await.unwrap());
    drop(guard);
    let (status, answer) = json(leases.await).await;
    assert_eq!((status, &answer["leases"]), (StatusCode::OK, &json!([])), "a draining worker gets no jobs");
    let worker = only_worker(&store).await;
    assert_eq!(worker.directive, Directive::Drain);
    assert_eq!(
        worker.info.queues,
        Queues::Named(vec!["b".parse().unwrap()]),
        "the new queues are registered all the same"
    );

    // Later lease requests keep the directive. Only a new instance resets it.
    assert_eq!(post(&server, "/worker/leases", &lease_request("c")).await.status(), StatusCode::OK);
    assert_eq!(only_worker(&store).await.directive, Directive::Drain);
    let start = |instance: &str| json!({"workerId": "w", "instanceId": instance, "deadAfterSeconds": 180});
    let (_, answer) = json(post(&server, "/worker/register", &start("new")).await).await;
    assert_eq!(answer, json!({"directive": "run"}));
    assert_eq!(only_worker(&store).await.info.dead_after, Some(Duration::from_secs(180)));
    store.direct_worker(&name, Directive::Drain).await.unwrap();
    let (_, answer) = json(post(&server, "/worker/register", &start("new")).await).await;
    assert_eq!(answer, json!({"directive": "drain"}), "the same instance id keeps the directive");
}

#[tokio::test]
async fn a_heartbeat_changes_only_the_fields_it_sends() {
    let (store, _, server) = start_server(Auth::InProcess("test".into()));
    let heartbeat = async |more: Value| {
        let mut body = json!({"workerId": "w", "leaseTokens": []});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = json(post(&server, "/worker/heartbeat", &body).await).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let worker = only_worker(&store).await;
        (answer["directive"].as_str().unwrap().to_owned(), worker.free_slots)
    };
    assert_eq!(heartbeat(json!({"freeSlots": 3, "capacity": {"slots": 8}})).await, ("run".into(), 3));
    assert_eq!(heartbeat(json!({})).await, ("run".into(), 3));
    assert_eq!(heartbeat(json!({"draining": false, "freeSlots": 2})).await, ("run".into(), 2));
    assert_eq!(heartbeat(json!({"draining": true})).await, ("drain".into(), 2));
    store.remove_worker(&"w".parse().unwrap(), None).await.unwrap();
    assert_eq!(
        heartbeat(json!({"draining": true, "freeSlots": 0})).await,
        ("drain".into(), 0),
        "also for an unknown worker"
    );
}

#[tokio::test]
async fn a_worker_without_capacity_is_not_registered_again_for_every_other_max() {
    let (store, _, server) = start_server(Auth::InProcess("test".into()));
    for max in [3, 2, 1] {
        let lease_request = json!({"workerId": "w", "max": max, "waitSeconds": 0});
        assert_eq!(post(&server, "/worker/leases", &lease_request).await.status(), StatusCode::OK);
        let worker = only_worker(&store).await;
        assert_eq!((worker.info.concurrency, worker.free_slots), (3, max));
    }
}

async fn key(store: &Arc<dyn Store>) -> BearerKey {
    let shown = BearerKey::generate();
    let key = NewKey {
        id: shown.id.clone(),
        digest: shown.digest(),
        name: "n".into(),
        role: Role::Worker,
        tenant: None,
        rate_limit: None,
        expires_at: None,
    };
    store.create_key(key).await.unwrap();
    shown
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_gets_no_jobs_and_its_long_poll_ends() {
    let (store, app, server) = start_server(Auth::Keys);
    let (revoked, valid) = (key(&store).await, key(&store).await);
    let text = revoked.reveal();
    let lease_request = json!({"workerId": "w", "max": 3, "waitSeconds": 60});
    let mut long_poll = pin!(post_with(&server, "/worker/leases", &text, &lease_request));
    let known = async {
        while store.list_workers(&PageRequest::first(1)).await.unwrap().items.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = &mut long_poll => panic!("there are no jobs to lease"),
        () = known => {}
    }
    assert!(store.revoke_key(&revoked.id).await.unwrap());
    app.authenticator.forget(&revoked.id);
    let id = store.enqueue_job(NewJob::new("t".parse().unwrap())).await.unwrap().id;
    let (status, answer) = json(long_poll.await).await;
    assert_eq!((status, &answer["code"]), (StatusCode::UNAUTHORIZED, &"unauthenticated".into()), "{answer}");
    app.lease_hub.drain().await;
    let job = store.job(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempts), (JobState::Pending, 0));

    // The long poll also ends early when there is no job.
    store.cancel_job(id).await.unwrap();
    let text = valid.reveal();
    let started = tokio::time::Instant::now();
    let mut long_poll = pin!(post_with(&server, "/worker/leases", &text, &lease_request));
    assert!(tokio::time::timeout(Duration::from_secs(20), &mut long_poll).await.is_err(), "a valid key may wait");
    assert!(store.revoke_key(&valid.id).await.unwrap());
    app.authenticator.forget(&valid.id);
    assert_eq!(long_poll.await.status(), StatusCode::UNAUTHORIZED);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_first_heartbeat_does_not_overwrite_a_concurrent_lease_request() {
    for heartbeat_first in [true, false] {
        let (store, app, server) = start_server(Auth::InProcess("test".into()));
        let heartbeat = json!({"workerId": "w", "leaseTokens": [], "freeSlots": 3});
        let lease_request = json!({"workerId": "w", "queues": ["q"], "jobTypes": ["t"], "max": 3, "waitSeconds": 0});

        // Both requests have found the worker unknown and are about to register it.
        let guard = app.registrations.write_lock().await;
        let (mut heartbeats, mut leases) = (
            pin!(post(&server, "/worker/heartbeat", &heartbeat)),
            pin!(post(&server, "/worker/leases", &lease_request)),
        );
        if heartbeat_first {
            assert!(poll!(heartbeats.as_mut()).is_pending());
        }
        assert!(poll!(leases.as_mut()).is_pending());
        assert!(poll!(heartbeats.as_mut()).is_pending());
        let workers = async || store.list_workers(&PageRequest::first(10)).await.unwrap().items;
        assert!(workers().await.is_empty(), "registrations are serialized");

        drop(guard);
        let (heartbeat_response, lease_response) = futures_util::join!(heartbeats, leases);
        assert_eq!((heartbeat_response.status(), lease_response.status()), (StatusCode::OK, StatusCode::OK));
        let found = workers().await;
        let [worker] = found.as_slice() else { panic!("expected one worker: {found:?}") };
        assert_eq!(worker.info.job_types, Some(vec!["t".parse().unwrap()]), "heartbeat first: {heartbeat_first}");
        assert_eq!(worker.info.queues, Queues::Named(vec!["q".parse().unwrap()]));

        // A later heartbeat does not overwrite it either.
        assert_eq!(post(&server, "/worker/heartbeat", &heartbeat).await.status(), StatusCode::OK);
        assert_eq!(workers().await[0].info.job_types, Some(vec!["t".parse().unwrap()]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_draining_worker_waits_as_long_as_it_requested_and_gets_no_jobs() {
    let (store, _app, server) = start_server(Auth::InProcess("test".into()));
    let lease_request = |seconds: u64| json!({"workerId": "w", "waitSeconds": seconds});
    post(&server, "/worker/leases", &lease_request(0)).await;
    store.direct_worker(&"w".parse().unwrap(), Directive::Drain).await.unwrap();
    store.enqueue_job(NewJob::new("t".parse().unwrap())).await.unwrap();
    let started = tokio::time::Instant::now();
    let (status, answer) = json(post(&server, "/worker/leases", &lease_request(5)).await).await;
    assert_eq!((status, &answer["leases"]), (StatusCode::OK, &json!([])));
    assert!(started.elapsed() >= Duration::from_millis(4_900), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_draining_worker_stays_live_and_draining_while_it_waits() {
    let clock = Arc::new(ManualClock::new(orchestrix_core::Timestamp::now()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
    let options = ServerOptions { auth: Auth::InProcess("test".into()), ..ServerOptions::default() };
    let server = router(App::new(Arc::clone(&store), options));
    let lease_request = |seconds: u64| json!({"workerId": "w", "waitSeconds": seconds});
    post(&server, "/worker/leases", &lease_request(0)).await;
    store.direct_worker(&"w".parse().unwrap(), Directive::Drain).await.unwrap();
    store.enqueue_job(NewJob::new("t".parse().unwrap())).await.unwrap();
    // The store's clock advances together with the server's.
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            clock.advance(Duration::from_millis(100));
        }
    });
    // Longer than a worker may go without a heartbeat.
    for _ in 0..2 {
        let (_, answer) = json(post(&server, "/worker/leases", &lease_request(60)).await).await;
        assert_eq!(answer["leases"], json!([]));
    }
    assert_eq!(only_worker(&store).await.directive, Directive::Drain);
}
