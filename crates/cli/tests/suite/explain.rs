//! `jobs explain`.

use std::time::Duration;

use orchestrix_core::{JobType, NodeName, Queue, WorkerName};
use orchestrix_store::{NodeInfo, Outcome, Presence, Queues, Store, WorkerInfo};
use serde_json::{Value, json};

use crate::harness::{TestEnv, claim_one, each_database_and_server, finish};

fn explain(env: &TestEnv, id: &impl ToString) -> Value {
    env.json(&["jobs", "explain", &id.to_string()])
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
async fn every_reason_that_keeps_a_job_waiting_is_listed() {
    for env in each_database_and_server() {
        let parent = env.enqueue(&["t", "--hold"]).to_string();
        let child = env.enqueue(&["t", "--queue", "email", "--depends-on", &parent]).to_string();
        env.run(&["queues", "pause", "email"]).success();
        assert_eq!(codes(&explain(&env, &parent)), ["held", "no_worker"]);
        let explanation = explain(&env, &child);
        assert_eq!(
            (&explanation["jobId"], &explanation["state"], &explanation["status"]),
            (&json!(child), &json!("blocked"), &json!("PENDING"))
        );
        assert_eq!(codes(&explanation), ["blocked", "queue_paused", "no_worker"]);
        assert_eq!(
            explanation["reasons"][0]["jobs"],
            json!([{"jobId": parent, "status": "PENDING", "state": "created"}])
        );
        assert_eq!(explanation["reasons"][1]["queue"], "email");
        // The summary joins the messages of all reasons into one sentence.
        let summary = explanation["summary"].as_str().unwrap().to_lowercase();
        for reason in explanation["reasons"].as_array().unwrap() {
            let message = reason["message"].as_str().unwrap();
            assert!(!message.is_empty() && summary.contains(&message.to_lowercase()), "{explanation}");
        }
        let text = env.run(&["jobs", "explain", &child]).success().stdout;
        for part in [
            explanation["summary"].as_str().unwrap(),
            "\nqueue_paused  its queue email is paused\n",
            "\nWAITS FOR ",
            &parent,
            "created",
        ] {
            assert!(text.contains(part), "{part:?}: {text}");
        }

        let later = env.enqueue(&["t", "--delay", "1h"]);
        let explanation = explain(&env, &later);
        assert_eq!(codes(&explanation), ["scheduled", "no_leader", "no_worker"]);
        assert_eq!(explanation["reasons"][0]["until"], env.json(&["jobs", "get", &later.to_string()])["eligibleAt"]);
        let store = env.store().await;
        lead(&*store).await;
        assert_eq!(codes(&explain(&env, &later)), ["scheduled", "no_worker"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimable_job_is_explained_by_the_workers() {
    for env in each_database_and_server() {
        let id = env.enqueue(&["SEND", "--tenant", "acme"]);
        let explanation = || explain(&env, &id);
        let store = env.store().await;
        assert_eq!(codes(&explanation()), ["no_worker"]);
        register(&*store, "one", Some("images"), "SEND").await;
        assert_eq!(codes(&explanation()), ["no_worker_for_queue"]);
        register(&*store, "two", Some("default"), "RESIZE").await;
        let reason = explanation()["reasons"][0].clone();
        assert_eq!(
            (&reason["code"], &reason["queue"], &reason["jobType"]),
            (&json!("no_worker_for_type"), &json!("default"), &json!("SEND"))
        );
        let three = register(&*store, "three", None, "SEND").await;
        let waiting = explanation();
        assert_eq!(codes(&waiting), ["waiting_turn"]);
        assert_eq!((&waiting["reasons"][0]["tenant"], &waiting["reasons"][0]["weight"]), (&json!("acme"), &json!(1)));
        env.run(&["tenants", "set", "acme", "--weight", "3"]).success();
        let text = env.run(&["jobs", "explain", &id.to_string()]).success().stdout;
        assert!(text.contains("its tenant acme (weight 3)"), "{text}");
        store.heartbeat_worker(&three, Presence::free(0)).await.unwrap();
        assert_eq!(codes(&explanation()), ["no_free_slot"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn running_and_finished_jobs_are_explained() {
    for env in each_database_and_server() {
        let id = env.enqueue(&["t", "--retry-base", "1h", "--max-attempts", "2"]).to_string();
        let explanation = || explain(&env, &id);
        let store = env.store().await;
        let claimed = claim_one(&*store).await;
        let running = explanation();
        assert_eq!((codes(&running), &running["reasons"][0]["workerId"]), (vec!["running"], &json!("hand")));
        let failed = |retryable| Outcome::Fail { error: "no\u{1b} luck".into(), retryable, retry_after: None };
        finish(&*store, &claimed, failed(true)).await;
        lead(&*store).await;
        let retrying = explanation();
        assert_eq!(codes(&retrying), ["retrying", "no_worker"]);
        assert!(retrying["summary"].as_str().unwrap().starts_with("Attempt 2 of 2 waits until "), "{retrying}");
        let text = env.run(&["jobs", "explain", &id]).success().stdout;
        assert!(text.contains("because attempt 1 failed: no\\u{1b} luck"), "escapes are shown, not sent: {text}");
        env.run(&["jobs", "cancel", &id]).success();
        assert_eq!(codes(&explanation()), ["cancelled"]);

        env.run(&["jobs", "retry", &id]).success();
        let claimed = claim_one(&*store).await;
        env.run(&["jobs", "cancel", &id]).success();
        assert_eq!(codes(&explanation()), ["cancel_requested", "running"]);
        finish(&*store, &claimed, Outcome::Complete { result: None }).await;
        assert_eq!(codes(&explanation()), ["completed"]);

        let dead = env.enqueue_dead_job(&["t"], "broken").await;
        assert_eq!(codes(&explain(&env, &dead)), ["failed"]);
        let orphan = env.enqueue(&["t", "--depends-on", &dead.to_string()]);
        let explanation = explain(&env, &orphan);
        assert_eq!(
            (codes(&explanation), &explanation["reasons"][0]["jobs"][0]["jobId"]),
            (vec!["dependency_failed"], &json!(dead))
        );
        env.run(&["jobs", "explain", "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70"])
            .exits_with(3, "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70");
    }
}
