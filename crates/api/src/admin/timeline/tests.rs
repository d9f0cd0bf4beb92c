//! Lives of jobs, and what is told of them.

use super::*;
use crate::admin::sample::{at, job};

/// A job that was recorded at 0, with `set` done to it.
fn life(state: JobState, set: impl FnOnce(&mut Job)) -> Job {
    let mut job = job(state);
    set(&mut job);
    job
}

/// Adds an attempt by `w` to what is written down of a job.
fn ended(job: &mut Job, from: i64, to: i64, outcome: AttemptOutcome, led_to: JobState) {
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

/// A worker has it.
fn claimed(job: &mut Job, from: i64) {
    job.leases += 1;
    (job.started_at, job.updated_at, job.worker) = (Some(at(from)), at(from), Some(WorkerName::trusted("v")));
}

/// It is over.
fn over(job: &mut Job, when: i64, reason: Option<&str>) {
    (job.finished_at, job.updated_at, job.reason) = (Some(at(when)), at(when), reason.map(Into::into));
}

/// A timeline as one reads it: `0 recorded pending, 5 started running 1 w`.
fn told(job: &Job) -> String {
    let word = |step: &Transition| {
        let mut words = vec![step.at.duration_since(at(0)).as_secs().to_string(), step.event.as_str().into()];
        words.push(step.state.map_or("?".into(), |state| state.to_string()));
        words.extend(step.attempt.map(|attempt| attempt.to_string()));
        words.extend(step.outcome.map(|outcome| outcome.to_string()));
        words.extend(step.worker_id.as_ref().map(ToString::to_string));
        words.extend(step.reason.clone());
        words.join(" ")
    };
    transitions(job).iter().map(word).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_life_is_told_as_far_as_it_is_known() {
    use AttemptOutcome::{Cancelled as Stopped, Completed as Success, Failed, Lost, Released, Snoozed, TimedOut};
    use JobState::{Blocked, Cancelled, Completed, Created, Dead, Dispatched, Pending, Retrying, Running, Scheduled};
    let lives = [
        // Nothing has happened to it.
        (life(Created, |_| {}), "0 recorded created"),
        (life(Blocked, |_| {}), "0 recorded blocked"),
        (life(Scheduled, |job| job.eligible_at = at(60)), "0 recorded scheduled"),
        (life(Pending, |_| {}), "0 recorded pending"),
        // Something has, but nobody wrote down where it came from.
        (life(Blocked, |job| job.updated_at = at(5)), "0 recorded ?, 5 changed blocked"),
        (life(Created, |job| job.updated_at = at(5)), "0 recorded ?, 5 changed created"),
        (life(Pending, |job| (job.eligible_at, job.updated_at) = (at(5), at(6))), "0 recorded ?, 6 changed pending"),
        (life(Dispatched, |job| (job.leases, job.updated_at) = (1, at(5))), "0 recorded ?, 5 changed dispatched"),
        // It runs: at once, after a wait, and again.
        (life(Running, |job| claimed(job, 5)), "0 recorded pending, 5 started running 1 v"),
        (
            life(Running, |job| {
                job.eligible_at = at(4);
                job.cancel_requested = true;
                claimed(job, 5);
            }),
            "0 recorded ?, 4 eligible pending, 5 started running 1 v",
        ),
        (
            life(Running, |job| {
                ended(job, 1, 2, TimedOut, Retrying);
                job.eligible_at = at(4);
                claimed(job, 5);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended retrying 1 timed_out w, 4 eligible pending, 5 started running 2 v",
        ),
        // Attempts that did not end it.
        (
            life(Retrying, |job| {
                ended(job, 1, 2, Failed, Retrying);
                job.eligible_at = at(4);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended retrying 1 failed w",
        ),
        (
            life(Pending, |job| {
                ended(job, 1, 2, Failed, Retrying);
                (job.eligible_at, job.updated_at) = (at(4), at(5));
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended retrying 1 failed w, 5 changed pending",
        ),
        (
            life(Scheduled, |job| {
                ended(job, 1, 2, Snoozed, Scheduled);
                job.eligible_at = at(60);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended scheduled 1 snoozed w",
        ),
        (
            life(Pending, |job| {
                ended(job, 1, 2, Released, Pending);
                job.eligible_at = at(2);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended pending 1 released w",
        ),
        (
            life(Running, |job| {
                ended(job, 1, 2, Lost, Pending);
                job.eligible_at = at(2);
                claimed(job, 3);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended pending 1 lost w, 3 started running 2 v",
        ),
        // It is over.
        (
            life(Completed, |job| {
                claimed(job, 1);
                job.attempts = 1;
                over(job, 3, None);
            }),
            "0 recorded pending, 1 started running 1 v, 3 ended completed 1 completed v",
        ),
        (
            life(Completed, |job| {
                ended(job, 1, 2, Released, Pending);
                job.eligible_at = at(2);
                ended(job, 3, 4, Success, Completed);
                over(job, 4, None);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended pending 1 released w, 3 started running 1 w, 4 ended completed 1 completed w",
        ),
        (
            life(Dead, |job| {
                ended(job, 1, 2, Failed, Dead);
                over(job, 2, Some("fatal"));
            }),
            "0 recorded pending, 1 started running 1 w, 2 ended dead 1 failed w fatal",
        ),
        (
            life(Cancelled, |job| {
                ended(job, 1, 2, Stopped, Cancelled);
                over(job, 2, Some("requested"));
            }),
            "0 recorded pending, 1 started running 1 w, 2 ended cancelled 1 cancelled w requested",
        ),
        (life(Cancelled, |job| over(job, 2, Some("expired"))), "0 recorded ?, 2 finished cancelled expired"),
        (
            life(Cancelled, |job| {
                ended(job, 1, 2, Failed, Retrying);
                job.eligible_at = at(90);
                over(job, 3, Some("requested"));
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended retrying 1 failed w, 3 finished cancelled requested",
        ),
        // It was over, and got another chance.
        (
            life(Pending, |job| {
                ended(job, 1, 2, Failed, Dead);
                (job.eligible_at, job.updated_at) = (at(5), at(5));
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended dead 1 failed w, 5 redriven pending",
        ),
        (
            life(Running, |job| {
                ended(job, 1, 2, Failed, Dead);
                job.eligible_at = at(5);
                claimed(job, 6);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended dead 1 failed w, 5 redriven pending, 6 started running 2 v",
        ),
        (
            life(Cancelled, |job| {
                ended(job, 1, 2, Stopped, Cancelled);
                job.eligible_at = at(5);
                over(job, 6, Some("requested"));
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended cancelled 1 cancelled w, 5 redriven pending, 6 finished cancelled requested",
        ),
        (
            life(Retrying, |job| {
                ended(job, 1, 2, Failed, Dead);
                ended(job, 6, 7, Failed, Retrying);
                job.eligible_at = at(9);
            }),
            "0 recorded ?, 1 started running 1 w, 2 ended dead 1 failed w, 6 started running 2 w, 7 ended retrying 2 failed w",
        ),
    ];
    for (job, expected) in lives {
        assert_eq!(told(&job), expected, "{:?}", job.state);
        assert_eq!(earlier_attempts(&job), 0);
    }
}

#[test]
fn of_more_attempts_than_are_kept_the_latest_are_told_and_the_others_counted() {
    let mut job = life(JobState::Scheduled, |job| {
        for n in 0..103 {
            ended(job, 2 * n, 2 * n + 1, AttemptOutcome::Snoozed, JobState::Scheduled);
        }
        job.eligible_at = at(500);
    });
    assert_eq!((attempts(&job).len(), earlier_attempts(&job)), (100, 3));
    assert!(told(&job).starts_with("0 recorded ?, 6 started running 1 w, 7 ended scheduled 1 snoozed w"));
    assert_eq!(transitions(&job).len(), 201);
    job.state = JobState::Running;
    job.eligible_at = at(300);
    claimed(&mut job, 301);
    assert_eq!((attempts(&job).len(), earlier_attempts(&job)), (101, 3));
    assert!(told(&job).ends_with("205 ended scheduled 1 snoozed w, 300 eligible pending, 301 started running 1 v"));
}

#[test]
fn a_first_success_and_the_attempt_under_way_are_attempts_too() {
    let success = life(JobState::Completed, |job| {
        claimed(job, 1);
        job.attempts = 1;
        over(job, 3, None);
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
    let running = life(JobState::Running, |job| {
        job.attempts = 4;
        claimed(job, 1);
    });
    let expected = AttemptView { attempt: 5, outcome: None, led_to: None, ended_at: None, ..expected };
    assert_eq!(attempts(&running), [expected]);
    // One that was redriven keeps the times of its latest attempt, which is no attempt under way.
    let waiting = life(JobState::Pending, |job| {
        claimed(job, 1);
        job.updated_at = at(4);
    });
    assert_eq!(attempts(&waiting), []);
}
