//! `jobs enqueue`.

use std::{fs, io::Write, process::Stdio};

use orchestrix_core::JobId;
use serde_json::json;

use crate::harness::{CliOutput, TestEnv, each_database_and_server};

#[test]
fn enqueue_prints_the_job_id_first() {
    for env in each_database_and_server() {
        let ran = env.run(&["jobs", "enqueue", "SEND_EMAIL"]).success();
        let fields: Vec<&str> = ran.stdout.split_whitespace().collect();
        assert!(fields[0].parse::<JobId>().is_ok() && fields[1] == "PENDING" && fields.len() == 2, "{ran:?}");
        let document = env.json(&["jobs", "enqueue", "SEND_EMAIL", "--delay", "1h"]);
        let id = document["jobId"].as_str().unwrap();
        assert_eq!(document, json!({"jobId": id, "status": "PENDING"}));
        let line = env.run(&["jobs", "enqueue", "SEND_EMAIL", "--output", "jsonl"]).success().stdout;
        assert!(line.starts_with(r#"{"jobId":""#) && line.lines().count() == 1, "{line}");
    }
}

#[test]
fn every_flag_reaches_the_job() {
    for env in each_database_and_server() {
        let parent = env.enqueue(&["parent", "--hold", "--tenant", "acme"]).to_string();
        let flags = format!(
            "--queue email --priority -7 --run-at 2100-01-01T00:00:00Z --expires-at 2100-01-02T00:00:00Z \
             --max-attempts 3 --timeout 5m --lease 45s --retry-base 500ms --retry-multiplier 3 --retry-max 24h \
             --retry-jitter 0.5 --depends-on {parent} --on-dependency-failure hold --tenant acme \
             --concurrency-key customer-42 --rate-limit-key smtp --resources cpu=0.5,memoryMiB=512 --tags billing,eu:1 \
             --correlation-id order-9 --idempotency-key key-1"
        );
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let payload = r#"{"to":"user@example.com", "n":1.0}"#;
        let id = env.enqueue(&[&["SEND_EMAIL", "--payload", payload][..], &flags].concat()).to_string();
        let mut job = env.json(&["jobs", "get", &id]);
        for time in ["createdAt", "updatedAt", "eligibleAt"] {
            assert!(job[time].take().as_str().unwrap().ends_with('Z'));
        }
        assert_eq!(job["transitions"].take()[0]["event"], "recorded");
        assert_eq!(
            job,
            json!({
                "jobId": id, "jobType": "SEND_EMAIL", "status": "PENDING", "state": "blocked", "queue": "email",
                "tenant": "acme", "priority": -7, "attemptsUsed": 0, "maxAttempts": 3, "createdAt": null,
                "updatedAt": null, "eligibleAt": null, "cancelRequested": false, "correlationId": "order-9",
                "idempotencyKey": "key-1", "tags": ["billing", "eu:1"],
                "payload": {"to": "user@example.com", "n": 1.0}, "result": null, "attempts": [],
                "earlierAttempts": 0, "transitions": null, "logs": {"items": [], "nextCursor": null},
                "timeoutSeconds": 300.0, "leaseSeconds": 45.0, "leases": 0, "leasesLost": 0,
                "retry": {"baseSeconds": 0.5, "multiplier": 3.0, "maxSeconds": 86400.0, "jitter": 0.5},
                "dependsOn": [parent], "onDependencyFailure": "hold", "expiresAt": "2100-01-02T00:00:00Z",
                "concurrencyKey": "customer-42", "rateLimitKey": "smtp",
                "resources": {"cpu": 0.5, "memoryMiB": 512.0},
            })
        );
        let printed = env.run(&["jobs", "get", &id, "--output", "jsonl"]).success().stdout;
        assert!(printed.contains(payload), "the payload is returned byte for byte: {printed}");
    }
}

#[test]
fn a_payload_comes_from_a_file_or_from_standard_input() {
    let env = TestEnv::sqlite();
    fs::write(env.dir().join("rows.json"), "[1, 2]\n").unwrap();
    let id = env.enqueue(&["t", "--payload", "@rows.json"]).to_string();
    assert_eq!(env.json(&["jobs", "get", &id])["payload"], json!([1, 2]));
    let ran = with_input(&env, &["jobs", "enqueue", "t", "--payload", "-"], "{\"a\": 1}");
    let id = ran.stdout.split_whitespace().next().unwrap();
    assert_eq!(env.json(&["jobs", "get", id])["payload"], json!({"a": 1}));
    let id = env.enqueue(&["t", "--payload", "-5"]).to_string();
    assert_eq!(env.json(&["jobs", "get", &id])["payload"], json!(-5));
}

fn with_input(env: &TestEnv, arguments: &[&str], input: &str) -> CliOutput {
    let mut command = env.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    CliOutput::from(child.wait_with_output().unwrap()).success()
}

#[test]
fn an_idempotency_key_names_one_job_and_another_request_with_it_conflicts() {
    for env in each_database_and_server() {
        let request = ["jobs", "enqueue", "t", "--idempotency-key", "k", "--payload", "1"];
        let first = env.json(&request);
        assert_eq!(env.json(&request), first);
        assert_eq!(env.json(&["jobs", "list"])["items"].as_array().unwrap().len(), 1);
        let other = ["jobs", "enqueue", "t", "--idempotency-key", "k", "--payload", "2"];
        env.run(&other).exits_with(4, first["jobId"].as_str().unwrap()).exits_with(4, "--idempotency-key");
    }
}

#[test]
fn a_file_of_jobs_is_enqueued_as_one_graph() {
    for env in each_database_and_server() {
        let lines = [
            r#"{"jobType": "b", "dependsOn": ["ref:a"], "payload": {"x": 1}}"#,
            "",
            r#"{"jobType": "a", "ref": "a", "queue": "q"}"#,
        ];
        fs::write(env.dir().join("jobs.jsonl"), lines.join("\n")).unwrap();
        let recorded = env.json(&["jobs", "enqueue", "--from-file", "jobs.jsonl"]);
        let ids: Vec<&str> =
            recorded["items"].as_array().unwrap().iter().map(|job| job["jobId"].as_str().unwrap()).collect();
        let b = env.json(&["jobs", "get", ids[0]]);
        assert_eq!((&b["state"], &b["dependsOn"]), (&json!("blocked"), &json!([ids[1]])));
        assert_eq!(env.json(&["jobs", "get", ids[1]])["queue"], "q");

        let ran =
            with_input(&env, &["jobs", "enqueue", "--from-file", "-", "--output", "jsonl"], "{\"jobType\": \"c\"}");
        assert_eq!(ran.stdout.lines().count(), 1);
    }
}

#[test]
fn one_invalid_line_rejects_the_whole_file_and_every_invalid_line_is_named() {
    let env = TestEnv::sqlite();
    env.run(&["migrate"]).success();
    let lines =
        [r#"{"jobType": "a"}"#, r#"{"jobType": "a", "color": "red"}"#, "{", r#"{"jobType": "a", "maxAttempts": 0}"#];
    fs::write(env.dir().join("jobs.jsonl"), lines.join("\n")).unwrap();
    let ran = env.run(&["jobs", "enqueue", "--from-file", "jobs.jsonl"]).exits_with(2, "jobs.jsonl");
    for text in ["line 2: color: ", "line 3: ", "line 4: maxAttempts"] {
        assert!(ran.stderr.contains(text), "{ran:#?}");
    }
    let cycle = r#"{"jobType": "a", "ref": "a", "dependsOn": ["ref:a"]}"#;
    fs::write(env.dir().join("cycle.jsonl"), cycle).unwrap();
    env.run(&["jobs", "enqueue", "--from-file", "cycle.jsonl"]).exits_with(2, "cycle");
    fs::write(env.dir().join("many.jsonl"), "{\"jobType\": \"a\"}\n".repeat(10_001)).unwrap();
    env.run(&["jobs", "enqueue", "--from-file", "many.jsonl"]).exits_with(2, "10000");
    env.run(&["jobs", "enqueue", "t", "--from-file", "jobs.jsonl"]).exits_with(2, "cannot be used with");
    assert_eq!(env.json(&["jobs", "list"]), json!({"items": []}));
}
