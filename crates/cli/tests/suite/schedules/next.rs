//! `schedules next`.

use serde_json::json;

use super::put_nightly;
use crate::harness::{CliOutput, each_database_and_server, orchestrix};

#[test]
fn an_expression_is_evaluated_without_a_database() {
    // In 2026 New York had no 02:30 on 8 March, and 01:30 twice on 1 November.
    let next = |cron: &str, after: &str| {
        let arguments = ["schedules", "next", "--cron", cron, "--tz", "America/New_York", "--after", after, "-n", "3"];
        CliOutput::run(&mut orchestrix(&[&arguments[..], &["--output", "json"]].concat())).success().json()
    };
    let spring = next("30 2 * * *", "2026-03-07T00:00:00Z");
    assert_eq!(spring["times"], json!(["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]));
    let local = json!(["2026-03-07T02:30:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"]);
    assert_eq!((&spring["localTimes"], &spring["timezone"]), (&local, &json!("America/New_York")));
    let autumn = next("30 1 * * *", "2026-11-01T00:00:00Z");
    assert_eq!(autumn["times"], json!(["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z", "2026-11-03T06:30:00Z"]));
}

#[test]
fn intervals_are_aligned_to_the_epoch() {
    let arguments = ["schedules", "next", "--every", "15m", "--after", "2026-01-01T00:07:00Z", "-n", "2"];
    let times = CliOutput::run(&mut orchestrix(&[&arguments[..], &["--output", "jsonl"]].concat())).success().stdout;
    assert_eq!(times, "{\"time\":\"2026-01-01T00:15:00Z\"}\n{\"time\":\"2026-01-01T00:30:00Z\"}\n");
    let table = CliOutput::run(&mut orchestrix(&arguments)).success().stdout;
    assert!(table.starts_with("UTC") && table.contains("\n2026-01-01T00:15:00Z  "), "{table}");
    let ten = CliOutput::run(&mut orchestrix(&arguments[..6])).success().stdout;
    assert_eq!(ten.lines().count(), 11);
}

#[test]
fn the_times_of_a_stored_schedule_are_shown_in_utc_and_in_its_zone() {
    for env in each_database_and_server() {
        put_nightly(&env, &["--end", "2099-07-03T07:00:00Z"]);
        let next = env.json(&["schedules", "next", "nightly"]);
        assert_eq!(next["times"], json!(["2099-07-01T07:00:00Z", "2099-07-02T07:00:00Z"]));
        assert_eq!(next["localTimes"], json!(["2099-07-01T09:00:00+02:00", "2099-07-02T09:00:00+02:00"]));
        assert_eq!((&next["name"], &next["timezone"]), (&json!("nightly"), &json!("Europe/Berlin")));
        let elsewhere = ["schedules", "next", "nightly", "-n", "1", "--tz", "Asia/Tokyo", "--output", "jsonl"];
        let line = "{\"time\":\"2099-07-01T07:00:00Z\",\"localTime\":\"2099-07-01T16:00:00+09:00\"}\n";
        assert_eq!(env.run(&elsewhere).success().stdout, line);
        env.run(&["schedules", "next", "nightly", "--after", "2100-01-01T00:00:00Z"]).exits_with(0, "no time is left");

        env.run(&["schedules", "pause", "nightly"]).success();
        let ran = env.run(&["schedules", "next", "nightly", "-n", "1"]).exits_with(0, "paused");
        assert!(ran.stdout.contains("2099-07-01T07:00:00Z  Wed 2099-07-01 09:00:00 CEST"), "{ran:?}");
    }
}
