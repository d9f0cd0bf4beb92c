//! Creating, updating and listing schedules.

mod actions;
mod next;
mod refusals;

use orchestrix_core::tzdb_version;
use serde_json::{Value, json};

use crate::harness::{TestEnv, each_database_and_server};

/// Its first time is far ahead, so that its next times are always the same.
pub(super) const NIGHTLY: [&str; 10] = [
    "schedules",
    "put",
    "nightly",
    "REPORT",
    "--cron",
    "0 9 * * *",
    "--tz",
    "europe/berlin",
    "--start",
    "2099-06-30T12:00:00Z",
];

pub(super) fn put_nightly(env: &TestEnv, more: &[&str]) -> Value {
    env.json(&[&NIGHTLY, more].concat())
}

#[test]
fn a_schedule_is_created_then_unchanged_then_updated() {
    for env in each_database_and_server() {
        let mut created = put_nightly(&env, &["--payload", r#"{"b": 1.0, "a": null}"#]);
        assert_eq!((&created["put"], &created["tzdbVersion"]), (&json!("created"), &json!(tzdb_version())));
        for changing in ["createdAt", "updatedAt", "tzdbVersion"] {
            created[changing] = json!(format!("[{changing}]"));
        }
        insta::assert_snapshot!("a_schedule_as_json", serde_json::to_string_pretty(&created).unwrap());

        let again = put_nightly(&env, &["--payload", r#"{"b": 1.0, "a": null}"#]);
        assert_eq!((&again["put"], &again["createdAt"]), (&json!("unchanged"), &again["updatedAt"]));
        let other = put_nightly(&env, &["--payload", r#"{"b": 2.0, "a": null}"#]);
        assert_eq!((&other["put"], &other["job"]["payload"]["b"]), (&json!("updated"), &json!(2.0)));
        assert_eq!(other["createdAt"], again["createdAt"]);

        let text = env.run(&NIGHTLY).success().stdout;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "nightly updated: 0 9 * * * Europe/Berlin");
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["UTC", "Europe/Berlin", "FROM", "NOW"]);
        assert!(lines[3].starts_with("2099-07-01T07:00:00Z  Wed 2099-07-01 09:00:00 CEST  in "), "{text}");
        assert_eq!(lines.len(), 6, "{text}");
    }
}

#[test]
fn every_flag_reaches_the_schedule() {
    for env in each_database_and_server() {
        let flags = "--every 90s --overlap cancel_running --misfire catch_up --catch-up-limit 7 --jitter 1m --start \
             2099-01-01T00:00:00Z --end 2099-01-02T00:00:00Z --paused --note held --delay 2s --queue q --priority -3 --hold \
             --tenant acme --tags a,b --correlation-id c --max-attempts 2 --timeout 5m --lease 45s --retry-base 500ms \
             --retry-multiplier 3 --retry-max 24h --retry-jitter 0.5 --concurrency-key k --rate-limit-key r \
             --resources cpu=0.5 --payload [1]";
        let flags: Vec<&str> = flags.split_whitespace().collect();
        env.run(&[&["schedules", "put", "sweep", "CLEAN"][..], &flags].concat()).exits_with(0, "held");
        let mut got = env.json(&["schedules", "get", "sweep"]);
        for changing in ["createdAt", "updatedAt", "tzdbVersion"] {
            assert!(got[changing].take().is_string());
        }
        assert_eq!(
            got,
            json!({
                "name": "sweep", "everySeconds": 90.0, "overlap": "cancel_running", "misfire": "catch_up",
                "catchUpLimit": 7, "jitterSeconds": 60.0, "startAt": "2099-01-01T00:00:00Z",
                "endAt": "2099-01-02T00:00:00Z", "paused": true, "note": "held", "createdAt": null, "updatedAt": null,
                "tzdbVersion": null, "unfinishedJobs": [],
                "job": {
                    "jobType": "CLEAN", "payload": [1], "queue": "q", "priority": -3, "delaySeconds": 2.0,
                    "maxAttempts": 2, "timeoutSeconds": 300.0, "leaseSeconds": 45.0,
                    "retry": {"baseSeconds": 0.5, "multiplier": 3.0, "maxSeconds": 86400.0, "jitter": 0.5},
                    "tenant": "acme", "concurrencyKey": "k", "rateLimitKey": "r", "resources": {"cpu": 0.5},
                    "tags": ["a", "b"], "correlationId": "c", "hold": true, "onDependencyFailure": "cancel",
                },
            })
        );
        let text = env.run(&["schedules", "get", "sweep"]).success().stdout;
        for part in ["when             every 1m30s", "state            paused", "misfire          catch_up, at most 7"]
        {
            assert!(text.contains(part), "{part:?} is missing: {text}");
        }
    }
}

#[test]
fn schedules_are_listed_by_name_in_pages() {
    for env in each_database_and_server() {
        put_nightly(&env, &[]);
        env.run(&["schedules", "put", "a", "t", "--every", "24h", "--paused", "--note", "why"]).success();
        env.run(&["schedules", "put", "over", "t", "--every", "1h", "--end", "2020-01-01T00:00:00Z"])
            .exits_with(0, "no time is left");
        let list = env.json(&["schedules", "list"]);
        let names: Vec<&str> =
            list["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
        assert_eq!((names, &list["tzdbVersion"]), (vec!["a", "nightly", "over"], &json!(tzdb_version())));
        assert_eq!(list["items"][1]["nextTime"], "2099-07-01T07:00:00Z");

        let rows = env.run(&["schedules", "list"]).success().stdout;
        let rows: Vec<Vec<&str>> = rows.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
        let cells = |row: usize| rows[row].iter().copied().filter(|cell| !cell.is_empty()).collect::<Vec<_>>();
        assert_eq!(cells(0), ["NAME", "WHEN", "TYPE", "NEXT", "LAST", "STATE", "NOTE"]);
        assert_eq!(cells(1), ["a", "every 1d", "t", "-", "-", "paused", "why"]);
        assert_eq!(cells(2)[..3], ["nightly", "0 9 * * * Europe/Berlin", "REPORT"]);
        assert!(cells(2)[3].starts_with("2099-07-01T07:00:00Z (in "), "{rows:?}");
        assert_eq!(cells(2)[4..], ["-", "active", "-"]);
        assert_eq!(cells(3)[5], "ended");

        let part = env.json(&["schedules", "list", "--limit", "2"]);
        assert_eq!((part["items"].as_array().unwrap().len(), &part["nextCursor"]), (2, &json!("nightly")));
        let rest = env.run(&["schedules", "list", "--cursor", "nightly", "--output", "jsonl"]).success().stdout;
        assert!(rest.starts_with(r#"{"name":"over""#) && rest.lines().count() == 1, "{rest}");
    }
}

#[test]
fn a_paused_schedule_stays_paused_when_it_is_put_again() {
    for env in each_database_and_server() {
        put_nightly(&env, &[]);
        let paused = env.json(&["schedules", "pause", "nightly", "--note", "disk"]);
        let expected = json!({"name": "nightly", "paused": true, "changed": true, "note": "disk"});
        assert_eq!(paused, json!({"items": [expected]}));
        let again = put_nightly(&env, &["--queue", "other"]);
        assert_eq!(
            (&again["put"], &again["paused"], &again["note"]),
            (&json!("updated"), &json!(true), &json!("disk"))
        );
        assert_eq!((&again["nextTimes"], again.get("nextTime")), (&json!([]), None));
        env.run(&[&NIGHTLY[..], &["--queue", "other"]].concat()).exits_with(0, "disk");

        let resumed = env.json(&["schedules", "resume", "nightly"]);
        let expected = json!({"name": "nightly", "paused": false, "changed": true, "nextTime": "2099-07-01T07:00:00Z"});
        assert_eq!(resumed, json!({"items": [expected]}));
        assert_eq!(env.json(&["schedules", "resume", "nightly"])["items"][0]["changed"], json!(false));
        assert!(env.run(&["schedules", "resume", "nightly"]).success().stdout.contains("active"));
    }
}
