//! Bulk operations, worker drains, statistics and the audit over HTTP.

use orchestrix_core::{Tenant, WorkerName};
use orchestrix_store::{NewAuditEntry, NewOperation, Presence, WorkerInfo};
use serde_json::{Value, json};

use super::process::ServerProcess;
use crate::{
    harness::{each_database, on_each_database},
    worker::eventually,
};

const UNKNOWN_ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

fn job(server: &ServerProcess, queue: &str) -> String {
    server.post("/jobs", &json!({"jobType": "t", "queue": queue})).accepted_job_id()
}

/// Starts an operation; returns its location.
fn begin(server: &ServerProcess, request: &Value) -> String {
    let answer = server.post("/admin/jobs/bulk", request);
    assert_eq!(answer.status, 202, "{answer:?}");
    let location = format!("/admin/operations/{}", answer.json()["operationId"].as_str().unwrap());
    assert_eq!(answer.header("location"), Some(location.as_str()));
    location
}

fn wait_until_over(server: &ServerProcess, location: &str) -> Value {
    eventually("the operation is over", || {
        Some(server.get(location).json()).filter(|operation| operation["state"] != "running")
    })
}

#[test]
fn a_bulk_operation_changes_every_matching_job() {
    on_each_database(|env| {
        let server = ServerProcess::start(&env);
        let wanted: Vec<String> = (0..3).map(|_| job(&server, "q")).collect();
        let other = job(&server, "other");
        let state = |id: &str| server.get(&format!("/admin/jobs/{id}")).json()["state"].clone();

        let dry = begin(&server, &json!({"action": "cancel", "filter": {"queue": "q"}, "dryRun": true}));
        let mut counted = wait_until_over(&server, &dry);
        for time in ["createdAt", "updatedAt", "finishedAt"] {
            assert!(counted[time].take().is_string(), "{counted}");
        }
        assert_eq!(
            counted["filter"]["to"].take().as_str().map(str::is_empty),
            Some(false),
            "the filter excludes jobs created later"
        );
        let id = dry.rsplit('/').next().unwrap();
        assert_eq!(
            counted,
            json!({"operationId": id, "action": "cancel", "filter": {"queue": "q", "to": null}, "dryRun": true,
                   "state": "done", "matched": 3, "changed": 0, "refused": 0, "actor": "anybody",
                   "createdAt": null, "updatedAt": null, "finishedAt": null})
        );
        assert!(wanted.iter().all(|id| state(id) == "pending"));

        let cancel = begin(&server, &json!({"action": "cancel", "filter": {"queue": "q"}}));
        let cancelled = wait_until_over(&server, &cancel);
        assert_eq!((&cancelled["changed"], &cancelled["refused"]), (&json!(3), &json!(0)));
        assert!(wanted.iter().all(|id| state(id) == "cancelled"));
        assert_eq!(state(&other), "pending");
        wait_until_over(&server, &begin(&server, &json!({"action": "retry", "filter": {"state": "cancelled"}})));
        wait_until_over(&server, &begin(&server, &json!({"action": "priority", "priority": 9, "all": true})));
        for id in wanted.iter().chain([&other]) {
            let job = server.get(&format!("/admin/jobs/{id}")).json();
            assert_eq!((&job["state"], &job["priority"]), (&json!("pending"), &json!(9)));
        }

        let first = server.get("/admin/operations?limit=3").json();
        let rest = server.get(&format!("/admin/operations?cursor={}", first["nextCursor"].as_str().unwrap())).json();
        assert_eq!(first["items"][0]["action"], "priority", "the newest first");
        assert_eq!((&rest["items"][0]["operationId"], &rest["nextCursor"]), (&json!(id), &Value::Null));
        let stopped = server.send("POST", &format!("{cancel}/abort"), "");
        assert_eq!(
            (stopped.status, &stopped.json()["state"]),
            (202, &json!("done")),
            "a finished operation cannot be aborted"
        );
    });
}

#[test]
fn an_operation_is_aborted_while_no_node_leads() {
    for env in each_database() {
        let server = ServerProcess::start_with(&env, &["--roles", "api"]);
        job(&server, "q");
        let operation = begin(&server, &json!({"action": "cancel", "filter": {"queue": "q"}}));
        assert_eq!(server.get(&operation).json()["state"], "running");
        assert_eq!(server.get("/admin/stats").json()["openOperations"], 1);
        let stopped = server.send("POST", &format!("{operation}/abort"), "");
        assert_eq!((stopped.status, &stopped.json()["state"]), (202, &json!("aborted")));
        assert_eq!(server.get("/admin/stats").json()["openOperations"], 0);
        for _ in 0..NewOperation::MAX_OPEN_EACH {
            begin(&server, &json!({"action": "retry", "all": true, "dryRun": true}));
        }
        let more = server.post("/admin/jobs/bulk", &json!({"action": "retry", "all": true}));
        more.problem(409, "too_many_operations");
    }
}

#[test]
fn contradictory_requests_are_refused() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let bad = |request: Value| server.post("/admin/jobs/bulk", &request).invalid_fields();
        assert_eq!(bad(json!({"action": "cancel", "filter": {}})), ["filter"]);
        assert_eq!(bad(json!({"action": "cancel"})), ["filter"]);
        assert_eq!(bad(json!({"action": "cancel", "filter": {"queue": "q"}, "all": true})), ["all"]);
        assert_eq!(bad(json!({"action": "explode", "filter": {"queue": "q"}})), ["action"]);
        assert_eq!(
            bad(json!({"action": "priority", "filter": {"queue": ""}, "x": 1})),
            ["filter.queue", "priority", "x"]
        );
        for id in [UNKNOWN_ID, "nonsense"] {
            server.get(&format!("/admin/operations/{id}")).problem(404, "operation_not_found");
            server.send("POST", &format!("/admin/operations/{id}/abort"), "").problem(404, "operation_not_found");
            server.send("POST", &format!("/admin/workers/{id}/drain"), "").problem(404, "worker_not_found");
        }
        assert_eq!(server.get("/admin/operations?cursor=x&x=1").invalid_fields(), ["cursor", "x"]);
        assert_eq!(
            server.get("/admin/audit?actor=&cursor=x&limit=0&who=me").invalid_fields(),
            ["actor", "cursor", "limit", "who"]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_are_shown_and_a_worker_is_drained() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        for queue in ["a", "a", "b"] {
            job(&server, queue);
        }
        server.send("PUT", "/admin/queues/c", r#"{"paused": true}"#);
        let store = env.store().await;
        let name = WorkerName::new("w/1").unwrap();
        let worker = WorkerInfo { concurrency: 4, ..WorkerInfo::any(name.clone()) };
        store.register_worker(&worker).await.unwrap();
        let mut stats = eventually("the server leads", || {
            Some(server.get("/admin/stats").json()).filter(|stats| stats["leader"].is_string())
        });
        assert!(stats["queues"]["oldestSeconds"].take().is_number() && stats["leader"].take().is_string());
        assert_eq!(
            stats,
            json!({"queues": {"count": 3, "more": false, "paused": 1, "counts": {"pending": 3}, "oldestSeconds": null},
                   "workers": {"live": 1, "draining": 0, "stopping": 0, "silent": 0},
                   "nodes": 1, "leader": null, "openOperations": 0})
        );
        let drained = server.send("POST", "/admin/workers/w%2F1/drain", "");
        assert_eq!((drained.status, drained.json()), (202, json!({"workerId": "w/1", "directive": "drain"})));
        assert_eq!(server.get("/admin/stats").json()["workers"]["draining"], 1);
        let directive = store.heartbeat_worker(&name, Presence::free(0)).await.unwrap();
        assert_eq!(directive.map(|directive| directive.as_str()), Some("drain"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_are_listed_by_every_filter_in_pages() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let store = env.store().await;
        let entry = |actor: &str, action: &str| NewAuditEntry {
            actor: actor.into(),
            action: action.into(),
            request_id: "r".into(),
            ..NewAuditEntry::default()
        };
        let full = NewAuditEntry {
            tenant: Some(Tenant::new("acme").unwrap()),
            target: Some("/admin/queues/q".into()),
            detail: Some(r#"{"paused": true}"#.into()),
            ..entry("ann", "PUT /admin/queues/{name}")
        };
        let seq = store.begin_audit_entry(full).await.unwrap();
        store.finish_audit_entry(seq, "200").await.unwrap();
        store.begin_audit_entry(entry("bob", "POST /admin/jobs/{jobId}/cancel")).await.unwrap();
        let list = |query: &str| server.get(&format!("/admin/audit?{query}")).json();
        for query in [
            "actor=ann",
            "tenant=acme",
            "action=PUT%20%2Fadmin%2Fqueues%2F%7Bname%7D",
            "target=%2Fadmin%2Fqueues%2Fq",
            "actor=ann&from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z",
        ] {
            let mut found = list(query);
            assert!(found["items"][0]["at"].take().is_string(), "{query}: {found}");
            let expected = json!({"seq": seq, "at": null, "actor": "ann", "tenant": "acme", "action": "PUT /admin/queues/{name}",
                "target": "/admin/queues/q", "detail": {"paused": true}, "requestId": "r", "outcome": "200"});
            assert_eq!(found, json!({"items": [expected], "nextCursor": null}), "{query}");
        }
        assert_eq!(list("to=2020-01-01T00:00:00Z")["items"], json!([]));
        let first = list("limit=1");
        assert_eq!((&first["items"][0]["actor"], first["items"][0].get("outcome")), (&json!("bob"), None));
        let rest = list(&format!("cursor={}", first["nextCursor"].as_str().unwrap()));
        assert_eq!((&rest["items"][0]["actor"], &rest["nextCursor"]), (&json!("ann"), &Value::Null));
    }
}
