//! One action on many jobs, draining workers, and looking at the whole.

use orchestrix_core::WorkerName;
use orchestrix_store::{Presence, WorkerInfo};
use serde_json::json;

use crate::{
    server::http::Server,
    support::{everywhere, places},
    worker::eventually,
};

#[test]
fn whatever_matches_is_changed_by_the_leader_and_only_with_consent() {
    for place in places() {
        let wanted: Vec<String> = (0..3).map(|_| place.enqueue(&["t", "--queue", "q"]).to_string()).collect();
        let other = place.enqueue(&["t"]).to_string();
        let cancel = ["jobs", "bulk", "cancel", "--queue", "q"];
        let cancel = |more: &[&str]| place.run(&[&cancel[..], more].concat());
        cancel(&["--yes"]).ended(1, "nobody leads");
        let server = Server::start(&place);
        eventually("it leads", || server.get("/admin/stats").json()["leader"].is_string().then_some(()));

        cancel(&[]).ended(2, "3 jobs would be cancelled. Add --yes to go ahead, or --dry-run to see how many.");
        assert!(cancel(&["--dry-run"]).done().stdout.contains("cancel (dry run)"));
        let state = |id: &str| place.json(&["jobs", "get", id])["state"].as_str().unwrap().to_owned();
        assert!(wanted.iter().all(|id| state(id) == "pending"));
        let done = place.json(&["jobs", "bulk", "cancel", "--queue", "q", "--yes"]);
        assert_eq!((&done["state"], &done["matched"], &done["changed"]), (&json!("done"), &json!(3), &json!(3)));
        assert!(wanted.iter().all(|id| state(id) == "cancelled"));
        assert_eq!(state(&other), "pending");
        place.run(&["jobs", "bulk", "retry", "--state", "cancelled", "--yes"]).done();
        place.run(&["jobs", "bulk", "priority", "--priority=-5", "--all", "--yes"]).done();
        assert_eq!(place.json(&["jobs", "get", &other])["priority"], -5);
        assert_eq!(state(&wanted[0]), "pending");

        let id = done["operationId"].as_str().unwrap();
        assert_eq!(place.json(&["operations", "get", id])["changed"], 3);
        assert_eq!(place.json(&["operations", "abort", id])["state"], "done", "what is over stays as it is");
        place.run(&["operations", "abort", id]).ended(0, "it was over already");
        let list = place.json(&["operations", "list", "--limit", "2"]);
        assert_eq!(list["items"][0]["priority"], -5);
        assert!(list["nextCursor"].is_string(), "{list}");
        assert!(place.run(&["operations", "list"]).done().stdout.contains("priority -5"));
    }
}

#[test]
fn a_bulk_action_says_what_it_means() {
    for place in everywhere() {
        place.prepare();
        place.run(&["jobs", "bulk", "cancel", "--yes"]).ended(2, "which jobs?");
        place.run(&["jobs", "bulk", "explode", "--all"]).ended(2, "possible values: retry, cancel, priority");
        place.run(&["jobs", "bulk", "priority", "--all"]).ended(2, "--priority");
        place.run(&["jobs", "bulk", "cancel", "--priority", "5", "--all"]).ended(2, "only with the action priority");
        place.run(&["jobs", "bulk", "cancel", "--all", "--queue", "q"]).ended(2, "cannot be used with");
        let nobody = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
        place.run(&["operations", "get", nobody]).ended(3, "there is no operation");
        place.run(&["operations", "abort", nobody]).ended(3, "there is no operation");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_told_to_drain_and_the_whole_is_shown() {
    for place in everywhere() {
        place.enqueue(&["t"]);
        let store = place.store().await;
        let name = WorkerName::new("über/1").unwrap();
        let worker = WorkerInfo::any(name.clone());
        store.register_worker(&worker).await.unwrap();
        let dry = place.run(&["workers", "drain", "über/1", "stranger", "--dry-run"]);
        let dry = dry.ended(3, "dry run: 1 worker would be told to drain");
        assert!(
            dry.stdout.contains("über/1") && dry.stderr.contains("worker stranger: there is no such worker"),
            "{dry:?}"
        );
        let heard = store.heartbeat_worker(&name, Presence::free(0)).await.unwrap();
        assert_eq!(heard.map(|directive| directive.as_str()), Some("run"), "nothing was said to it");
        assert_eq!(
            place.json(&["workers", "drain", "über/1", "--yes"]),
            json!({"items": [{"workerId": "über/1", "directive": "drain"}]})
        );
        let heard = store.heartbeat_worker(&name, Presence::free(0)).await.unwrap();
        assert_eq!(heard.map(|directive| directive.as_str()), Some("drain"));
        let ran = place.run(&["workers", "drain", "stranger", "über/1"]).ended(3, "there is no such worker");
        assert!(ran.stdout.contains("über/1"), "{ran:?}");
        let stats = place.json(&["stats"]);
        assert_eq!((&stats["queues"]["counts"], &stats["workers"]["draining"]), (&json!({"pending": 1}), &json!(1)));
        assert!(place.run(&["stats"]).done().stdout.contains("1 pending"));
    }
}

#[test]
fn who_did_what_is_listed_newest_first() {
    for place in everywhere() {
        let job = place.enqueue(&["t"]).to_string();
        place.run(&["queues", "pause", "q"]).done();
        place.run(&["queues", "resume", "q"]).done();
        place.run(&["jobs", "cancel", &job]).done();
        let actions = |more: &[&str]| {
            let list = place.json(&[&["audit", "list"], more].concat());
            let items = list["items"].as_array().unwrap();
            items.iter().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        const SWITCH: &str = "PUT /admin/queues/{name}";
        assert_eq!(actions(&[]), ["POST /admin/jobs/{jobId}/cancel", SWITCH, SWITCH]);
        let switches = ["--action", SWITCH, "--target", "/admin/queues/q", "--from", "1h"];
        assert_eq!(actions(&switches), [SWITCH, SWITCH]);
        let table = place.run(&[&["audit", "list"], &switches[..]].concat()).done().stdout;
        let lines: Vec<&str> = table.lines().skip(1).collect();
        assert!(lines[0].contains(r#"{"paused":false}"#) && lines[1].contains(r#"{"paused":true}"#), "{table}");
        assert_eq!(actions(&["--to", "1h"]), [""; 0]);
        place.run(&["audit", "list", "--limit", "1", "--output", "jsonl"]).ended(0, "--cursor");
    }
}
