//! Who writes down what a worker says of itself, when it says several things at once.

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

fn place(auth: Auth) -> (Arc<dyn Store>, Arc<App>, Router) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let app = App::new(Arc::clone(&store), ServerOptions { auth, ..ServerOptions::default() });
    (store, Arc::clone(&app), router(app))
}

async fn the_worker(store: &Arc<dyn Store>) -> WorkerStatus {
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
async fn a_drain_that_comes_while_a_worker_is_written_down_is_not_lost() {
    let (store, app, server) = place(Auth::InProcess("test".into()));
    let name = "w".parse().unwrap();
    let ask = |queue: &str| json!({"workerId": "w", "queues": [queue], "max": 3, "waitSeconds": 0});
    assert_eq!(post(&server, "/worker/leases", &ask("a")).await.status(), StatusCode::OK);
    store.enqueue_job(NewJob { queue: "b".parse().unwrap(), ..NewJob::new("t".parse().unwrap()) }).await.unwrap();

    // It has heard that it should run, and is about to say that it serves something else.
    let alone = app.roster.alone().await;
    let other = ask("b");
    let mut asks = pin!(post(&server, "/worker/leases", &other));
    assert!(poll!(asks.as_mut()).is_pending());
    assert!(store.direct_worker(&name, Directive::Drain).await.unwrap());
    drop(alone);
    let (status, answer) = json(asks.await).await;
    assert_eq!((status, &answer["leases"]), (StatusCode::OK, &json!([])), "one that drains is given nothing");
    let worker = the_worker(&store).await;
    assert_eq!(worker.directive, Directive::Drain);
    assert_eq!(worker.info.queues, Queues::Named(vec!["b".parse().unwrap()]), "what it serves is known all the same");

    // Nor is it lost to what it asks for afterwards, and only another start of it begins to work again.
    assert_eq!(post(&server, "/worker/leases", &ask("c")).await.status(), StatusCode::OK);
    assert_eq!(the_worker(&store).await.directive, Directive::Drain);
    let start = |instance: &str| json!({"workerId": "w", "instanceId": instance, "deadAfterSeconds": 180});
    let (_, answer) = json(post(&server, "/worker/register", &start("new")).await).await;
    assert_eq!(answer, json!({"directive": "run"}));
    assert_eq!(the_worker(&store).await.info.dead_after, Some(Duration::from_secs(180)));
    store.direct_worker(&name, Directive::Drain).await.unwrap();
    let (_, answer) = json(post(&server, "/worker/register", &start("new")).await).await;
    assert_eq!(answer, json!({"directive": "drain"}), "said again, it is no other start");
}

#[tokio::test]
async fn a_heartbeat_changes_only_what_it_says() {
    let (store, _, server) = place(Auth::InProcess("test".into()));
    let beat = async |more: Value| {
        let mut body = json!({"workerId": "w", "leaseTokens": []});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = json(post(&server, "/worker/heartbeat", &body).await).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let worker = the_worker(&store).await;
        (answer["directive"].as_str().unwrap().to_owned(), worker.free_slots)
    };
    assert_eq!(beat(json!({"freeSlots": 3, "capacity": {"slots": 8}})).await, ("run".into(), 3));
    assert_eq!(beat(json!({})).await, ("run".into(), 3));
    assert_eq!(beat(json!({"draining": false, "freeSlots": 2})).await, ("run".into(), 2));
    assert_eq!(beat(json!({"draining": true})).await, ("drain".into(), 2));
    store.remove_worker(&"w".parse().unwrap(), None).await.unwrap();
    assert_eq!(beat(json!({"draining": true, "freeSlots": 0})).await, ("drain".into(), 0), "one that is new here, too");
}

#[tokio::test]
async fn a_worker_that_says_no_capacity_is_not_written_down_for_every_other_number_it_asks_for() {
    let (store, _, server) = place(Auth::InProcess("test".into()));
    for max in [3, 2, 1] {
        let ask = json!({"workerId": "w", "max": max, "waitSeconds": 0});
        assert_eq!(post(&server, "/worker/leases", &ask).await.status(), StatusCode::OK);
        let worker = the_worker(&store).await;
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
async fn a_key_that_was_taken_back_is_given_no_jobs_and_does_not_wait_on() {
    let (store, app, server) = place(Auth::Keys);
    let (gone, good) = (key(&store).await, key(&store).await);
    let text = gone.reveal();
    let ask = json!({"workerId": "w", "max": 3, "waitSeconds": 60});
    let mut waits = pin!(post_with(&server, "/worker/leases", &text, &ask));
    let known = async {
        while store.list_workers(&PageRequest::first(1)).await.unwrap().items.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = &mut waits => panic!("there is nothing to be had"),
        () = known => {}
    }
    assert!(store.revoke_key(&gone.id).await.unwrap());
    app.authenticator.forget(&gone.id);
    let id = store.enqueue_job(NewJob::new("t".parse().unwrap())).await.unwrap().id;
    let (status, answer) = json(waits.await).await;
    assert_eq!((status, &answer["code"]), (StatusCode::UNAUTHORIZED, &"unauthenticated".into()), "{answer}");
    app.lease_hub.drain().await;
    let job = store.job(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempts), (JobState::Pending, 0));

    // Without a job, too, long before its time is over.
    store.cancel_job(id).await.unwrap();
    let text = good.reveal();
    let begun = tokio::time::Instant::now();
    let mut waits = pin!(post_with(&server, "/worker/leases", &text, &ask));
    assert!(tokio::time::timeout(Duration::from_secs(20), &mut waits).await.is_err(), "a good one may wait");
    assert!(store.revoke_key(&good.id).await.unwrap());
    app.authenticator.forget(&good.id);
    assert_eq!(waits.await.status(), StatusCode::UNAUTHORIZED);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_first_heartbeat_beside_a_first_request_for_jobs_writes_over_nothing() {
    for heartbeat_first in [true, false] {
        let (store, app, server) = place(Auth::InProcess("test".into()));
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
        let workers = async || store.list_workers(&PageRequest::first(10)).await.unwrap().items;
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

#[tokio::test(start_paused = true)]
async fn one_that_was_told_to_take_nothing_new_waits_for_nothing_as_long_as_it_asked_to() {
    let (store, _app, server) = place(Auth::InProcess("test".into()));
    let ask = |seconds: u64| json!({"workerId": "w", "waitSeconds": seconds});
    post(&server, "/worker/leases", &ask(0)).await;
    store.direct_worker(&"w".parse().unwrap(), Directive::Drain).await.unwrap();
    store.enqueue_job(NewJob::new("t".parse().unwrap())).await.unwrap();
    let begun = tokio::time::Instant::now();
    let (status, answer) = json(post(&server, "/worker/leases", &ask(5)).await).await;
    assert_eq!((status, &answer["leases"]), (StatusCode::OK, &json!([])));
    assert!(begun.elapsed() >= Duration::from_millis(4_900), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_for_nothing_is_known_to_live_and_still_drains() {
    let clock = Arc::new(ManualClock::new(orchestrix_core::Timestamp::now()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
    let options = ServerOptions { auth: Auth::InProcess("test".into()), ..ServerOptions::default() };
    let server = router(App::new(Arc::clone(&store), options));
    let ask = |seconds: u64| json!({"workerId": "w", "waitSeconds": seconds});
    post(&server, "/worker/leases", &ask(0)).await;
    store.direct_worker(&"w".parse().unwrap(), Directive::Drain).await.unwrap();
    store.enqueue_job(NewJob::new("t".parse().unwrap())).await.unwrap();
    // The clocks of the store and of the server go at the same pace.
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            clock.advance(Duration::from_millis(100));
        }
    });
    // Longer than one may be silent.
    for _ in 0..2 {
        let (_, answer) = json(post(&server, "/worker/leases", &ask(60)).await).await;
        assert_eq!(answer["leases"], json!([]));
    }
    assert_eq!(the_worker(&store).await.directive, Directive::Drain);
}
