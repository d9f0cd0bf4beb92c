//! Jobs by hand, past ranges, the ledger, and forgetting a schedule.

use std::time::Duration;

use orchestrix_core::{
    Cadence, JobId, JobType, NewJob, NewSchedule, ScheduleName, Timestamp,
    schedule::{Overlap, Reason},
};
use orchestrix_store::{Fence, Outcome, prelude::*};
use serde_json::{Value, json};

use super::put_nightly;
use crate::{
    support::{Place, everywhere, places},
    worker::{Running, eventually},
};

fn items(document: &Value) -> &Vec<Value> {
    document["items"].as_array().unwrap()
}

fn every(interval: Duration) -> NewSchedule {
    let job = NewJob::new(JobType::new("t").unwrap());
    NewSchedule::new(ScheduleName::new("s").unwrap(), Cadence::every(interval).unwrap(), job)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_by_hand_is_created_and_stands_in_the_ledger() {
    for place in everywhere() {
        put_nightly(&place, &["--paused", "--queue", "reports"]);
        let ran = place.run(&["schedules", "trigger", "nightly"]).done();
        let words: Vec<&str> = ran.stdout.split_whitespace().collect();
        assert!(words[0].parse::<JobId>().is_ok() && words[1..] == ["PENDING"], "{ran:?}");
        let job = place.json(&["jobs", "get", words[0]]);
        assert_eq!((&job["jobType"], &job["queue"]), (&json!("REPORT"), &json!("reports")));

        let ledger = place.json(&["schedules", "occurrences", "nightly"]);
        let mut line = items(&ledger)[0].clone();
        assert!(line["nominalTime"].take().is_string() && line["firedAt"].take().is_string());
        assert_eq!(
            line,
            json!({"nominalTime": null, "outcome": "fired", "reason": "trigger", "jobId": words[0],
                   "firedAt": null})
        );
        assert_eq!(place.json(&["schedules", "get", "nightly"])["unfinishedJobs"], json!([words[0]]));
        assert!(place.run(&["schedules", "get", "nightly"]).done().stdout.contains(words[0]));
        assert!(place.run(&["schedules", "list"]).done().stdout.contains("s ago"));
        place.work(Outcome::Complete { result: None }).await;
        assert_eq!(place.json(&["schedules", "get", "nightly"])["unfinishedJobs"], json!([]));
        let second = place.json(&["schedules", "trigger", "nightly"]);
        assert_eq!(second["status"], "PENDING");
    }
}

#[test]
fn a_past_range_is_filled_once() {
    for place in everywhere() {
        place.run(&["schedules", "put", "s", "t", "--every", "1h"]).done();
        let range = ["schedules", "backfill", "s", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T03:00:00Z"];
        let with = |more: &[&'static str]| [&range, more].concat();

        let planned = place.json(&with(&["--dry-run"]));
        assert_eq!((&planned["fired"], &planned["skipped"], &planned["dryRun"]), (&json!(1), &json!(2), &json!(true)));
        let fates: Vec<&Value> = items(&planned).iter().map(|line| &line["outcome"]).collect();
        assert_eq!(fates, ["fired", "skipped", "skipped"]);
        let ran = place.run(&with(&["--dry-run", "--overlap", "allow"])).ended(0, "dry run: 3 jobs would be created");
        assert!(ran.stdout.contains("2026-01-01T02:00:00Z  1      fired    backfill  -"), "{ran:?}");
        assert_eq!(place.json(&["jobs", "list"]), json!({"items": []}));

        let ran = place.run(&range).ended(0, "2 skipped by the rule for overlaps (skip): --overlap allow");
        assert_eq!(ran.stdout, "1 job created\n");
        let filled = place.json(&with(&["--overlap", "allow"]));
        assert_eq!(
            filled,
            json!({"name": "s", "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T03:00:00Z", "overlap": "allow",
                   "fired": 2, "skipped": 0, "dryRun": false})
        );
        assert_eq!(place.run(&with(&["--overlap", "allow"])).done().stdout, "0 jobs created\n");
        assert_eq!(items(&place.json(&["jobs", "list"])).len(), 3);

        let ledger = place.json(&["schedules", "occurrences", "s", "--limit", "2"]);
        let times: Vec<&Value> = items(&ledger).iter().map(|line| &line["nominalTime"]).collect();
        assert_eq!(times, ["2026-01-01T02:00:00Z", "2026-01-01T01:00:00Z"]);
        let cursor = ledger["nextCursor"].as_str().unwrap();
        let rest = place.json(&["schedules", "occurrences", "s", "--cursor", cursor]);
        assert_eq!(items(&rest).len(), 1);
        assert_eq!((&items(&rest)[0]["reason"], rest.get("nextCursor")), (&json!("backfill"), None));
    }
}

#[test]
fn a_range_lies_in_the_past_and_is_not_empty() {
    let place = Place::sqlite();
    place.run(&["schedules", "put", "s", "t", "--every", "1s"]).done();
    let backfill = |more: &[&str]| place.run(&[&["schedules", "backfill", "s"], more].concat());
    backfill(&["--from", "1h", "--to", "2099-01-01T00:00:00Z"]).ended(2, "lies ahead");
    backfill(&["--from", "2026-01-01T00:00:00Z", "--to", "2025-01-01T00:00:00Z"]).ended(2, "to: must be after from");
    backfill(&["--from", "7d"]).ended(2, "fill it in parts");
    backfill(&[]).ended(2, "--from <TIME>");
    assert_eq!(place.json(&["jobs", "list"]), json!({"items": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_a_pause_are_one_line_and_what_fires_on_time_has_no_reason() {
    let place = Place::sqlite();
    let hour_ago = Timestamp::now() - Duration::from_secs(3_600);
    let store = place.store_at(hour_ago).await;
    let schedule = NewSchedule { overlap: Overlap::Allow, ..every(Duration::from_secs(60)) };
    store.put_schedule(None, NewSchedule { paused: true, ..schedule }).await.unwrap();
    store.close().await;
    place.run(&["schedules", "resume", "s"]).done();
    let ledger = place.json(&["schedules", "occurrences", "s"]);
    let line = &items(&ledger)[0];
    assert_eq!((&line["outcome"], &line["reason"]), (&json!("skipped"), &json!(Reason::Paused.as_str())));
    let count = line["count"].as_u64().unwrap();
    assert!((60..=70).contains(&count) && line["untilTime"].is_string(), "{line}");
    assert!(place.run(&["schedules", "occurrences", "s"]).done().stdout.contains(" to "));

    let next = place.json(&["schedules", "get", "s"])["nextTime"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let store = place.store_at(next + Duration::from_secs(1)).await;
    store.fire_schedules(Fence::NONE, 10).await.unwrap();
    store.close().await;
    let ledger = place.json(&["schedules", "occurrences", "s"]);
    let line = &items(&ledger)[0];
    assert_eq!((&line["outcome"], line.get("reason"), line.get("untilTime")), (&json!("fired"), None, None));
    let id = line["jobId"].as_str().unwrap();
    assert_eq!(place.json(&["jobs", "get", id])["jobType"], "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_nobody_fires_is_called_overdue() {
    let place = Place::sqlite();
    let store = place.store_at(Timestamp::now() - Duration::from_secs(3_600)).await;
    store.put_schedule(None, every(Duration::from_secs(60))).await.unwrap();
    store.close().await;
    place.run(&["schedules", "get", "s"]).ended(0, "it is overdue: `orchestrix nodes list`");
    assert!(place.run(&["schedules", "list"]).done().stdout.contains("ago)"));
    // The times to come are those after now.
    let next = place.json(&["schedules", "next", "s", "-n", "1"]);
    assert!(
        next["times"][0].as_str().unwrap().parse::<Timestamp>().unwrap() > Timestamp::now() - Duration::from_secs(30)
    );
}

#[test]
fn a_worker_fires_what_was_put_while_it_runs() {
    for place in places() {
        place.run(&["migrate"]).done();
        let _worker = Running::start(&place, &[]);
        place.run(&["schedules", "put", "s", "orchestrix.echo", "--every", "1s", "--payload", "[7]"]).done();
        let id = eventually("a time has fired", || {
            let ledger = place.json(&["schedules", "occurrences", "s"]);
            items(&ledger).iter().find_map(|line| Some(line["jobId"].as_str()?.to_owned()))
        });
        assert_eq!(place.reaches(&id, "completed")["result"], json!([7]));
    }
}

#[test]
fn a_schedule_is_forgotten_with_consent_and_its_jobs_stay() {
    for place in everywhere() {
        put_nightly(&place, &[]);
        place.run(&["schedules", "put", "other", "t", "--every", "1h"]).done();
        place.run(&["schedules", "trigger", "nightly"]).done();
        place.run(&["schedules", "delete", "nightly"]).ended(2, "Add --yes");
        let planned = place.json(&["schedules", "delete", "nightly", "--dry-run"]);
        assert_eq!(planned, json!({"items": [{"name": "nightly", "deleted": false}]}));
        assert_eq!(items(&place.json(&["schedules", "list"])).len(), 2);
        let deleted = place.json(&["schedules", "delete", "nightly", "--yes"]);
        assert_eq!(deleted, json!({"items": [{"name": "nightly", "deleted": true}]}));
        place.run(&["schedules", "occurrences", "nightly"]).ended(3, "there is no schedule");
        assert_eq!(items(&place.json(&["schedules", "list"]))[0]["name"], "other");
        assert_eq!(items(&place.json(&["jobs", "list"])).len(), 1);
    }
}
