//! Bulk actions on jobs, draining workers, statistics and the audit list.

use orchestrix_core::WorkerName;
use orchestrix_store::{Presence, WorkerInfo};
use serde_json::json;

use crate::{
    harness::{each_database_and_server, on_each_database},
    server::process::ServerProcess,
    worker::eventually,
};

#[test]
fn a_bulk_action_needs_consent_and_is_carried_out_by_the_leader() {
    on_each_database(|env| {
        let wanted: Vec<String> = (0..3).map(|_| env.enqueue(&["t", "--queue", "q"]).to_string()).collect();
        let other = env.enqueue(&["t"]).to_string();
        let cancel = ["jobs", "bulk", "cancel", "--queue", "q"];
        let cancel = |more: &[&str]| env.run(&[&cancel[..], more].concat());
        cancel(&["--yes"]).exits_with(1, "lead");
        let server = ServerProcess::start(&env);
        eventually("the server leads", || server.get("/admin/stats").json()["leader"].is_string().then_some(()));

        cancel(&[]).exits_with(2, "3 jobs would be cancelled");
        assert!(cancel(&["--dry-run"]).success().stdout.contains("cancel (dry run)"));
        let state = |id: &str| env.json(&["jobs", "get", id])["state"].as_str().unwrap().to_owned();
        assert!(wanted.iter().all(|id| state(id) == "pending"));
        let done = env.json(&["jobs", "bulk", "cancel", "--queue", "q", "--yes"]);
        assert_eq!((&done["state"], &done["matched"], &done["changed"]), (&json!("done"), &json!(3), &json!(3)));
        assert!(wanted.iter().all(|id| state(id) == "cancelled"));
        assert_eq!(state(&other), "pending");
        env.run(&["jobs", "bulk", "retry", "--state", "cancelled", "--yes"]).success();
        env.run(&["jobs", "bulk", "priority", "--priority=-5", "--all", "--yes"]).success();
        assert_eq!(env.json(&["jobs", "get", &other])["priority"], -5);
        assert_eq!(state(&wanted[0]), "pending");

        let id = done["operationId"].as_str().unwrap();
        assert_eq!(env.json(&["operations", "get", id])["changed"], 3);
        assert_eq!(env.json(&["operations", "abort", id])["state"], "done", "a finished operation cannot be aborted");
        env.run(&["operations", "abort", id]).exits_with(0, "already ended");
        let list = env.json(&["operations", "list", "--limit", "2"]);
        assert_eq!(list["items"][0]["priority"], -5);
        assert!(list["nextCursor"].is_string(), "{list}");
        assert!(env.run(&["operations", "list"]).success().stdout.contains("priority -5"));
    });
}

#[test]
fn an_incomplete_bulk_command_is_a_usage_error() {
    for env in each_database_and_server() {
        env.migrate();
        env.run(&["jobs", "bulk", "cancel", "--yes"]).exits_with(2, "--all");
        env.run(&["jobs", "bulk", "explode", "--all"]).exits_with(2, "possible values: retry, cancel, priority");
        env.run(&["jobs", "bulk", "priority", "--all"]).exits_with(2, "--priority");
        env.run(&["jobs", "bulk", "cancel", "--priority", "5", "--all"]).exits_with(2, "--priority");
        env.run(&["jobs", "bulk", "cancel", "--all", "--queue", "q"]).exits_with(2, "cannot be used with");
        let unknown = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
        env.run(&["operations", "get", unknown]).exits_with(3, unknown);
        env.run(&["operations", "abort", unknown]).exits_with(3, unknown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_drained_and_stats_are_shown() {
    for env in each_database_and_server() {
        env.enqueue(&["t"]);
        let store = env.store().await;
        let name = WorkerName::new("über/1").unwrap();
        let worker = WorkerInfo::any(name.clone());
        store.register_worker(&worker).await.unwrap();
        let dry = env.run(&["workers", "drain", "über/1", "stranger", "--dry-run"]);
        let dry = dry.exits_with(3, "dry run: 1 worker");
        assert!(dry.stdout.contains("über/1") && dry.stderr.contains("worker stranger: "), "{dry:?}");
        let directive = store.heartbeat_worker(&name, Presence::free(0)).await.unwrap();
        assert_eq!(directive.map(|directive| directive.as_str()), Some("run"), "a dry run sets no directive");
        assert_eq!(
            env.json(&["workers", "drain", "über/1", "--yes"]),
            json!({"items": [{"workerId": "über/1", "directive": "drain"}]})
        );
        let directive = store.heartbeat_worker(&name, Presence::free(0)).await.unwrap();
        assert_eq!(directive.map(|directive| directive.as_str()), Some("drain"));
        let ran = env.run(&["workers", "drain", "stranger", "über/1"]).exits_with(3, "worker stranger: ");
        assert!(ran.stdout.contains("über/1"), "{ran:?}");
        let stats = env.json(&["stats"]);
        assert_eq!((&stats["queues"]["counts"], &stats["workers"]["draining"]), (&json!({"pending": 1}), &json!(1)));
        assert!(env.run(&["stats"]).success().stdout.contains("1 pending"));
    }
}

#[test]
fn audit_entries_are_listed_newest_first() {
    for env in each_database_and_server() {
        let job = env.enqueue(&["t"]).to_string();
        env.run(&["queues", "pause", "q"]).success();
        env.run(&["queues", "resume", "q"]).success();
        env.run(&["jobs", "cancel", &job]).success();
        let actions = |more: &[&str]| {
            let list = env.json(&[&["audit", "list"], more].concat());
            let items = list["items"].as_array().unwrap();
            items.iter().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        const SWITCH: &str = "PUT /admin/queues/{name}";
        assert_eq!(actions(&[]), ["POST /admin/jobs/{jobId}/cancel", SWITCH, SWITCH]);
        let switches = ["--action", SWITCH, "--target", "/admin/queues/q", "--from", "1h"];
        assert_eq!(actions(&switches), [SWITCH, SWITCH]);
        let table = env.run(&[&["audit", "list"], &switches[..]].concat()).success().stdout;
        let lines: Vec<&str> = table.lines().skip(1).collect();
        assert!(lines[0].contains(r#"{"paused":false}"#) && lines[1].contains(r#"{"paused":true}"#), "{table}");
        assert_eq!(actions(&["--to", "1h"]), [""; 0]);
        env.run(&["audit", "list", "--limit", "1", "--output", "jsonl"]).exits_with(0, "--cursor");
    }
}
