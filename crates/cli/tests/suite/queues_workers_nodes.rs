//! The commands `queues`, `workers` and `nodes`.

use std::time::Duration;

use orchestrix_core::{JobType, NodeName, Queue, Timestamp, WorkerName};
use orchestrix_store::{NodeInfo, Queues, WorkerInfo, prelude::*};
use serde_json::json;

use crate::harness::{TestEnv, each_database_and_server};

fn worker(name: &str, queue: Option<&str>, types: Option<&[&str]>) -> WorkerInfo {
    WorkerInfo {
        queues: queue.map_or(Queues::All, |queue| Queues::Named(vec![Queue::new(queue).unwrap()])),
        job_types: types.map(|types| types.iter().map(|name| JobType::new(name).unwrap()).collect()),
        concurrency: 4,
        ..WorkerInfo::any(WorkerName::new(name).unwrap())
    }
}

#[test]
fn queues_show_their_depth_and_are_paused_and_resumed() {
    for env in each_database_and_server() {
        env.enqueue(&["t", "--queue", "email"]);
        env.enqueue(&["t", "--queue", "email", "--delay", "1h"]);
        assert_eq!(
            env.json(&["queues", "pause", "email", "empty"]),
            json!({"items": [{"name": "email", "paused": true}, {"name": "empty", "paused": true}]})
        );
        let mut list = env.json(&["queues", "list"]);
        assert!(list["items"][0]["oldestSeconds"].take().as_f64().unwrap() < 600.0);
        assert_eq!(
            list,
            json!({"items": [
                {"name": "email", "paused": true, "counts": {"pending": 1, "scheduled": 1}, "oldestSeconds": null},
                {"name": "empty", "paused": true, "counts": {}},
            ]})
        );
        let table = env.run(&["queues", "list"]).success().stdout;
        assert!(table.contains("paused") && table.starts_with("QUEUE"), "{table}");
        env.run(&["queues", "resume", "email", "empty"]).success();
        let list = env.json(&["queues", "list"]);
        assert_eq!((list["items"].as_array().unwrap().len(), &list["items"][0]["paused"]), (1, &json!(false)));
    }
}

#[test]
fn a_refused_queue_does_not_stop_the_others_from_being_paused() {
    let env = TestEnv::sqlite();
    env.migrate();
    env.sql(
        "CREATE TRIGGER no BEFORE INSERT ON queue WHEN new.name = 'b' BEGIN SELECT raise(ABORT, 'not this one'); END",
    );
    let ran = env.run(&["queues", "pause", "a", "b", "c", "--output", "json"]).exits_with(1, "queue b: ");
    let paused = |name: &str| json!({"name": name, "paused": true});
    assert_eq!(ran.json(), json!({"items": [paused("a"), paused("c")]}));
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_with_the_job_types_that_none_of_them_takes() {
    for env in each_database_and_server() {
        let waiting = env.enqueue(&["SEND_EMAIL"]).to_string();
        let served = env.enqueue(&["RESIZE", "--queue", "images"]).to_string();
        env.enqueue(&["RESIZE"]);
        env.enqueue(&["SEND_EMAIL", "--queue", "images"]);
        let store = env.store().await;
        store.register_worker(&worker("resizer", Some("images"), Some(&["RESIZE"]))).await.unwrap();
        let list = env.json(&["workers", "list"]);
        let lane = |queue: &str, job_type: &str| json!({"queue": queue, "jobType": job_type});
        let unserved = [lane("default", "RESIZE"), lane("default", "SEND_EMAIL"), lane("images", "SEND_EMAIL")];
        assert_eq!(list["unserved"], json!(unserved));
        let mut item = list["items"][0].clone();
        assert!(item["startedAt"].take().is_string() && item["lastSeenAt"].take().is_string());
        assert!(item["silentSeconds"].take().is_number());
        let free = item["freeSlots"].take();
        assert!(free.is_number());
        assert_eq!(
            item,
            json!({"workerId": "resizer", "state": "live", "queues": ["images"], "jobTypes": ["RESIZE"],
                   "concurrency": 4, "freeSlots": null, "directive": "run", "startedAt": null, "lastSeenAt": null,
                   "silentSeconds": null})
        );
        let note = "no live worker serves job type SEND_EMAIL in queue default";
        assert!(env.run(&["workers", "list"]).success().stdout.contains(&format!("\n{note}\n")));
        env.run(&["workers", "list", "--output", "jsonl"]).exits_with(0, note);
        assert_eq!(env.json(&["jobs", "get", &waiting])["note"], note);
        assert!(env.run(&["jobs", "get", &waiting]).success().stdout.contains(note));
        assert!(env.json(&["jobs", "get", &served]).get("note").is_none());

        store.register_worker(&worker("any", None, None)).await.unwrap();
        assert_eq!(env.json(&["workers", "list"])["unserved"], json!([]));
        assert!(env.json(&["jobs", "get", &waiting]).get("note").is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_worker_counts_as_taking_nothing() {
    let env = TestEnv::sqlite();
    let id = env.enqueue(&["t"]).to_string();
    let store = env.store_at(Timestamp::now() - Duration::from_secs(3600)).await;
    store.register_worker(&worker("gone", None, None)).await.unwrap();
    let list = env.json(&["workers", "list"]);
    assert_eq!((&list["items"][0]["state"], list["unserved"].as_array().unwrap().len()), (&json!("silent"), 1));
    assert!(env.run(&["workers", "list"]).success().stdout.contains("1h ago"));
    assert!(env.json(&["jobs", "get", &id])["note"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_listed_with_the_leader() {
    for env in each_database_and_server() {
        let store = env.store().await;
        for (name, address) in [("one", Some("http://127.0.0.1:8080".to_owned())), ("two", None)] {
            let node = NodeInfo { name: NodeName::new(name).unwrap(), address, roles: vec!["coordinator".into()] };
            store.heartbeat_node(&node).await.unwrap();
        }
        store.campaign_for_leadership(&NodeName::new("two").unwrap(), Duration::from_secs(600), None).await.unwrap();
        let mut list = env.json(&["nodes", "list"]);
        // Behind a server, that server is listed, too.
        list["items"].as_array_mut().unwrap().retain(|node| node["roles"] != json!(["api"]));
        for node in list["items"].as_array_mut().unwrap() {
            assert!(node["startedAt"].take().is_string() && node["lastSeenAt"].take().is_string());
        }
        assert_eq!(
            list,
            json!({"items": [
                {"nodeId": "one", "leader": false, "address": "http://127.0.0.1:8080", "roles": ["coordinator"],
                 "startedAt": null, "lastSeenAt": null},
                {"nodeId": "two", "leader": true, "address": null, "roles": ["coordinator"],
                 "startedAt": null, "lastSeenAt": null},
            ]})
        );
        let table = env.run(&["nodes", "list"]).success().stdout;
        assert!(table.lines().any(|line| line.starts_with("two") && line.contains("leader")), "{table}");
    }
}
