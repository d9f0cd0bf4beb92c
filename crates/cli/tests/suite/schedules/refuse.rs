//! What is refused, and in which words.

use super::{NIGHTLY, put_nightly};
use crate::support::{Place, Ran, bare, everywhere};

#[test]
fn a_bad_expression_is_pointed_at_and_no_database_is_made() {
    let place = Place::sqlite();
    let put = ["schedules", "put", "s", "t", "--cron", "0 9 * 13 *"];
    let ran = place.run(&put).ended(2, "month (character 7): 13 is out of range; 1-12 or JAN-DEC");
    assert!(ran.stderr.contains("\n  0 9 * 13 *\n        ^\n"), "{}", ran.stderr);
    let next = ["schedules", "next", "--cron", "* 9-25 * * *"];
    let ran = Ran::of(&mut bare(&next)).ended(2, "hour (character 5)");
    assert!(ran.stderr.contains("\n  * 9-25 * * *\n      ^\n"), "{}", ran.stderr);
    place
        .run(&["schedules", "put", "s", "t", "--cron", "* * *"])
        .ended(2, "must have 5 fields")
        .ended(2, "\n  * * *\n       ^\n");
    place.run(&["schedules", "put", "s", "t", "--cron", "0 0 30 2 *"]).ended(2, "no year has such a day");
    assert!(!place.folder().join("jobs.db").exists());
}

#[test]
fn when_is_an_expression_or_an_interval_that_makes_sense() {
    let place = Place::sqlite();
    let put = |more: &[&str]| place.run(&[&["schedules", "put", "s", "t"], more].concat());
    put(&["--cron", "@daily", "--tz", "Europe/Berln"]).ended(2, "did you mean Europe/Berlin?");
    put(&["--cron", "@daily", "--timezone", "Nowhere/Land"]).ended(2, "use an IANA name");
    put(&["--every", "500ms"]).ended(2, "in seconds, it must be from 1 to ");
    put(&["--every", "soon"]).ended(2, "must be a duration");
    put(&["--every", "1h", "--cron", "@daily"]).ended(2, "cannot be used with");
    put(&["--every", "1h", "--tz", "UTC"]).ended(2, "cannot be used with");
    put(&[]).ended(2, "--cron <EXPRESSION>");
    put(&["--every", "1h", "--overlap", "never"]).ended(2, "skip, allow, buffer_one, cancel_running");
    put(&["--every", "1h", "--misfire", "never"]).ended(2, "skip, fire_once, catch_up");
    place.run(&["schedules", "put", "a b", "t", "--every", "1h"]).ended(2, "may hold only");
    for next in [&["s", "--every", "1h"][..], &["--every", "1h", "-n", "0"], &[]] {
        place.run(&[&["schedules", "next"], next].concat()).ended(2, "error: ");
    }
    assert!(!place.folder().join("jobs.db").exists());
}

#[test]
fn a_definition_that_breaks_a_rule_is_not_recorded() {
    for place in everywhere() {
        let put = |more: &[&str]| place.run(&[&["schedules", "put", "s", "t", "--every", "1h"], more].concat());
        let (start, end) = ("2030-01-02T00:00:00Z", "2030-01-01T00:00:00Z");
        put(&["--start", start, "--end", end]).ended(2, "endAt: must be after startAt, 2030-01-02T00:00:00Z");
        put(&["--jitter", "2h"]).ended(2, "jitterSeconds: must not be longer");
        put(&["--catch-up-limit", "0"]).ended(2, "catchUpLimit: must be from 1 to 10000");
        put(&["--note", &"x".repeat(1_001)]).ended(2, "note: must have at most 1000 characters");
        put(&["--max-attempts", "0"]).ended(2, "job.maxAttempts");
        put(&["--payload", "{"]).ended(2, "--payload");
        assert_eq!(place.json(&["schedules", "list"])["items"], serde_json::json!([]));
        put_nightly(&place, &[]);
        place.run(&["schedules", "pause", "nightly", "--note", &"x".repeat(1_001)]).ended(2, "note: must have");
        assert_eq!(place.json(&["schedules", "get", "nightly"])["paused"], false);
    }
}

#[test]
fn a_schedule_that_is_not_there_is_not_found() {
    for place in everywhere() {
        place.prepare();
        for command in ["get", "pause", "resume", "trigger", "next", "occurrences", "delete --yes", "delete --dry-run"]
        {
            let arguments: Vec<&str> = ["schedules"].into_iter().chain(command.split(' ')).chain(["nobody"]).collect();
            let ran =
                place.run(&arguments).ended(3, "there is no schedule nobody").ended(3, "`orchestrix schedules list`");
            assert_eq!((ran.stdout.as_str(), command), ("", command));
        }
        place.run(&["schedules", "backfill", "nobody", "--from", "1h"]).ended(3, "there is no schedule nobody");
        // One that is there is served all the same.
        place.run(&NIGHTLY).done();
        let ran = place.run(&["schedules", "pause", "nobody", "nightly"]).ended(3, "there is no schedule nobody");
        assert!(ran.stdout.contains("nightly  paused"), "{ran:?}");
    }
}

#[test]
fn looking_makes_no_file() {
    let place = Place::sqlite();
    place.run(&["schedules", "list"]).ended(5, "there is no file");
    assert!(!place.folder().join("jobs.db").exists());
}

#[test]
fn completions_know_the_policies() {
    for shell in ["bash", "fish", "zsh"] {
        let script = Ran::of(&mut bare(&["completions", shell])).done().stdout;
        for word in ["backfill", "catch-up-limit", "buffer_one", "fire_once"] {
            assert!(script.contains(word), "{word} is missing for {shell}");
        }
    }
}
