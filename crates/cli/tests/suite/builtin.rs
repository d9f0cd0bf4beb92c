//! The built-in job types, run by the real worker.

mod command;
mod http;

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    harness::{TestEnv, each_database},
    worker::WorkerProcess,
};

/// How long the worker waits for a handler to stop before it drops it.
const GRACE: Duration = Duration::from_secs(5);

#[test]
fn noop_and_echo_complete_and_echo_returns_every_byte() {
    for env in each_database() {
        let _worker = WorkerProcess::start(&env, &[]);
        let payload = r#"{"b":  1.50, "a": [1e3, "\u00e9é", null], "b": 2}"#;
        let echo = env.enqueue(&["orchestrix.echo", "--payload", payload]).to_string();
        let noop = env.enqueue_builtin("noop", &json!({"any": "thing"}), &[]);
        env.wait_for_state(&echo, "completed");
        let shown = env.run(&["jobs", "get", &echo, "--output", "jsonl"]).success().stdout;
        assert!(shown.contains(&format!("\"result\":{payload}")), "{shown}");
        assert_eq!(env.wait_for_state(&noop, "completed")["result"], json!(null));
    }
}

#[test]
fn sleep_completes_and_stops_when_cancelled() {
    for env in each_database() {
        // The worker learns of a cancel with its next heartbeat.
        let _worker = WorkerProcess::start(&env, &["--heartbeat-interval", "50ms"]);
        let (short, long) = (
            env.enqueue_builtin("sleep", &json!({"seconds": 0.05}), &[]),
            env.enqueue_builtin("sleep", &json!({"seconds": 600}), &[]),
        );
        env.wait_for_state(&short, "completed");
        env.wait_for_state(&long, "running");
        let asked = Instant::now();
        env.run(&["jobs", "cancel", &long]).success();
        env.wait_for_state(&long, "cancelled");
        assert!(asked.elapsed() < GRACE, "the handler did not stop by itself");
        let late =
            env.enqueue_builtin("sleep", &json!({"seconds": 600}), &["--timeout", "100ms", "--max-attempts", "1"]);
        assert_eq!(env.wait_for_state(&late, "dead")["attempts"][0]["outcome"], "timed_out");
    }
}

#[test]
fn fail_fails_as_its_payload_says() {
    for env in each_database() {
        let _worker = WorkerProcess::start(&env, &[]);
        let fails = |payload, flags: &[&str]| env.enqueue_builtin("fail", &payload, flags);
        let mends = env.wait_for_state(&fails(json!({"untilAttempt": 3}), &[]), "completed");
        assert_eq!(mends["attempts"].as_array().unwrap().len(), 3, "{mends:#}");
        let never = env.wait_for_state(&fails(json!(null), &["--max-attempts", "2"]), "dead");
        assert_eq!(never["attempts"].as_array().unwrap().len(), 2, "{never:#}");
        assert_eq!(
            env.wait_for_fatal_error(&fails(json!({"message": "so be it", "retryable": false}), &[])),
            "so be it"
        );
    }
}

#[test]
fn an_invalid_payload_is_fatal_and_names_the_field() {
    let env = TestEnv::sqlite();
    let _worker = WorkerProcess::start(&env, &[]);
    for (name, payload, text) in [
        ("sleep", json!(null), "missing field `seconds`"),
        ("sleep", json!({"seconds": "1"}), "`seconds`"),
        ("sleep", json!({"seconds": -1}), "`seconds`"),
        ("sleep", json!({"seconds": 1, "minutes": 2}), "unknown field `minutes`"),
        ("sleep", json!([1]), "must be an object"),
        ("fail", json!({"untilAttempt": 0.5}), "`untilAttempt`"),
        ("fail", json!({"until": 2}), "unknown field `until`"),
        ("http", json!({"uri": "http://a"}), "unknown field `uri`"),
        ("http", json!({"url": "ftp://a"}), "`url`"),
        ("command", json!({"program": "sh", "shell": true}), "unknown field `shell`"),
    ] {
        let error = env.wait_for_fatal_error(&env.enqueue_builtin(name, &payload, &[]));
        assert!(error.contains(text), "{name} {payload}: {error}");
    }
}
