//! The client API for jobs.

use std::{collections::BTreeSet, thread, time::Instant};

use serde_json::json;

use super::process::ServerProcess;
use crate::harness::each_database;

#[test]
fn a_job_is_accepted_and_shown_at_its_location() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let answer =
            server.post("/jobs", &json!({"jobType": "SEND_EMAIL", "payload": {"to": "a@b.c"}, "correlationId": "c1"}));
        let id = answer.accepted_job_id();
        assert_eq!(answer.header("location"), Some(format!("/jobs/{id}").as_str()));
        assert_eq!(answer.json(), json!({"jobId": id, "status": "PENDING"}));
        let job = server.get(&format!("/jobs/{id}"));
        assert_eq!(job.status, 200);
        let fields: BTreeSet<String> = job.json().as_object().unwrap().keys().cloned().collect();
        let expected = ["correlationId", "createdAt", "jobId", "jobType", "status", "updatedAt"];
        // No payload, and no internals.
        assert_eq!(fields, expected.map(str::to_owned).into());
    }
}

#[test]
fn an_idempotency_key_names_one_job_under_concurrency() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let request = json!({"jobType": "t", "payload": {"a": 1}, "idempotencyKey": "k"});
        let ids: BTreeSet<String> = thread::scope(|scope| {
            let asked =
                (0..16).map(|_| scope.spawn(|| server.post("/jobs", &request).accepted_job_id())).collect::<Vec<_>>();
            asked.into_iter().map(|id| id.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 1);
        let id = ids.first().unwrap();
        // The header equals the field, and white space does not matter.
        let spaced = r#"{ "payload" : {"a":1},  "jobType":"t" }"#;
        let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
        let again = server.call("POST", "/jobs", &headers, spaced);
        assert_eq!(again.accepted_job_id(), *id);
        assert_eq!(again.json(), json!({"jobId": id, "status": "PENDING"}));
        let both = server.call("POST", "/jobs", &headers, r#"{"jobType": "t", "idempotencyKey": "other"}"#);
        assert_eq!(both.invalid_fields(), ["Idempotency-Key"]);
        let other = server.post("/jobs", &json!({"jobType": "t", "payload": {"a": 2}, "idempotencyKey": "k"}));
        assert_eq!(other.problem(422, "idempotency_key_reused")["jobId"], **id);
    }
}

#[test]
fn every_invalid_field_is_reported_at_once_and_nothing_is_stored() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let bad = json!({
            "queue": "a b", "priority": 5000, "delaySeconds": 1, "runAt": "2030-01-01T00:00:00Z", "maxAttempts": 0,
            "tags": ["ok", "not ok"], "nonsense": 1, "dependsOn": ["x"],
        });
        let fields = server.post("/jobs", &bad).invalid_fields();
        let expected = ["dependsOn[0]", "jobType", "maxAttempts", "nonsense", "priority", "queue", "runAt", "tags[1]"];
        assert_eq!(fields, expected);
        server.send("POST", "/jobs", "{").problem(400, "malformed_request");
        server.send("POST", "/jobs", "[]").problem(400, "malformed_request");
        server.call("POST", "/jobs", &[("content-type", "text/plain")], "{}").problem(415, "unsupported_media_type");
        assert_eq!(env.json(&["jobs", "list"])["items"], json!([]));
    }
}

#[test]
fn a_batch_is_a_graph_and_all_or_nothing() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let jobs = json!({"jobs": [
            {"jobType": "b", "dependsOn": ["ref:a"]}, {"jobType": "a", "ref": "a"}, {"jobType": "c", "idempotencyKey": "k"}]});
        let answer = server.post("/jobs/batch", &jobs);
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(answer.json()["jobs"].as_array().unwrap().len(), 3);
        let cycle = json!({"jobs": [
            {"jobType": "a", "ref": "a", "dependsOn": ["ref:b"]}, {"jobType": "b", "ref": "b", "dependsOn": ["ref:a"]}]});
        assert!(!server.post("/jobs/batch", &cycle).invalid_fields().is_empty());
        let one_bad = json!({"jobs": [{"jobType": "x"}, {"jobType": ""}]});
        assert_eq!(server.post("/jobs/batch", &one_bad).invalid_fields(), ["jobs[1].jobType"]);
        assert_eq!(env.json(&["jobs", "list"])["items"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn an_unknown_or_malformed_id_is_404() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        for id in ["0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70", "nonsense", "%00", "%ff", "..%2f..%2fetc"] {
            server.get(&format!("/jobs/{id}")).problem(404, "job_not_found");
            server.get(&format!("/jobs/{id}/result")).problem(404, "job_not_found");
            server.send("POST", &format!("/jobs/{id}/cancel"), "").problem(404, "job_not_found");
        }
        server.get("/nonsense").problem(404, "not_found");
        server.call("DELETE", "/jobs", &[], "").problem(405, "method_not_allowed");
    }
}

#[test]
fn a_result_is_available_once_the_job_has_completed() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let id = server.post("/jobs", &json!({"jobType": "t"})).accepted_job_id();
        server.get(&format!("/jobs/{id}/result")).problem(409, "not_finished");
        let lease = server.post("/worker/leases", &json!({"workerId": "w", "queues": ["*"], "max": 1}));
        let token = lease.json()["leases"][0]["leaseToken"].as_str().unwrap().to_owned();
        let done = server.send("POST", &format!("/worker/leases/{token}/complete"), r#"{"result": {"b":1.0, "a":2}}"#);
        assert_eq!(done.json(), json!({"jobId": id, "status": "COMPLETED"}));
        assert_eq!(server.get(&format!("/jobs/{id}/result")).body, r#"{"result":{"b":1.0, "a":2}}"#);
        server.send("POST", &format!("/jobs/{id}/cancel"), "").problem(409, "job_finished");
        let id = server.post("/jobs", &json!({"jobType": "t"})).accepted_job_id();
        assert_eq!(server.send("POST", &format!("/jobs/{id}/cancel"), "").json()["status"], "CANCELLED");
        assert_eq!(server.send("POST", &format!("/jobs/{id}/cancel"), "").json()["status"], "CANCELLED");
        server.get(&format!("/jobs/{id}/result")).problem(409, "job_cancelled");
    }
}

#[test]
fn a_held_job_is_not_leased_until_it_is_released() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let id = server.post("/jobs", &json!({"jobType": "t", "hold": true})).accepted_job_id();
        let ask = json!({"workerId": "w", "queues": ["*"], "max": 1});
        assert_eq!(server.post("/worker/leases", &ask).json()["leases"], json!([]));
        assert_eq!(
            server.send("POST", &format!("/jobs/{id}/release"), "").json(),
            json!({"jobId": id, "status": "PENDING"})
        );
        assert_eq!(server.post("/worker/leases", &ask).json()["leases"][0]["jobId"], *id);
    }
}

#[test]
fn a_status_long_poll_returns_on_a_change() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let id = server.post("/jobs", &json!({"jobType": "t"})).accepted_job_id();
        let begun = Instant::now();
        let job = thread::scope(|scope| {
            let waits = scope.spawn(|| server.get(&format!("/jobs/{id}?waitSeconds=50")).json());
            server.send("POST", &format!("/jobs/{id}/cancel"), "");
            waits.join().unwrap()
        });
        // If the cancel came first, the long poll returned at once.
        assert_eq!(job["status"], "CANCELLED");
        assert!(begun.elapsed().as_secs() < 30);
        assert_eq!(server.get(&format!("/jobs/{id}?waitSeconds=x")).invalid_fields(), ["waitSeconds"]);
        assert_eq!(server.get(&format!("/jobs/{id}?waitSeconds=61")).invalid_fields(), ["waitSeconds"]);
    }
}
