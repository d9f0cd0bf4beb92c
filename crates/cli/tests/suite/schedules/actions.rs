//! Triggers, backfills, occurrences and deletion of schedules.

use std::time::Duration;

use orchestrix_core::{
    Cadence, JobId, JobType, NewJob, NewSchedule, ScheduleName, Timestamp,
    schedule::{Overlap, Reason},
};
use orchestrix_store::{Fence, Outcome, prelude::*};
use serde_json::{Value, json};

use super::put_nightly;
use crate::{
    harness::{TestEnv, each_database, each_database_and_server},
    worker::{WorkerProcess, eventually},
};

fn items(document: &Value) -> &Vec<Value> {
    document["items"].as_array().unwrap()
}

fn every(interval: Duration) -> NewSchedule {
    let job = NewJob::new(JobType::new("t").unwrap());
    NewSchedule::new(ScheduleName::new("s").unwrap(), Cadence::every(interval).unwrap(), job)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_creates_a_job_and_an_occurrence() {
    for env in each_database_and_server() {
        put_nightly(&env, &["--paused", "--queue", "reports"]);
        let ran = env.run(&["schedules", "trigger", "nightly"]).success();
        let fields: Vec<&str> = ran.stdout.split_whitespace().collect();
        assert!(fields[0].parse::<JobId>().is_ok() && fields[1..] == ["PENDING"], "{ran:?}");
        let job = env.json(&["jobs", "get", fields[0]]);
        assert_eq!((&job["jobType"], &job["queue"]), (&json!("REPORT"), &json!("reports")));

        let ledger = env.json(&["schedules", "occurrences", "nightly"]);
        let mut line = items(&ledger)[0].clone();
        assert!(line["nominalTime"].take().is_string() && line["firedAt"].take().is_string());
        assert_eq!(
            line,
            json!({"nominalTime": null, "outcome": "fired", "reason": "trigger", "jobId": fields[0],
                   "firedAt": null})
        );
        assert_eq!(env.json(&["schedules", "get", "nightly"])["unfinishedJobs"], json!([fields[0]]));
        assert!(env.run(&["schedules", "get", "nightly"]).success().stdout.contains(fields[0]));
        assert!(env.run(&["schedules", "list"]).success().stdout.contains("s ago"));
        env.finish_next_job(Outcome::Complete { result: None }).await;
        assert_eq!(env.json(&["schedules", "get", "nightly"])["unfinishedJobs"], json!([]));
        let second = env.json(&["schedules", "trigger", "nightly"]);
        assert_eq!(second["status"], "PENDING");
    }
}

#[test]
fn a_backfill_fires_each_nominal_time_once() {
    for env in each_database_and_server() {
        env.run(&["schedules", "put", "s", "t", "--every", "1h"]).success();
        let range = ["schedules", "backfill", "s", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T03:00:00Z"];
        let with = |more: &[&'static str]| [&range, more].concat();

        let planned = env.json(&with(&["--dry-run"]));
        assert_eq!((&planned["fired"], &planned["skipped"], &planned["dryRun"]), (&json!(1), &json!(2), &json!(true)));
        let fates: Vec<&Value> = items(&planned).iter().map(|line| &line["outcome"]).collect();
        assert_eq!(fates, ["fired", "skipped", "skipped"]);
        let ran = env.run(&with(&["--dry-run", "--overlap", "allow"])).exits_with(0, "dry run: 3 jobs");
        assert!(ran.stdout.contains("2026-01-01T02:00:00Z  1      fired    backfill  -"), "{ran:?}");
        assert_eq!(env.json(&["jobs", "list"]), json!({"items": []}));

        let ran = env.run(&range).exits_with(0, "--overlap allow");
        assert_eq!(ran.stdout, "1 job created\n");
        let filled = env.json(&with(&["--overlap", "allow"]));
        assert_eq!(
            filled,
            json!({"name": "s", "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T03:00:00Z", "overlap": "allow",
                   "fired": 2, "skipped": 0, "dryRun": false})
        );
        assert_eq!(env.run(&with(&["--overlap", "allow"])).success().stdout, "0 jobs created\n");
        assert_eq!(items(&env.json(&["jobs", "list"])).len(), 3);

        let ledger = env.json(&["schedules", "occurrences", "s", "--limit", "2"]);
        let times: Vec<&Value> = items(&ledger).iter().map(|line| &line["nominalTime"]).collect();
        assert_eq!(times, ["2026-01-01T02:00:00Z", "2026-01-01T01:00:00Z"]);
        let cursor = ledger["nextCursor"].as_str().unwrap();
        let rest = env.json(&["schedules", "occurrences", "s", "--cursor", cursor]);
        assert_eq!(items(&rest).len(), 1);
        assert_eq!((&items(&rest)[0]["reason"], rest.get("nextCursor")), (&json!("backfill"), None));
    }
}

#[test]
fn a_backfill_range_must_lie_in_the_past_and_not_be_empty() {
    let env = TestEnv::sqlite();
    env.run(&["schedules", "put", "s", "t", "--every", "1s"]).success();
    let backfill = |more: &[&str]| env.run(&[&["schedules", "backfill", "s"], more].concat());
    backfill(&["--from", "1h", "--to", "2099-01-01T00:00:00Z"]).exits_with(2, "to: ");
    backfill(&["--from", "2026-01-01T00:00:00Z", "--to", "2025-01-01T00:00:00Z"]).exits_with(2, "to: ");
    backfill(&["--from", "7d"]).exits_with(2, "10000");
    backfill(&[]).exits_with(2, "--from <TIME>");
    assert_eq!(env.json(&["jobs", "list"]), json!({"items": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_one_occurrence_and_a_punctual_fire_has_no_reason() {
    let env = TestEnv::sqlite();
    let hour_ago = Timestamp::now() - Duration::from_secs(3_600);
    let store = env.store_at(hour_ago).await;
    let schedule = NewSchedule { overlap: Overlap::Allow, ..every(Duration::from_secs(60)) };
    store.put_schedule(None, NewSchedule { paused: true, ..schedule }).await.unwrap();
    store.close().await;
    env.run(&["schedules", "resume", "s"]).success();
    let ledger = env.json(&["schedules", "occurrences", "s"]);
    let line = &items(&ledger)[0];
    assert_eq!((&line["outcome"], &line["reason"]), (&json!("skipped"), &json!(Reason::Paused.as_str())));
    let count = line["count"].as_u64().unwrap();
    assert!((60..=70).contains(&count) && line["untilTime"].is_string(), "{line}");
    assert!(env.run(&["schedules", "occurrences", "s"]).success().stdout.contains(" to "));

    let next = env.json(&["schedules", "get", "s"])["nextTime"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let store = env.store_at(next + Duration::from_secs(1)).await;
    store.fire_schedules(Fence::NONE, 10).await.unwrap();
    store.close().await;
    let ledger = env.json(&["schedules", "occurrences", "s"]);
    let line = &items(&ledger)[0];
    assert_eq!((&line["outcome"], line.get("reason"), line.get("untilTime")), (&json!("fired"), None, None));
    let id = line["jobId"].as_str().unwrap();
    assert_eq!(env.json(&["jobs", "get", id])["jobType"], "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_without_a_leader_is_shown_as_overdue() {
    let env = TestEnv::sqlite();
    let store = env.store_at(Timestamp::now() - Duration::from_secs(3_600)).await;
    store.put_schedule(None, every(Duration::from_secs(60))).await.unwrap();
    store.close().await;
    env.run(&["schedules", "get", "s"]).exits_with(0, "overdue");
    assert!(env.run(&["schedules", "list"]).success().stdout.contains("ago)"));
    // The next times are those after now.
    let next = env.json(&["schedules", "next", "s", "-n", "1"]);
    assert!(
        next["times"][0].as_str().unwrap().parse::<Timestamp>().unwrap() > Timestamp::now() - Duration::from_secs(30)
    );
}

#[test]
fn a_running_worker_fires_a_new_schedule() {
    for env in each_database() {
        env.run(&["migrate"]).success();
        let _worker = WorkerProcess::start(&env, &[]);
        env.run(&["schedules", "put", "s", "orchestrix.echo", "--every", "1s", "--payload", "[7]"]).success();
        let id = eventually("a time has fired", || {
            let ledger = env.json(&["schedules", "occurrences", "s"]);
            items(&ledger).iter().find_map(|line| Some(line["jobId"].as_str()?.to_owned()))
        });
        assert_eq!(env.wait_for_state(&id, "completed")["result"], json!([7]));
    }
}

#[test]
fn deleting_a_schedule_needs_consent_and_keeps_its_jobs() {
    for env in each_database_and_server() {
        put_nightly(&env, &[]);
        env.run(&["schedules", "put", "other", "t", "--every", "1h"]).success();
        env.run(&["schedules", "trigger", "nightly"]).success();
        env.run(&["schedules", "delete", "nightly"]).exits_with(2, "--yes");
        let planned = env.json(&["schedules", "delete", "nightly", "--dry-run"]);
        assert_eq!(planned, json!({"items": [{"name": "nightly", "deleted": false}]}));
        assert_eq!(items(&env.json(&["schedules", "list"])).len(), 2);
        let deleted = env.json(&["schedules", "delete", "nightly", "--yes"]);
        assert_eq!(deleted, json!({"items": [{"name": "nightly", "deleted": true}]}));
        env.run(&["schedules", "occurrences", "nightly"]).exits_with(3, "nightly");
        assert_eq!(items(&env.json(&["schedules", "list"]))[0]["name"], "other");
        assert_eq!(items(&env.json(&["jobs", "list"])).len(), 1);
    }
}
