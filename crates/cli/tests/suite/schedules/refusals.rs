//! Invalid schedules and their error messages.

use super::{NIGHTLY, put_nightly};
use crate::harness::{CliOutput, TestEnv, each_database_and_server, orchestrix};

#[test]
fn an_invalid_expression_is_marked_and_no_database_is_created() {
    let env = TestEnv::sqlite();
    let put = ["schedules", "put", "s", "t", "--cron", "0 9 * 13 *"];
    let ran = env.run(&put).exits_with(2, "month (character 7): 13 ");
    assert!(ran.stderr.contains("\n  0 9 * 13 *\n        ^\n"), "{}", ran.stderr);
    let next = ["schedules", "next", "--cron", "* 9-25 * * *"];
    let ran = CliOutput::run(&mut orchestrix(&next)).exits_with(2, "hour (character 5)");
    assert!(ran.stderr.contains("\n  * 9-25 * * *\n      ^\n"), "{}", ran.stderr);
    env.run(&["schedules", "put", "s", "t", "--cron", "* * *"])
        .exits_with(2, "5 fields")
        .exits_with(2, "\n  * * *\n       ^\n");
    env.run(&["schedules", "put", "s", "t", "--cron", "0 0 30 2 *"]).exits_with(2, "cron");
    assert!(!env.dir().join("jobs.db").exists());
}

#[test]
fn a_cadence_is_a_valid_expression_or_interval() {
    let env = TestEnv::sqlite();
    let put = |more: &[&str]| env.run(&[&["schedules", "put", "s", "t"], more].concat());
    put(&["--cron", "@daily", "--tz", "Europe/Berln"]).exits_with(2, "Europe/Berlin?");
    put(&["--cron", "@daily", "--timezone", "Nowhere/Land"]).exits_with(2, "IANA");
    put(&["--every", "500ms"]).exits_with(2, "from 1 to ");
    put(&["--every", "soon"]).exits_with(2, "duration");
    put(&["--every", "1h", "--cron", "@daily"]).exits_with(2, "cannot be used with");
    put(&["--every", "1h", "--tz", "UTC"]).exits_with(2, "cannot be used with");
    put(&[]).exits_with(2, "--cron <EXPRESSION>");
    put(&["--every", "1h", "--overlap", "never"]).exits_with(2, "skip, allow, buffer_one, cancel_running");
    put(&["--every", "1h", "--misfire", "never"]).exits_with(2, "skip, fire_once, catch_up");
    env.run(&["schedules", "put", "a b", "t", "--every", "1h"]).exits_with(2, "a b");
    for next in [&["s", "--every", "1h"][..], &["--every", "1h", "-n", "0"], &[]] {
        env.run(&[&["schedules", "next"], next].concat()).exits_with(2, "error: ");
    }
    assert!(!env.dir().join("jobs.db").exists());
}

#[test]
fn an_invalid_definition_is_not_stored() {
    for env in each_database_and_server() {
        let put = |more: &[&str]| env.run(&[&["schedules", "put", "s", "t", "--every", "1h"], more].concat());
        let (start, end) = ("2030-01-02T00:00:00Z", "2030-01-01T00:00:00Z");
        put(&["--start", start, "--end", end]).exits_with(2, "endAt: ");
        put(&["--jitter", "2h"]).exits_with(2, "jitterSeconds: ");
        put(&["--catch-up-limit", "0"]).exits_with(2, "catchUpLimit: ");
        put(&["--note", &"x".repeat(1_001)]).exits_with(2, "note: ");
        put(&["--max-attempts", "0"]).exits_with(2, "job.maxAttempts");
        put(&["--payload", "{"]).exits_with(2, "--payload");
        assert_eq!(env.json(&["schedules", "list"])["items"], serde_json::json!([]));
        put_nightly(&env, &[]);
        env.run(&["schedules", "pause", "nightly", "--note", &"x".repeat(1_001)]).exits_with(2, "note: ");
        assert_eq!(env.json(&["schedules", "get", "nightly"])["paused"], false);
    }
}

#[test]
fn an_unknown_schedule_is_not_found() {
    for env in each_database_and_server() {
        env.migrate();
        for command in ["get", "pause", "resume", "trigger", "next", "occurrences", "delete --yes", "delete --dry-run"]
        {
            let arguments: Vec<&str> = ["schedules"].into_iter().chain(command.split(' ')).chain(["missing"]).collect();
            let ran = env.run(&arguments).exits_with(3, "missing").exits_with(3, "`orchestrix schedules list`");
            assert_eq!((ran.stdout.as_str(), command), ("", command));
        }
        env.run(&["schedules", "backfill", "missing", "--from", "1h"]).exits_with(3, "missing");
        // Existing schedules named beside it are still handled.
        env.run(&NIGHTLY).success();
        let ran = env.run(&["schedules", "pause", "missing", "nightly"]).exits_with(3, "missing");
        assert!(ran.stdout.contains("nightly  paused"), "{ran:?}");
    }
}

#[test]
fn reading_creates_no_file() {
    let env = TestEnv::sqlite();
    env.run(&["schedules", "list"]).exits_with(5, "jobs.db");
    assert!(!env.dir().join("jobs.db").exists());
}

#[test]
fn completions_contain_the_policies() {
    for shell in ["bash", "fish", "zsh"] {
        let script = CliOutput::run(&mut orchestrix(&["completions", shell])).success().stdout;
        for item in ["backfill", "catch-up-limit", "buffer_one", "fire_once"] {
            assert!(script.contains(item), "{item} is missing for {shell}");
        }
    }
}
