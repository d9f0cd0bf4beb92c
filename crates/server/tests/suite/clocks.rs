//! What is told of times goes by the clock of the store, whatever the server's shows.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{Instance, JobId, NewJob, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_server::Local;
use orchestrix_store::{ClaimRequest, ManualClock, Store, WorkerInfo};
use serde_json::{Value, json};

async fn get(local: &Local, path: &str) -> Value {
    let (status, body) = local.call("GET".parse().unwrap(), path, None).await.unwrap();
    assert!(status.is_success(), "{path}: {body:?}");
    serde_json::from_slice(&body).unwrap()
}

async fn codes(local: &Local, id: JobId) -> Vec<String> {
    let told = get(local, &format!("/admin/jobs/{id}/explain")).await;
    told["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_server_whose_clock_is_years_ahead_calls_no_worker_silent_and_no_lease_lost() {
    let clock = Arc::new(ManualClock::new("2020-01-01T00:00:00Z".parse().unwrap()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
    let local = Local::new(Arc::clone(&store), "test");
    let name = WorkerName::new("w").unwrap();
    let slow = WorkerInfo {
        concurrency: 2,
        instance: Some(Instance::new("i").unwrap()),
        dead_after: Some(WorkerInfo::dead_after(Duration::from_secs(60))),
        ..WorkerInfo::any(name.clone())
    };
    store.register_worker(&slow).await.unwrap();
    let running = store.enqueue_job(NewJob::new("t".parse().unwrap())).await.unwrap().id;
    store.claim_jobs(&ClaimRequest::any(name.clone(), 1)).await.unwrap();
    let expiring =
        NewJob { expires_at: Some("2020-01-01T00:02:00Z".parse().unwrap()), ..NewJob::new("t".parse().unwrap()) };
    let expiring = store.enqueue_job(expiring).await.unwrap().id;

    // Longer than thirty seconds, and not three of its heartbeats.
    clock.advance(Duration::from_secs(29));
    assert_eq!(codes(&local, running).await, ["running"]);
    clock.advance(Duration::from_secs(30));
    assert_eq!(codes(&local, expiring).await, ["waiting_turn"]);
    let worker = get(&local, "/admin/workers").await["items"][0].clone();
    assert_eq!((&worker["state"], &worker["silentSeconds"]), (&json!("live"), &json!(59.0)));
    assert_eq!(
        get(&local, "/admin/stats").await["workers"],
        json!({"live": 1, "draining": 0, "stopping": 0, "silent": 0})
    );

    // By that clock they end all the same.
    clock.advance(Duration::from_secs(122));
    assert_eq!(codes(&local, running).await, ["no_leader", "lease_expired", "running"]);
    assert_eq!(codes(&local, expiring).await, ["no_leader", "expired", "no_worker"]);
    assert_eq!(get(&local, "/admin/workers").await["items"][0]["state"], "silent");
    assert_eq!(get(&local, "/admin/stats").await["workers"]["silent"], 1);
}
