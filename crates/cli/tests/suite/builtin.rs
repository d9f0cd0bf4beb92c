//! The built-in job types, run by the real worker.

mod command;
mod http;

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    support::{Place, places},
    worker::Running,
};

/// When a handler that does not stop is dropped.
const GRACE: Duration = Duration::from_secs(5);

#[test]
fn noop_and_echo_complete_and_echo_gives_back_every_byte() {
    for place in places() {
        let _worker = Running::start(&place, &[]);
        let payload = r#"{"b":  1.50, "a": [1e3, "\u00e9é", null], "b": 2}"#;
        let echo = place.enqueue(&["orchestrix.echo", "--payload", payload]).to_string();
        let noop = place.builtin("noop", &json!({"any": "thing"}), &[]);
        place.reaches(&echo, "completed");
        let shown = place.run(&["jobs", "get", &echo, "--output", "jsonl"]).done().stdout;
        assert!(shown.contains(&format!("\"result\":{payload}")), "{shown}");
        assert_eq!(place.reaches(&noop, "completed")["result"], json!(null));
    }
}

#[test]
fn sleep_ends_by_itself_and_stops_when_cancelled() {
    for place in places() {
        // The end of a cancelled job is noticed with the next heartbeat.
        let _worker = Running::start(&place, &["--heartbeat-interval", "50ms"]);
        let (short, long) = (
            place.builtin("sleep", &json!({"seconds": 0.05}), &[]),
            place.builtin("sleep", &json!({"seconds": 600}), &[]),
        );
        place.reaches(&short, "completed");
        place.reaches(&long, "running");
        let asked = Instant::now();
        place.run(&["jobs", "cancel", &long]).done();
        place.reaches(&long, "cancelled");
        assert!(asked.elapsed() < GRACE, "it did not stop by itself");
        let late = place.builtin("sleep", &json!({"seconds": 600}), &["--timeout", "100ms", "--max-attempts", "1"]);
        assert_eq!(place.reaches(&late, "dead")["attempts"][0]["outcome"], "timed_out");
    }
}

#[test]
fn fail_fails_as_it_is_told() {
    for place in places() {
        let _worker = Running::start(&place, &[]);
        let fails = |payload, flags: &[&str]| place.builtin("fail", &payload, flags);
        let mends = place.reaches(&fails(json!({"untilAttempt": 3}), &[]), "completed");
        assert_eq!(mends["attempts"].as_array().unwrap().len(), 3, "{mends:#}");
        let never = place.reaches(&fails(json!(null), &["--max-attempts", "2"]), "dead");
        assert_eq!(never["attempts"].as_array().unwrap().len(), 2, "{never:#}");
        assert_eq!(place.dies_at_once(&fails(json!({"message": "so be it", "retryable": false}), &[])), "so be it");
    }
}

#[test]
fn a_payload_that_does_not_fit_is_fatal_and_names_the_field() {
    let place = Place::sqlite();
    let _worker = Running::start(&place, &[]);
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
        let error = place.dies_at_once(&place.builtin(name, &payload, &[]));
        assert!(error.contains(text), "{name} {payload}: {error}");
    }
}
