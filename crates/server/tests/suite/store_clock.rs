//! Times in responses follow the clock of the store, not the clock of the server.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{Instance, JobId, NewJob, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_server::InProcessApi;
use orchestrix_store::{ClaimRequest, ManualClock, Store, WorkerInfo};
use serde_json::{Value, json};

async fn get(local: &InProcessApi, path: &str) -> Value {
    let (status, body) = local.call("GET".parse().unwrap(), path, None).await.unwrap();
    assert!(status.is_success(), "{path}: {body:?}");
    serde_json::from_slice(&body).unwrap()
}

async fn reason_codes(local: &InProcessApi, id: JobId) -> Vec<String> {
    let explanation = get(local, &format!("/admin/jobs/{id}/explain")).await;
    explanation["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| reason["code"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_server_with_a_wrong_clock_reports_live_workers_and_leases_correctly() {
    let clock = Arc::new(ManualClock::new("2020-01-01T00:00:00Z".parse().unwrap()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
    let local = InProcessApi::new(Arc::clone(&store), "test");
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

    // The worker registered a heartbeat limit longer than the default of 30 s.
    clock.advance(Duration::from_secs(29));
    assert_eq!(reason_codes(&local, running).await, ["running"]);
    clock.advance(Duration::from_secs(30));
    assert_eq!(reason_codes(&local, expiring).await, ["waiting_turn"]);
    let worker = get(&local, "/admin/workers").await["items"][0].clone();
    assert_eq!((&worker["state"], &worker["silentSeconds"]), (&json!("live"), &json!(59.0)));
    assert_eq!(
        get(&local, "/admin/stats").await["workers"],
        json!({"live": 1, "draining": 0, "stopping": 0, "silent": 0})
    );

    // By the store's clock the lease, the job and the worker expire.
    clock.advance(Duration::from_secs(122));
    assert_eq!(reason_codes(&local, running).await, ["no_leader", "lease_expired", "running"]);
    assert_eq!(reason_codes(&local, expiring).await, ["no_leader", "expired", "no_worker"]);
    assert_eq!(get(&local, "/admin/workers").await["items"][0]["state"], "silent");
    assert_eq!(get(&local, "/admin/stats").await["workers"]["silent"], 1);
}
