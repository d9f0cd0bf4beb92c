//! The admin API for jobs, dead letters, queues, workers and nodes.

use orchestrix_core::{JobType, WorkerName};
use orchestrix_store::WorkerInfo;
use serde_json::{Value, json};

use super::process::{Response, ServerProcess};
use crate::{harness::each_database, worker::eventually};

const UNKNOWN_ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|job| job["jobId"].as_str().unwrap()).collect()
}

fn job(server: &ServerProcess, request: &Value) -> String {
    server.post("/jobs", request).accepted_job_id()
}

/// Leases the one pending job; returns its token.
fn lease(server: &ServerProcess) -> String {
    let ask = json!({"workerId": "w", "queues": ["*"], "max": 1, "waitSeconds": 30});
    server.post("/worker/leases", &ask).json()["leases"][0]["leaseToken"].as_str().unwrap().to_owned()
}

fn dead(server: &ServerProcess, request: &Value) -> String {
    let id = job(server, request);
    kill(server);
    id
}

// Fails the one pending job for good.
fn kill(server: &ServerProcess) {
    let path = format!("/worker/leases/{}/fail", lease(server));
    assert_eq!(server.post(&path, &json!({"error": "no luck", "retryable": false})).json()["status"], "FAILED");
}

fn act(server: &ServerProcess, id: &str, what: &str) -> Response {
    server.send("POST", &format!("/admin/jobs/{id}/{what}"), "")
}

#[test]
fn jobs_are_listed_by_every_filter_in_pages() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let wanted =
            json!({"jobType": "SEND:1", "queue": "email", "tenant": "acme", "tags": ["x"], "correlationId": "order 9"});
        let wanted = job(&server, &wanted);
        let held = job(&server, &json!({"jobType": "other", "hold": true}));
        let later = job(&server, &json!({"jobType": "other", "delaySeconds": 3600}));
        for filter in [
            "queue=email",
            "jobType=SEND%3A1",
            "tenant=acme",
            "tag=x",
            "q=order+9",
            "state=pending",
            "state=pending,running&from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z",
        ] {
            let list = server.get(&format!("/admin/jobs?{filter}")).json();
            assert_eq!(ids(&list), [wanted.as_str()], "{filter}");
        }
        let two = server.get("/admin/jobs?state=created&state=scheduled").json();
        assert_eq!(ids(&two), [later.as_str(), &held]);
        assert_eq!(server.get("/admin/jobs?to=2020-01-01T00:00:00Z").json(), json!({"items": [], "nextCursor": null}));

        let first = server.get("/admin/jobs?limit=2").json();
        let rest = server.get(&format!("/admin/jobs?limit=2&cursor={}", first["nextCursor"].as_str().unwrap())).json();
        assert_eq!([ids(&first), ids(&rest)].concat(), [later.as_str(), &held, &wanted]);
        assert_eq!(rest["nextCursor"], Value::Null);
        let item = &rest["items"][0];
        assert_eq!(
            (&item["state"], &item["status"], &item["tags"]),
            (&json!("pending"), &json!("PENDING"), &json!(["x"]))
        );
        assert!(item.get("payload").is_none(), "{item}");
    }
}

#[test]
fn every_invalid_parameter_is_named_at_once() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let bad = "state=dead,asleep&queue=a+b&jobType=%20&tenant=%C3%A4&tag=&q=%00&from=soon&to=x&cursor=x&limit=0&nonsense=1";
        assert_eq!(
            server.get(&format!("/admin/jobs?{bad}")).invalid_fields(),
            ["cursor", "from", "jobType", "limit", "nonsense", "q", "queue", "state", "tag", "tenant", "to"]
        );
        assert_eq!(server.get("/admin/jobs?queue=a&queue=b").invalid_fields(), ["queue"]);
        assert_eq!(server.get("/admin/dlq?state=dead&limit=1001").invalid_fields(), ["limit", "state"]);
        for path in ["queues", "workers", "nodes"] {
            assert_eq!(server.get(&format!("/admin/{path}?limit=x&x=1")).invalid_fields(), ["limit", "x"], "{path}");
        }
        assert_eq!(server.get(&format!("/admin/jobs/{UNKNOWN_ID}/logs?cursor=x")).invalid_fields(), ["cursor"]);
        server.get("/admin/nonsense").problem(404, "not_found");
        server.call("DELETE", "/admin/jobs", &[], "").problem(405, "method_not_allowed");
    }
}

#[test]
fn a_job_is_shown_in_full_with_its_payload_unchanged() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let body = r#"{"jobType": "t", "payload": {"b":1.0,  "a":[1e2]}, "retry": {"baseSeconds": 3600}, "timeoutSeconds": 5}"#;
        let id = server.send("POST", "/jobs", body).accepted_job_id();
        let token = lease(&server);
        let lines: Vec<Value> = (0..3).map(|n| json!({"message": format!("line {n}"), "level": "warn"})).collect();
        assert_eq!(server.post(&format!("/worker/leases/{token}/logs"), &json!({"lines": lines})).status, 200);
        assert_eq!(server.post(&format!("/worker/leases/{token}/fail"), &json!({"error": "no luck"})).status, 200);
        let answer = server.get(&format!("/admin/jobs/{id}"));
        assert!(answer.body.contains(r#""payload":{"b":1.0,  "a":[1e2]}"#), "{answer:?}");
        let shown = answer.json();
        assert_eq!(
            (&shown["state"], &shown["status"], &shown["attemptsUsed"]),
            (&json!("retrying"), &json!("PENDING"), &json!(1))
        );
        assert_eq!((&shown["timeoutSeconds"], &shown["leaseSeconds"]), (&json!(5.0), &json!(30.0)));
        let attempt = &shown["attempts"][0];
        assert_eq!(
            (&attempt["outcome"], &attempt["workerId"], &attempt["error"]),
            (&json!("failed"), &json!("w"), &json!("no luck"))
        );
        let ended = json!({"at": attempt["endedAt"], "event": "ended", "state": "retrying", "attempt": 1, "outcome": "failed", "workerId": "w"});
        assert_eq!((&shown["transitions"][2], shown["transitions"].as_array().unwrap().len()), (&ended, 3));
        assert_eq!(shown["logs"], server.get(&format!("/admin/jobs/{id}/logs")).json());

        let first = server.get(&format!("/admin/jobs/{id}/logs?limit=2")).json();
        let cursor = first["nextCursor"].as_str().unwrap();
        let rest = server.get(&format!("/admin/jobs/{id}/logs?limit=2&cursor={cursor}")).json();
        let lines = [first["items"].as_array().unwrap().clone(), rest["items"].as_array().unwrap().clone()].concat();
        let messages: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
        assert_eq!(messages, ["line 0", "line 1", "line 2"]);
        assert_eq!((&lines[2]["level"], &lines[2]["attempt"]), (&json!("warn"), &json!(1)));
        // The sequence number of the last line is a valid cursor.
        let seq = lines[2]["seq"].to_string();
        let none = server.get(&format!("/admin/jobs/{id}/logs?cursor={seq}")).json();
        assert_eq!(none, json!({"items": [], "nextCursor": null}));
        for id in [UNKNOWN_ID, "nonsense"] {
            server.get(&format!("/admin/jobs/{id}")).problem(404, "job_not_found");
            server.get(&format!("/admin/jobs/{id}/logs")).problem(404, "job_not_found");
            for what in ["retry", "cancel"] {
                act(&server, id, what).problem(404, "job_not_found");
            }
        }
    }
}

#[test]
fn jobs_are_retried_cancelled_and_reprioritised_where_their_state_allows() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let id = dead(&server, &json!({"jobType": "t"}));
        let priority = |id: &str, body: &str| server.send("POST", &format!("/admin/jobs/{id}/priority"), body);
        priority(&id, r#"{"priority": 1}"#).problem(409, "job_finished");
        let retried = act(&server, &id, "retry");
        assert_eq!(
            (retried.status, retried.json()),
            (200, json!({"jobId": id, "status": "PENDING", "state": "pending"}))
        );
        act(&server, &id, "retry").problem(409, "not_finished");
        assert_eq!(priority(&id, r#"{"priority": -5}"#).status, 200);
        assert_eq!(server.get(&format!("/admin/jobs/{id}")).json()["priority"], -5);
        assert_eq!(priority(&id, r#"{"priority": 1001, "x": 1}"#).invalid_fields(), ["priority", "x"]);
        assert_eq!(priority(&id, "{}").invalid_fields(), ["priority"]);
        priority(&id, "[").problem(400, "malformed_request");
        priority(UNKNOWN_ID, r#"{"priority": 1}"#).problem(404, "job_not_found");

        for _ in 0..2 {
            let cancelled = act(&server, &id, "cancel");
            assert_eq!((cancelled.status, &cancelled.json()["state"]), (202, &json!("cancelled")));
        }
        assert_eq!(act(&server, &id, "retry").status, 200);
        let token = lease(&server);
        assert_eq!(act(&server, &id, "cancel").json()["state"], "running");
        assert_eq!(server.post(&format!("/worker/leases/{token}/complete"), &json!({})).json()["status"], "COMPLETED");
        for what in ["retry", "cancel"] {
            let refused = act(&server, &id, what).problem(409, "job_finished");
            assert!(refused["detail"].as_str().unwrap().contains("completed"), "{refused}");
        }
    }
}

#[test]
fn dead_jobs_are_listed_and_redriven_in_bounded_steps() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let (a, b, c) = (
            dead(&server, &json!({"jobType": "t", "queue": "q"})),
            dead(&server, &json!({"jobType": "t", "queue": "q"})),
            dead(&server, &json!({"jobType": "t"})),
        );
        let waiting = job(&server, &json!({"jobType": "t", "hold": true}));
        let cancelled = job(&server, &json!({"jobType": "t", "queue": "q"}));
        assert_eq!(act(&server, &cancelled, "cancel").status, 202);
        assert_eq!(ids(&server.get("/admin/dlq").json()), [c.as_str(), &b, &a]);
        assert_eq!(ids(&server.get("/admin/dlq?queue=q&limit=1").json()), [b.as_str()]);

        let redrive = |body: Value| server.post("/admin/dlq/redrive", &body);
        let one = redrive(json!({"filter": {"queue": "q"}, "limit": 1}));
        let cursor = one.json()["nextCursor"].clone();
        assert_eq!((one.status, one.json()), (200, json!({"retried": [b], "more": true, "nextCursor": cursor})));
        // The job dies again at once, and lies behind the cursor.
        kill(&server);
        let rest = redrive(json!({"filter": {"queue": "q"}, "cursor": cursor})).json();
        assert_eq!(rest, json!({"retried": [a], "more": false}));
        assert_eq!(redrive(json!({"filter": {"queue": "q"}})).json(), json!({"retried": [b], "more": false}));
        assert_eq!(redrive(json!({"filter": {"queue": "q"}})).json(), json!({"retried": [], "more": false}));
        let named = redrive(json!({"jobIds": [c, waiting, cancelled, UNKNOWN_ID]})).json();
        assert_eq!((&named["retried"], &named["more"]), (&json!([c]), &json!(false)));
        let refused: Vec<(&Value, &Value)> =
            named["refused"].as_array().unwrap().iter().map(|job| (&job["jobId"], &job["code"])).collect();
        let expected =
            [(waiting.as_str(), "not_finished"), (&cancelled, "job_finished"), (UNKNOWN_ID, "job_not_found")];
        let refusals: Vec<(&str, &str)> =
            refused.iter().map(|(id, code)| (id.as_str().unwrap(), code.as_str().unwrap())).collect();
        assert_eq!(refusals, expected);
        assert_eq!(server.get("/admin/dlq").json()["items"], json!([]));
        assert_eq!(
            server.get(&format!("/admin/jobs/{cancelled}")).json()["state"],
            "cancelled",
            "a cancelled job is not redriven"
        );

        assert_eq!(redrive(json!({})).invalid_fields(), ["filter"]);
        assert_eq!(redrive(json!({"jobIds": [c], "filter": {}})).invalid_fields(), ["jobIds"]);
        assert_eq!(redrive(json!({"jobIds": [c], "cursor": cursor})).invalid_fields(), ["cursor"]);
        assert_eq!(redrive(json!({"filter": {}, "cursor": "next"})).invalid_fields(), ["cursor"]);
        let bad = json!({"filter": {"state": "dead", "queue": "a b"}, "limit": 0, "every": true});
        assert_eq!(redrive(bad).invalid_fields(), ["every", "filter.queue", "filter.state", "limit"]);
        assert_eq!(redrive(json!({"filter": {}})).invalid_fields(), ["filter"], "every dead job requires `all`");
        assert_eq!(redrive(json!({"filter": {"queue": "q"}, "all": true})).invalid_fields(), ["all"]);
        assert_eq!(redrive(json!({"all": true})).json(), json!({"retried": [], "more": false}));
        assert_eq!(redrive(json!({"jobIds": vec![UNKNOWN_ID; 1_001]})).invalid_fields(), ["jobIds"]);
    }
}

#[test]
fn a_purge_counts_and_removes_dead_jobs_only() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let id = dead(&server, &json!({"jobType": "t"}));
        let cancelled = job(&server, &json!({"jobType": "t"}));
        assert_eq!(act(&server, &cancelled, "cancel").status, 202);
        let purge = |body: Value| server.post("/admin/dlq/purge", &body);
        assert_eq!(purge(json!({"olderThanSeconds": 0, "dryRun": true})).json(), json!({"count": 1, "more": false}));
        assert_eq!(purge(json!({"olderThanSeconds": 3600, "dryRun": true})).json()["count"], 0);
        assert_eq!(purge(json!({"olderThanSeconds": 3600})).json()["count"], 0);
        assert_eq!(server.get(&format!("/admin/jobs/{id}")).status, 200);
        assert_eq!(purge(json!({"olderThanSeconds": 0})).json(), json!({"count": 1, "more": false}));
        server.get(&format!("/admin/jobs/{id}")).problem(404, "job_not_found");
        assert_eq!(server.get(&format!("/admin/jobs/{cancelled}")).status, 200);
        assert_eq!(purge(json!({})).invalid_fields(), ["olderThanSeconds"]);
        assert_eq!(
            purge(json!({"olderThanSeconds": -1, "dryRun": "yes", "x": 1})).invalid_fields(),
            ["dryRun", "olderThanSeconds", "x"]
        );
    }
}

#[test]
fn queues_are_listed_in_pages_paused_and_resumed() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        for queue in ["a", "b", "c"] {
            job(&server, &json!({"jobType": "t", "queue": queue}));
        }
        let put = |name: &str, body: &str| server.send("PUT", &format!("/admin/queues/{name}"), body);
        let paused = put("b", r#"{"paused": true}"#);
        assert_eq!((paused.status, &paused.json()["paused"]), (200, &json!(true)));
        assert_eq!(server.get("/admin/queues/b").json()["counts"], json!({"pending": 1}));
        let first = server.get("/admin/queues?limit=2").json();
        assert_eq!((&first["items"][1]["name"], &first["items"][1]["paused"]), (&json!("b"), &json!(true)));
        let rest =
            server.get(&format!("/admin/queues?limit=2&cursor={}", first["nextCursor"].as_str().unwrap())).json();
        assert_eq!((rest["items"].as_array().unwrap().len(), &rest["items"][0]["name"]), (1, &json!("c")));
        assert_eq!((&rest["nextCursor"], &rest["items"][0]["counts"]), (&Value::Null, &json!({"pending": 1})));
        assert_eq!(put("b", r#"{"paused": false}"#).json()["paused"], false);
        assert_eq!(server.get("/admin/queues/empty").json(), json!({"name": "empty", "paused": false, "counts": {}}));
        assert_eq!(put("b", r#"{"paused": 1, "maxConcurrency": 1}"#).invalid_fields(), ["maxConcurrency", "paused"]);
        assert_eq!(put("b", "{}").invalid_fields(), ["paused"]);
        assert_eq!(put("not%20good", r#"{"paused": true}"#).invalid_fields(), ["name"]);
        server.get("/admin/queues/not%20good").problem(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_and_nodes_are_listed_with_unserved_job_types_and_the_leader() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        job(&server, &json!({"jobType": "known"}));
        job(&server, &json!({"jobType": "unknown"}));
        let store = env.store().await;
        for name in ["one", "two"] {
            let worker = WorkerInfo {
                job_types: Some(vec![JobType::new("known").unwrap()]),
                concurrency: 4,
                ..WorkerInfo::any(WorkerName::new(name).unwrap())
            };
            store.register_worker(&worker).await.unwrap();
        }
        let first = server.get("/admin/workers?limit=1").json();
        assert_eq!(first["unserved"], json!([{"queue": "default", "jobType": "unknown"}]));
        let mut item = first["items"][0].clone();
        assert!(item["startedAt"].take().is_string() && item["lastSeenAt"].take().is_string());
        assert!(item["silentSeconds"].take().is_number());
        assert!(item["freeSlots"].take().is_number());
        assert_eq!(
            item,
            json!({"workerId": "one", "state": "live", "queues": ["*"], "jobTypes": ["known"], "concurrency": 4,
                   "freeSlots": null, "directive": "run", "startedAt": null, "lastSeenAt": null,
                   "silentSeconds": null})
        );
        let rest = server.get(&format!("/admin/workers?cursor={}", first["nextCursor"].as_str().unwrap())).json();
        assert_eq!((&rest["items"][0]["workerId"], &rest["nextCursor"]), (&json!("two"), &Value::Null));

        let nodes = eventually("the server leads", || {
            Some(server.get("/admin/nodes").json()).filter(|nodes| nodes["items"][0]["leader"] == true)
        });
        let node = &nodes["items"][0];
        assert_eq!(
            (&node["address"], &node["roles"]),
            (&json!(server.address), &json!(["api", "coordinator"])),
            "{nodes}"
        );
        for field in ["nodeId", "startedAt", "lastSeenAt"] {
            assert!(node[field].is_string(), "{nodes}");
        }
        assert!(nodes["nextCursor"].is_null(), "{nodes}");
    }
}
