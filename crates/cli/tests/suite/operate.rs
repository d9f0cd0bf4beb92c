//! Queues, workers and nodes.

use std::time::Duration;

use orchestrix_core::{JobType, NodeName, Queue, Timestamp, WorkerName};
use orchestrix_store::{NodeInfo, Queues, WorkerInfo, prelude::*};
use serde_json::json;

use crate::support::{Place, everywhere};

fn worker(name: &str, queue: Option<&str>, types: Option<&[&str]>) -> WorkerInfo {
    WorkerInfo {
        queues: queue.map_or(Queues::All, |queue| Queues::Named(vec![Queue::new(queue).unwrap()])),
        job_types: types.map(|types| types.iter().map(|name| JobType::new(name).unwrap()).collect()),
        concurrency: 4,
        ..WorkerInfo::any(WorkerName::new(name).unwrap())
    }
}

#[test]
fn queues_show_what_they_hold_and_are_paused_and_resumed() {
    for place in everywhere() {
        place.enqueue(&["t", "--queue", "email"]);
        place.enqueue(&["t", "--queue", "email", "--delay", "1h"]);
        assert_eq!(
            place.json(&["queues", "pause", "email", "empty"]),
            json!({"items": [{"name": "email", "paused": true}, {"name": "empty", "paused": true}]})
        );
        let mut list = place.json(&["queues", "list"]);
        assert!(list["items"][0]["oldestSeconds"].take().as_f64().unwrap() < 600.0);
        assert_eq!(
            list,
            json!({"items": [
                {"name": "email", "paused": true, "counts": {"pending": 1, "scheduled": 1}, "oldestSeconds": null},
                {"name": "empty", "paused": true, "counts": {}},
            ]})
        );
        let table = place.run(&["queues", "list"]).done().stdout;
        assert!(table.contains("paused") && table.starts_with("QUEUE"), "{table}");
        place.run(&["queues", "resume", "email", "empty"]).done();
        let list = place.json(&["queues", "list"]);
        assert_eq!((list["items"].as_array().unwrap().len(), &list["items"][0]["paused"]), (1, &json!(false)));
    }
}

#[test]
fn a_queue_that_is_refused_leaves_the_others_paused_and_told_of() {
    let place = Place::sqlite();
    place.prepare();
    place.sql(
        "CREATE TRIGGER no BEFORE INSERT ON queue WHEN new.name = 'b' BEGIN SELECT raise(ABORT, 'not this one'); END",
    );
    let ran = place.run(&["queues", "pause", "a", "b", "c", "--output", "json"]).ended(1, "error: queue b: ");
    let paused = |name: &str| json!({"name": name, "paused": true});
    assert_eq!(ran.json(), json!({"items": [paused("a"), paused("c")]}));
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_with_the_types_of_jobs_that_none_of_them_takes() {
    for place in everywhere() {
        let waiting = place.enqueue(&["SEND_EMAIL"]).to_string();
        let served = place.enqueue(&["RESIZE", "--queue", "images"]).to_string();
        place.enqueue(&["RESIZE"]);
        place.enqueue(&["SEND_EMAIL", "--queue", "images"]);
        let store = place.store().await;
        store.register_worker(&worker("resizer", Some("images"), Some(&["RESIZE"]))).await.unwrap();
        let list = place.json(&["workers", "list"]);
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
        let note = "no live worker takes SEND_EMAIL from default";
        assert!(place.run(&["workers", "list"]).done().stdout.contains(&format!("\n{note}\n")));
        place.run(&["workers", "list", "--output", "jsonl"]).ended(0, note);
        assert_eq!(place.json(&["jobs", "get", &waiting])["note"], note);
        assert!(place.run(&["jobs", "get", &waiting]).done().stdout.contains(note));
        assert!(place.json(&["jobs", "get", &served]).get("note").is_none());

        store.register_worker(&worker("any", None, None)).await.unwrap();
        assert_eq!(place.json(&["workers", "list"])["unserved"], json!([]));
        assert!(place.json(&["jobs", "get", &waiting]).get("note").is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_fell_silent_takes_nothing() {
    let place = Place::sqlite();
    let id = place.enqueue(&["t"]).to_string();
    let store = place.store_at(Timestamp::now() - Duration::from_secs(3600)).await;
    store.register_worker(&worker("gone", None, None)).await.unwrap();
    let list = place.json(&["workers", "list"]);
    assert_eq!((&list["items"][0]["state"], list["unserved"].as_array().unwrap().len()), (&json!("silent"), 1));
    assert!(place.run(&["workers", "list"]).done().stdout.contains("1h ago"));
    assert!(place.json(&["jobs", "get", &id])["note"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_listed_with_the_one_that_leads() {
    for place in everywhere() {
        let store = place.store().await;
        for (name, address) in [("one", Some("http://127.0.0.1:8080".to_owned())), ("two", None)] {
            let node = NodeInfo { name: NodeName::new(name).unwrap(), address, roles: vec!["coordinator".into()] };
            store.heartbeat_node(&node).await.unwrap();
        }
        store.campaign_for_leadership(&NodeName::new("two").unwrap(), Duration::from_secs(600), None).await.unwrap();
        let mut list = place.json(&["nodes", "list"]);
        // A server in between is one of them.
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
        let table = place.run(&["nodes", "list"]).done().stdout;
        assert!(table.lines().any(|line| line.starts_with("two") && line.contains("leader")), "{table}");
    }
}
