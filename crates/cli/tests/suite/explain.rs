//! Why jobs are not running.

use std::time::Duration;

use orchestrix_core::{JobType, NodeName, Queue, WorkerName};
use orchestrix_store::{NodeInfo, Outcome, Presence, Queues, Store, WorkerInfo};
use serde_json::{Value, json};

use crate::support::{Place, claim, everywhere, finish};

fn explain(place: &Place, id: &impl ToString) -> Value {
    place.json(&["jobs", "explain", &id.to_string()])
}

fn codes(explanation: &Value) -> Vec<&str> {
    explanation["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

async fn register(store: &dyn Store, name: &str, queue: Option<&str>, job_type: &str) -> WorkerName {
    let name = WorkerName::new(name).unwrap();
    let queues = queue.map_or(Queues::All, |queue| Queues::Named(vec![Queue::new(queue).unwrap()]));
    let job_types = Some(vec![JobType::new(job_type).unwrap()]);
    store
        .register_worker(&WorkerInfo { queues, job_types, concurrency: 4, ..WorkerInfo::any(name.clone()) })
        .await
        .unwrap();
    name
}

async fn lead(store: &dyn Store) {
    let name = NodeName::new("node").unwrap();
    let node = NodeInfo { name: name.clone(), address: None, roles: vec!["coordinator".into()] };
    store.heartbeat_node(&node).await.unwrap();
    store.campaign_for_leadership(&name, Duration::from_secs(600), None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_keeps_a_job_waiting_is_told() {
    for place in everywhere() {
        let parent = place.enqueue(&["t", "--hold"]).to_string();
        let child = place.enqueue(&["t", "--queue", "email", "--depends-on", &parent]).to_string();
        place.run(&["queues", "pause", "email"]).done();
        assert_eq!(codes(&explain(&place, &parent)), ["held", "no_worker"]);
        let told = explain(&place, &child);
        assert_eq!(
            (&told["jobId"], &told["state"], &told["status"]),
            (&json!(child), &json!("blocked"), &json!("PENDING"))
        );
        assert_eq!(codes(&told), ["blocked", "queue_paused", "no_worker"]);
        assert_eq!(told["reasons"][0]["jobs"], json!([{"jobId": parent, "status": "PENDING", "state": "created"}]));
        assert_eq!(told["reasons"][1]["queue"], "email");
        assert_eq!(told["summary"], "It waits for 1 job to finish; its queue email is paused; no worker is alive.");
        let text = place.run(&["jobs", "explain", &child]).done().stdout;
        for part in [
            told["summary"].as_str().unwrap(),
            "\nqueue_paused  its queue email is paused\n",
            "\nWAITS FOR ",
            &parent,
            "created",
        ] {
            assert!(text.contains(part), "{part:?}: {text}");
        }

        let later = place.enqueue(&["t", "--delay", "1h"]);
        let told = explain(&place, &later);
        assert_eq!(codes(&told), ["scheduled", "no_leader", "no_worker"]);
        assert_eq!(told["reasons"][0]["until"], place.json(&["jobs", "get", &later.to_string()])["eligibleAt"]);
        let store = place.store().await;
        lead(&*store).await;
        assert_eq!(codes(&explain(&place, &later)), ["scheduled", "no_worker"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_can_be_claimed_is_explained_by_who_works() {
    for place in everywhere() {
        let id = place.enqueue(&["SEND"]);
        let told = || explain(&place, &id);
        let store = place.store().await;
        assert_eq!(codes(&told()), ["no_worker"]);
        register(&*store, "one", Some("images"), "SEND").await;
        assert_eq!(codes(&told()), ["no_worker_for_queue"]);
        register(&*store, "two", Some("default"), "RESIZE").await;
        let reason = told()["reasons"][0].clone();
        assert_eq!(
            (&reason["code"], &reason["queue"], &reason["jobType"]),
            (&json!("no_worker_for_type"), &json!("default"), &json!("SEND"))
        );
        let three = register(&*store, "three", None, "SEND").await;
        assert_eq!(codes(&told()), ["waiting_turn"]);
        store.heartbeat_worker(&three, Presence::free(0)).await.unwrap();
        assert_eq!(codes(&told()), ["no_free_slot"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_does_and_what_became_of_it_is_told() {
    for place in everywhere() {
        let id = place.enqueue(&["t", "--retry-base", "1h", "--max-attempts", "2"]).to_string();
        let told = || explain(&place, &id);
        let store = place.store().await;
        let claimed = claim(&*store).await;
        let running = told();
        assert_eq!((codes(&running), &running["reasons"][0]["workerId"]), (vec!["running"], &json!("hand")));
        let failed = |retryable| Outcome::Fail { error: "no\u{1b} luck".into(), retryable, retry_after: None };
        finish(&*store, &claimed, failed(true)).await;
        lead(&*store).await;
        let retrying = told();
        assert_eq!(codes(&retrying), ["retrying", "no_worker"]);
        assert!(retrying["summary"].as_str().unwrap().starts_with("Attempt 2 of 2 waits until "), "{retrying}");
        let text = place.run(&["jobs", "explain", &id]).done().stdout;
        assert!(text.contains("because attempt 1 failed: no\\u{1b} luck"), "escapes are shown, not sent: {text}");
        place.run(&["jobs", "cancel", &id]).done();
        assert_eq!(codes(&told()), ["cancelled"]);

        place.run(&["jobs", "retry", &id]).done();
        let claimed = claim(&*store).await;
        place.run(&["jobs", "cancel", &id]).done();
        assert_eq!(codes(&told()), ["cancel_requested", "running"]);
        finish(&*store, &claimed, Outcome::Complete { result: None }).await;
        assert_eq!(codes(&told()), ["completed"]);

        let dead = place.dead(&["t"], "broken").await;
        assert_eq!(codes(&explain(&place, &dead)), ["failed"]);
        let orphan = place.enqueue(&["t", "--depends-on", &dead.to_string()]);
        let told = explain(&place, &orphan);
        assert_eq!((codes(&told), &told["reasons"][0]["jobs"][0]["jobId"]), (vec!["dependency_failed"], &json!(dead)));
        place.run(&["jobs", "explain", "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70"]).ended(3, "there is no job");
    }
}
