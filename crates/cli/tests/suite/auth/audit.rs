//! The audit records every operator action: actor, action, target, request id and outcome.

use serde_json::{Value, json};

use super::{key_id, key_secret, run_with_key, start_server_with_auth};
use crate::harness::{CliOutput, each_database};

const UNKNOWN_ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

#[test]
fn every_operator_action_writes_one_audit_entry_without_secrets() {
    for env in each_database() {
        let [client, operator, admin] = ["client", "operator", "admin"].map(|role| env.create_key(role, &[]));
        let server = start_server_with_auth(&env);
        let job = server
            .request_with_key(&client, "POST", "/jobs", r#"{"jobType": "t", "payload": "sesame"}"#)
            .accepted_job_id();
        let path = |rest: &str| rest.replace("{id}", &job);
        // Key, request, body and outcome of each action.
        let actions = [
            (&operator, "PUT /admin/queues/q", r#"{"paused": true}"#, "200"),
            (&operator, "POST /admin/jobs/{id}/retry", "", "409 not_finished"),
            (&operator, "POST /admin/jobs/{id}/cancel", "", "202"),
            (&operator, "POST /jobs/{id}/cancel", "", "202"),
            (&operator, "POST /jobs/{id}/release", "", "409 job_finished"),
            (&operator, "POST /admin/jobs/{id}/priority", r#"{"priority": 5}"#, "409 job_finished"),
            (
                &operator,
                "PUT /schedules/s",
                r#"{"everySeconds": 60, "job": {"jobType": "t", "payload": "sesame"}}"#,
                "201",
            ),
            (&operator, "POST /schedules/s/trigger", "", "202"),
            (&operator, "POST /schedules/missing/pause", "", "404 schedule_not_found"),
            (&operator, "PUT /admin/queues/q", r#"{"paused": 1}"#, "422 validation_failed"),
            (&admin, "POST /admin/keys", r#"{"name": "n", "role": "client"}"#, "201"),
            (&operator, "DELETE /schedules/s", "", "204"),
        ];
        let mut made = None;
        for (i, (key, what, body, outcome)) in actions.iter().enumerate() {
            let (method, target) = what.split_once(' ').unwrap();
            let (bearer, request) = (format!("Bearer {key}"), format!("request-{i}"));
            let headers =
                [("authorization", bearer.as_str()), ("content-type", "application/json"), ("x-request-id", &request)];
            let answer = server.call(method, &path(target), &headers, body);
            assert_eq!(answer.status.to_string(), outcome.split(' ').next().unwrap(), "{what}: {answer:?}");
            made = made
                .or_else(|| Some(answer.json().get("key")?.as_str()?.to_owned()).filter(|_| !answer.body.is_empty()));
        }
        // Reads are not audited. Neither are requests that fail authentication, so that a client cannot fill the
        // audit.
        assert_eq!(server.request_with_key(&operator, "GET", "/admin/jobs", "").status, 200);
        server.request_with_key(&client, "PUT", "/admin/queues/q", r#"{"paused": true}"#).problem(403, "forbidden");
        server.request_with_key("x", "PUT", "/admin/queues/q", r#"{"paused": true}"#).problem(401, "unauthenticated");
        let local = |arguments: &[&str]| CliOutput::run(env.command(arguments).env("USER", "alice"));
        local(&["queues", "pause", "by-hand"]).success();
        local(&["jobs", "retry", UNKNOWN_ID]).exits_with(3, UNKNOWN_ID);
        run_with_key(&server, &operator, &["queues", "pause", "by-command"]).success();

        let audit = server.request_with_key(&operator, "GET", "/admin/audit?limit=100", "").json();
        let mut entries: Vec<&Value> = audit["items"].as_array().unwrap().iter().collect();
        entries.sort_by_key(|entry| entry["seq"].as_i64());
        // The first keys were created directly on the database.
        let (first, rest) = entries.split_at(3);
        for (entry, role) in first.iter().zip(["client", "operator", "admin"]) {
            assert!(entry["actor"].as_str().unwrap().starts_with("local:"), "{entry}");
            assert_eq!((&entry["action"], &entry["detail"]["role"]), (&json!("POST /admin/keys"), &json!(role)));
        }
        assert_eq!(rest.len(), actions.len() + 3, "{audit:#}");
        for (i, ((key, what, body, outcome), entry)) in actions.iter().zip(rest).enumerate() {
            let (method, target) = what.split_once(' ').unwrap();
            assert_eq!(entry["actor"], format!("key:{}", key_id(key)));
            assert!(entry["action"].as_str().unwrap().starts_with(&format!("{method} /")), "{entry}");
            assert_eq!((&entry["target"], &entry["outcome"]), (&json!(path(target)), &json!(outcome)), "{entry}");
            assert_eq!(entry["requestId"], format!("request-{i}"));
            // Bodies with a payload and bodies that failed validation are not stored.
            let kept = match what.contains("/schedules") || body.is_empty() || outcome.starts_with("422") {
                true => Value::Null,
                false => serde_json::from_str(body).unwrap(),
            };
            assert_eq!(entry.get("detail").unwrap_or(&Value::Null), &kept, "{entry}");
        }
        let summary = |entry: &Value| {
            ["actor", "action", "target", "outcome"].map(|field| entry[field].as_str().unwrap().to_owned())
        };
        let last: Vec<_> = rest[actions.len()..].iter().map(|entry| summary(entry)).collect();
        assert_eq!(last[0], ["local:alice", "PUT /admin/queues/{name}", "/admin/queues/by-hand", "200"]);
        let retried = format!("/admin/jobs/{UNKNOWN_ID}/retry");
        assert_eq!(last[1], ["local:alice", "POST /admin/jobs/{jobId}/retry", &retried, "404 job_not_found"]);
        let actor = format!("key:{}", key_id(&operator));
        assert_eq!(last[2], [&actor, "PUT /admin/queues/{name}", "/admin/queues/by-command", "200"]);

        let text = audit.to_string();
        for secret in [&client, &operator, &admin, &made.unwrap()].map(|key| key_secret(key)) {
            assert!(!text.contains(secret), "{audit:#}");
        }
        assert!(!text.contains("sesame"), "{audit:#}");
    }
}
