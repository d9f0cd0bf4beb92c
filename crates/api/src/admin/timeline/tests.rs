//! Timelines of jobs in every state.

use super::*;
use crate::admin::fixtures::{at, job as job_in};

/// A job enqueued at second 0 and then changed by `set`.
fn job_with(state: JobState, set: impl FnOnce(&mut Job)) -> Job {
    let mut job = job_in(state);
    set(&mut job);
    job
}

/// Adds an ended attempt of worker `w` to the stored attempts of a job.
fn end_attempt(job: &mut Job, from: i64, to: i64, outcome: AttemptOutcome, led_to: JobState) {
    let worker = Some(WorkerName::trusted("w"));
    job.leases += 1;
    let (attempt, lease) = (job.attempts + 1, job.leases);
    job.attempts += u16::from(outcome.costs_an_attempt());
    let record =
        AttemptRecord { attempt, lease, outcome, led_to, worker, started_at: at(from), ended_at: at(to), error: None };
    (job.started_at, job.worker, job.updated_at) = (Some(at(from)), record.worker.clone(), at(to));
    if job.attempt_log.len() == AttemptRecord::KEPT {
        job.attempt_log.remove(0);
    }
    job.attempt_log.push(record);
}

/// Worker `v` claims the job.
fn claim(job: &mut Job, from: i64) {
    job.leases += 1;
    (job.started_at, job.updated_at, job.worker) = (Some(at(from)), at(from), Some(WorkerName::trusted("v")));
}

/// Finishes the job.
fn finish(job: &mut Job, when: i64, reason: Option<&str>) {
    (job.finished_at, job.updated_at, job.reason) = (Some(at(when)), at(when), reason.map(Into::into));
}

/// Formats a timeline, such as `0 recorded pending, 5 started running 1 w`.
fn timeline_text(job: &Job) -> String {
    let text = |event: &TimelineEvent| {
        let mut words = vec![event.at.duration_since(at(0)).as_secs().to_string(), event.event.as_str().into()];
        words.push(event.state.map_or("?".into(), |state| state.to_string()));
        words.extend(event.attempt.map(|attempt| attempt.to_string()));
        words.extend(event.outcome.map(|outcome| outcome.to_string()));
        words.extend(event.worker_id.as_ref().map(ToString::to_string));
        words.extend(event.reason.clone());
        words.join(" ")
    };
    timeline(job).iter().map(text).collect::<Vec<_>>().join(", ")
}

#[test]
fn timelines_show_every_event_that_is_stored() {
    use AttemptOutcome::{Cancelled as Stopped, Completed as Success, Failed, Lost, Released, Snoozed, TimedOut};
    use JobState::{Blocked, Cancelled, Completed, Created, Dead, Dispatched, Pending, Retrying, Running, Scheduled};
    let cases = [
        // The job has not changed since it was enqueued.
        (job_with(Created, |_| {}), "0 recorded created"),
        (job_with(Blocked, |_| {}), "0 recorded blocked"),
        (job_with(Scheduled, |job| job.eligible_at = at(60)), "0 recorded scheduled"),
        (job_with(Pending, |_| {}), "0 recorded pending"),
        // The job has changed, and its first state is not stored.
        (job_with(Blocked, |job| job.updated_at = at(5)), "0 recorded ?, 5 changed blocked"),
        (job_with(Created, |job| job.updated_at = at(5)), "0 recorded ?, 5 changed created"),
        (
            job_with(Pending, |job| (job.eligible_at, job.updated_at) = (at(5), at(6))),
            "0 recorded ?, 6 changed pending",
        ),
        (job_with(Dispatched, |job| (job.leases, job.updated_at) = (1, at(5))), "0 recorded ?, 5 changed dispatched"),
        // The job runs: at once, after a wait, and again.
        (job_with(Running, |job| claim(job, 5)), "0 recorded pending, 5 started running 1 v"),
        (
            job_with(Running, |job| {
                job.eligible_at = at(4);
                job.cancel_requested = true;
                claim(job, 5);
            }),
            "0 recorded ?, 4 eligible pending, 5 started running 1 v",
        ),
        (
            job_with(Running, |job| {
                end_attempt(job, 1, 2, TimedOut, Retrying);
                job.eligible_at = at(4);
                claim(job, 5);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended retrying 1 timed_out w, 4 eligible pending, 5 started running 2 v",
        ),
        // Attempts that did not finish the job.
        (
            job_with(Retrying, |job| {
                end_attempt(job, 1, 2, Failed, Retrying);
                job.eligible_at = at(4);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended retrying 1 failed w",
        ),
        (
            job_with(Pending, |job| {
                end_attempt(job, 1, 2, Failed, Retrying);
                (job.eligible_at, job.updated_at) = (at(4), at(5));
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended retrying 1 failed w, 5 changed pending",
        ),
        (
            job_with(Scheduled, |job| {
                end_attempt(job, 1, 2, Snoozed, Scheduled);
                job.eligible_at = at(60);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended scheduled 1 snoozed w",
        ),
        (
            job_with(Pending, |job| {
                end_attempt(job, 1, 2, Released, Pending);
                job.eligible_at = at(2);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended pending 1 released w",
        ),
        (
            job_with(Running, |job| {
                end_attempt(job, 1, 2, Lost, Pending);
                job.eligible_at = at(2);
                claim(job, 3);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended pending 1 lost w, 3 started running 2 v",
        ),
        // The job has finished.
        (
            job_with(Completed, |job| {
                claim(job, 1);
                job.attempts = 1;
                finish(job, 3, None);
            }),
            "0 recorded pending, 1 started running 1 v, 3 ended completed 1 completed v",
        ),
        (
            job_with(Completed, |job| {
                end_attempt(job, 1, 2, Released, Pending);
                job.eligible_at = at(2);
                end_attempt(job, 3, 4, Success, Completed);
                finish(job, 4, None);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended pending 1 released w, 3 started running 1 w, 4 ended completed 1 completed w",
        ),
        (
            job_with(Dead, |job| {
                end_attempt(job, 1, 2, Failed, Dead);
                finish(job, 2, Some("fatal"));
            }),
            "0 recorded pending, 1 started running 1 w, 2 ended dead 1 failed w fatal",
        ),
        (
            job_with(Cancelled, |job| {
                end_attempt(job, 1, 2, Stopped, Cancelled);
                finish(job, 2, Some("requested"));
            }),
            "0 recorded pending, 1 started running 1 w, 2 ended cancelled 1 cancelled w requested",
        ),
        (job_with(Cancelled, |job| finish(job, 2, Some("expired"))), "0 recorded ?, 2 finished cancelled expired"),
        (
            job_with(Cancelled, |job| {
                end_attempt(job, 1, 2, Failed, Retrying);
                job.eligible_at = at(90);
                finish(job, 3, Some("requested"));
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended retrying 1 failed w, 3 finished cancelled requested",
        ),
        // The job finished and was redriven.
        (
            job_with(Pending, |job| {
                end_attempt(job, 1, 2, Failed, Dead);
                (job.eligible_at, job.updated_at) = (at(5), at(5));
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended dead 1 failed w, 5 redriven pending",
        ),
        (
            job_with(Running, |job| {
                end_attempt(job, 1, 2, Failed, Dead);
                job.eligible_at = at(5);
                claim(job, 6);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended dead 1 failed w, 5 redriven pending, 6 started running 2 v",
        ),
        (
            job_with(Cancelled, |job| {
                end_attempt(job, 1, 2, Stopped, Cancelled);
                job.eligible_at = at(5);
                finish(job, 6, Some("requested"));
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended cancelled 1 cancelled w, 5 redriven pending, 6 finished cancelled requested",
        ),
        (
            job_with(Retrying, |job| {
                end_attempt(job, 1, 2, Failed, Dead);
                end_attempt(job, 6, 7, Failed, Retrying);
                job.eligible_at = at(9);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended dead 1 failed w, 6 started running 2 w, 7 ended retrying 2 failed w",
        ),
    ];
    for (job, expected) in cases {
        assert_eq!(timeline_text(&job), expected, "{:?}", job.state);
        assert_eq!(earlier_attempts(&job), 0);
    }
}

#[test]
fn only_the_latest_attempts_are_shown_and_the_earlier_ones_are_counted() {
    let mut job = job_with(JobState::Scheduled, |job| {
        for n in 0..103 {
            end_attempt(job, 2 * n, 2 * n + 1, AttemptOutcome::Snoozed, JobState::Scheduled);
        }
        job.eligible_at = at(500);
    });
    assert_eq!((attempts(&job).len(), earlier_attempts(&job)), (100, 3));
    assert!(timeline_text(&job).starts_with("0 recorded ?, 6 started running 1 w, 7 ended scheduled 1 snoozed w"));
    assert_eq!(timeline(&job).len(), 201);
    job.state = JobState::Running;
    job.eligible_at = at(300);
    claim(&mut job, 301);
    assert_eq!((attempts(&job).len(), earlier_attempts(&job)), (101, 3));
    assert!(
        timeline_text(&job).ends_with("205 ended scheduled 1 snoozed w, 300 eligible pending, 301 started running 1 v")
    );
}

#[test]
fn a_successful_first_attempt_and_the_running_attempt_are_listed() {
    let success = job_with(JobState::Completed, |job| {
        claim(job, 1);
        job.attempts = 1;
        finish(job, 3, None);
    });
    let worker_id = Some(WorkerName::trusted("v"));
    let expected = AttemptView {
        attempt: 1,
        outcome: Some(AttemptOutcome::Completed),
        led_to: Some(JobState::Completed),
        worker_id,
        started_at: at(1),
        ended_at: Some(at(3)),
        error: None,
    };
    assert_eq!(attempts(&success), std::slice::from_ref(&expected));
    let running = job_with(JobState::Running, |job| {
        job.attempts = 4;
        claim(job, 1);
    });
    let expected = AttemptView { attempt: 5, outcome: None, led_to: None, ended_at: None, ..expected };
    assert_eq!(attempts(&running), [expected]);
    // A redriven job keeps the times of its latest attempt, which is not a running attempt.
    let waiting = job_with(JobState::Pending, |job| {
        claim(job, 1);
        job.updated_at = at(4);
    });
    assert_eq!(attempts(&waiting), []);
}
