//! The worker API, as a worker in any language uses it.

use std::{thread, time::Instant};

use serde_json::{Value, json};

use super::process::ServerProcess;
use crate::harness::each_database;

fn lease(server: &ServerProcess, max: usize) -> Vec<Value> {
    let answer =
        server.post("/worker/leases", &json!({"workerId": "w", "queues": ["*"], "max": max, "waitSeconds": 20}));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["leases"].as_array().unwrap().clone()
}

fn token(lease: &Value) -> &str {
    lease["leaseToken"].as_str().unwrap()
}

#[test]
fn a_lease_carries_everything_a_worker_needs() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let headers = [("content-type", "application/json"), ("traceparent", trace)];
        let body = r#"{"jobType": "t", "payload": {"b":1.0, "a":2}, "timeoutSeconds": 5, "correlationId": "c", "tenant": "acme"}"#;
        let id = server.call("POST", "/jobs", &headers, body).accepted_job_id();
        let leases = lease(&server, 5);
        let [job] = &leases[..] else { panic!("{leases:?}") };
        assert_eq!((&job["jobId"], &job["jobType"], &job["tenant"]), (&id.into(), &"t".into(), &"acme".into()));
        assert_eq!(
            (&job["attempt"], &job["maxAttempts"], &job["timeoutSeconds"]),
            (&1.into(), &10.into(), &5.0.into())
        );
        assert_eq!((&job["correlationId"], &job["traceparent"]), (&"c".into(), &trace.into()));
        assert!(job["leaseExpiresAt"].is_string());
        assert_eq!(server.get(&format!("/jobs/{}", job["jobId"].as_str().unwrap())).json()["status"], "RUNNING");
    }
}

#[test]
fn an_outcome_may_be_repeated_but_not_replaced() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        for ending in ["complete", "fail", "snooze", "release"] {
            server.post("/jobs", &json!({"jobType": ending, "retry": {"baseSeconds": 3600}})).accepted_job_id();
            let job = lease(&server, 1).remove(0);
            let body = match ending {
                "complete" => json!({"result": 1}),
                "fail" => json!({"error": "no luck", "retryAfterSeconds": 3600}),
                "snooze" => json!({"seconds": 3600}),
                _ => json!({}),
            };
            let path = format!("/worker/leases/{}/{ending}", token(&job));
            let first = server.post(&path, &body);
            assert_eq!(first.status, 200, "{ending}: {first:?}");
            let again = server.post(&path, &body);
            assert_eq!((again.status, again.json()), (200, first.json()), "{ending}");
            let other = if ending == "complete" { "fail" } else { "complete" };
            let path = format!("/worker/leases/{}/{other}", token(&job));
            server.post(&path, &json!({"error": "x"})).status.to_string();
            let late = server.post(&path, &if other == "fail" { json!({"error": "x"}) } else { json!({}) });
            late.problem(409, "lease_lost");
            if ending == "release" {
                // The released job is claimable at once; complete it, so that it does not disturb the next round.
                server.post(&format!("/worker/leases/{}/complete", token(&lease(&server, 1)[0])), &json!({}));
            }
        }
        server.post("/worker/leases/nonsense/complete", &json!({})).problem(409, "lease_lost");
        assert_eq!(server.post("/worker/leases/nonsense/fail", &json!({})).invalid_fields(), ["error"]);
    }
}

#[test]
fn a_batch_of_outcomes_gets_one_status_per_item() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        for n in 0..3 {
            server.post("/jobs", &json!({"jobType": "t", "payload": n})).accepted_job_id();
        }
        let jobs = lease(&server, 3);
        let items = json!({"items": [
            {"leaseToken": token(&jobs[0]), "result": 1},
            {"leaseToken": token(&jobs[1]), "outcome": "failed", "error": "x", "retryable": false},
            {"leaseToken": "nonsense"},
            {"leaseToken": token(&jobs[2]), "outcome": "released"},
        ]});
        let answer = server.post("/worker/leases/complete-batch", &items);
        assert_eq!(answer.status, 200, "{answer:?}");
        let items = answer.json()["items"].clone();
        let statuses: Vec<&Value> = items.as_array().unwrap().iter().map(|item| &item["status"]).collect();
        assert_eq!(statuses, [&json!("COMPLETED"), &json!("FAILED"), &json!(null), &json!("PENDING")]);
        assert_eq!(items[2]["code"], "lease_lost");
        let bad = json!({"items": [{"leaseToken": "x", "outcome": "vanished"}, {"outcome": "failed"}]});
        assert_eq!(
            server.post("/worker/leases/complete-batch", &bad).invalid_fields(),
            ["items[0].outcome", "items[1].error", "items[1].leaseToken"]
        );
    }
}

#[test]
fn a_heartbeat_extends_leases_and_reports_cancelled_and_lost_ones() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let (kept, doomed) = (
            server.post("/jobs", &json!({"jobType": "t"})).accepted_job_id(),
            server.post("/jobs", &json!({"jobType": "t"})).accepted_job_id(),
        );
        let jobs = lease(&server, 2);
        let of = |id: &str| jobs.iter().find(|job| job["jobId"] == *id).map(token).unwrap();
        assert_eq!(server.send("POST", &format!("/jobs/{doomed}/cancel"), "").json()["status"], "RUNNING");
        let beat = json!({"workerId": "w", "leaseTokens": [of(&kept), of(&doomed), "nonsense"], "freeSlots": 3});
        let answer = server.post("/worker/heartbeat", &beat).json();
        let states: Vec<&str> =
            answer["leases"].as_array().unwrap().iter().map(|lease| lease["state"].as_str().unwrap()).collect();
        assert_eq!((states, &answer["directive"]), (vec!["held", "cancel", "lost"], &"run".into()));
        assert_eq!(answer["leases"][0]["leaseToken"], of(&kept));
        // Releasing a job whose cancel was requested cancels it.
        assert_eq!(
            server.post(&format!("/worker/leases/{}/release", of(&doomed)), &json!({})).json()["status"],
            "CANCELLED"
        );
        let workers = env.json(&["workers", "list"]);
        assert_eq!(workers["items"][0]["workerId"], "w", "{workers}");
    }
}

#[test]
fn progress_and_log_lines_are_visible() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let id = server.post("/jobs", &json!({"jobType": "t"})).accepted_job_id();
        let job = lease(&server, 1).remove(0);
        let path = |what: &str| format!("/worker/leases/{}/{what}", token(&job));
        let reported =
            server.post(&path("progress"), &json!({"percent": 40, "message": "half way", "checkpoint": {"at": 7}}));
        assert_eq!(reported.status, 200, "{reported:?}");
        assert_eq!(
            server.get(&format!("/jobs/{id}")).json()["progress"],
            json!({"percent": 40.0, "message": "half way"})
        );
        let lines =
            json!({"lines": [{"level": "warn", "message": "one", "at": "2026-01-01T00:00:00Z"}, {"message": "two"}]});
        assert_eq!(server.post(&path("logs"), &lines).status, 200);
        let logs = env.json(&["jobs", "logs", &id]);
        assert_eq!(logs["items"].as_array().unwrap().len(), 2, "{logs}");
        assert_eq!(server.post(&path("progress"), &json!({"percent": 101})).invalid_fields(), ["percent"]);
        assert_eq!(server.post(&path("release"), &json!({})).status, 200);
        server.post(&path("logs"), &lines).problem(409, "lease_lost");
        // The next attempt gets the checkpoint of this one.
        assert_eq!(lease(&server, 1)[0]["checkpoint"], json!({"at": 7}));
    }
}

#[test]
fn long_polling_workers_get_each_job_once() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let begun = Instant::now();
        let mut ids: Vec<String> = thread::scope(|scope| {
            let waiting: Vec<_> = (0..20)
                .map(|n| {
                    let server = &server;
                    scope.spawn(move || {
                        let ask = json!({"workerId": format!("w{n}"), "queues": ["q"], "max": 1, "waitSeconds": 50});
                        server.post("/worker/leases", &ask).json()["leases"][0]["jobId"].as_str().unwrap().to_owned()
                    })
                })
                .collect();
            for _ in 0..20 {
                server.post("/jobs", &json!({"jobType": "t", "queue": "q"})).accepted_job_id();
            }
            waiting.into_iter().map(|waiting| waiting.join().unwrap()).collect()
        });
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 20);
        assert!(begun.elapsed().as_secs() < 40, "they were answered only at the end of their wait");
        // Without jobs a long poll ends empty after its wait.
        let ask = json!({"workerId": "w", "queues": ["q"], "max": 1, "waitSeconds": 0.1});
        assert_eq!(server.post("/worker/leases", &ask).json()["leases"], json!([]));
    }
}
