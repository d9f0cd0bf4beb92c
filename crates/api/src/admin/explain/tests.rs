//! Every reason, by what it takes to be told.

use std::{collections::BTreeSet, time::Duration};

use orchestrix_core::{AttemptOutcome, AttemptRecord, Job, JobState, JobType, OnDependencyFailure, Queue, WorkerName};
use orchestrix_store::{Directive, Queues, WorkerInfo, WorkerStatus};

use super::*;
use crate::admin::sample::{at, id, job};

fn ended(outcome: AttemptOutcome, error: &str) -> AttemptRecord {
    AttemptRecord {
        attempt: 1,
        lease: 1,
        outcome,
        led_to: JobState::Retrying,
        worker: Some(WorkerName::trusted("w")),
        started_at: at(0),
        ended_at: at(1),
        error: Some(error.to_owned()).filter(|error| !error.is_empty()),
    }
}

/// Somebody has a free slot, and somebody leads.
fn facts() -> Facts {
    Facts { reach: Some(Reach::Free), ..Facts::none(at(100)) }
}

struct Case {
    job: Job,
    facts: Facts,
    codes: &'static [&'static str],
    says: &'static str,
}

fn case(
    state: JobState,
    change: impl FnOnce(&mut Job, &mut Facts),
    codes: &'static [&'static str],
    says: &'static str,
) -> Case {
    let (mut job, mut facts) = (job(state), facts());
    change(&mut job, &mut facts);
    Case { job, facts, codes, says }
}

fn waiting() -> Vec<Case> {
    use JobState::*;
    vec![
        case(Created, |_, _| {}, &["held"], "It is held until somebody releases it."),
        case(
            Created,
            |job, facts| {
                job.on_dependency_failure = OnDependencyFailure::Hold;
                facts.parents = vec![(id(1), Dead), (id(2), Completed)];
            },
            &["held"],
            "because 1 job did not complete",
        ),
        case(
            Created,
            |job, facts| (job.eligible_at, facts.parents) = (at(200), vec![(id(1), Running)]),
            &["held", "blocked", "scheduled"],
            "it waits for 1 job to finish; it is not to start before",
        ),
        case(
            Blocked,
            |_, facts| {
                facts.parents = vec![(id(1), Running), (id(2), Completed), (id(3), Pending)];
                (facts.paused, facts.reach, facts.leader) = (true, Some(Reach::Nobody), false);
            },
            // Whoever ends the last of them moves it on: it takes no leader.
            &["blocked", "queue_paused", "no_worker"],
            "It waits for 2 jobs to finish; its queue q is paused; no worker is alive.",
        ),
        case(Blocked, |_, facts| facts.parents = vec![(id(1), Completed)], &["blocked"], "is about to move on"),
        case(Blocked, |_, facts| facts.leader = false, &["no_leader", "blocked"], "No node leads"),
        case(Scheduled, |job, _| job.eligible_at = at(200), &["scheduled"], "not to start before 2026-01-01T00:03:20Z"),
        case(Scheduled, |_, _| {}, &["scheduled"], "about to become claimable"),
        case(
            Scheduled,
            |job, _| {
                job.eligible_at = at(200);
                job.attempt_log = vec![ended(AttemptOutcome::Snoozed, "")];
            },
            &["scheduled"],
            "Its worker put it off until",
        ),
        case(
            Scheduled,
            |job, facts| (job.eligible_at, facts.leader) = (at(200), false),
            &["scheduled", "no_leader"],
            "takes a leader",
        ),
        case(Scheduled, |_, facts| facts.leader = false, &["no_leader", "scheduled"], "takes a leader"),
        case(
            Retrying,
            |job, _| {
                (job.attempts, job.eligible_at) = (1, at(200));
                let released = ended(AttemptOutcome::Released, "");
                job.attempt_log = vec![ended(AttemptOutcome::Failed, "\n boom \nat line 1"), released];
            },
            &["retrying"],
            "Attempt 2 of 3 waits until 2026-01-01T00:03:20Z because attempt 1 failed: boom.",
        ),
        case(
            Retrying,
            |job, facts| {
                (job.attempts, facts.leader) = (1, false);
                job.attempt_log = vec![ended(AttemptOutcome::TimedOut, "")];
            },
            &["no_leader", "retrying"],
            "because attempt 1 ran out of time",
        ),
        case(Pending, |_, _| {}, &["waiting_turn"], "Nothing stands in its way"),
        case(Pending, |_, facts| facts.reach = None, &["waiting_turn"], "Nothing stands in its way"),
        // A claim needs no leader.
        case(Pending, |_, facts| facts.leader = false, &["waiting_turn"], "Nothing stands in its way"),
        case(Pending, |_, facts| facts.paused = true, &["queue_paused"], "Its queue q is paused."),
        case(
            Pending,
            |_, facts| (facts.paused, facts.reach) = (true, Some(Reach::Busy)),
            &["queue_paused"],
            "Its queue q is paused.",
        ),
        case(Pending, |_, facts| facts.reach = Some(Reach::Nobody), &["no_worker"], "No worker is alive."),
        case(
            Pending,
            |_, facts| facts.reach = Some(Reach::OtherQueues),
            &["no_worker_for_queue"],
            "No live worker takes jobs from queue q.",
        ),
        case(
            Pending,
            |_, facts| facts.reach = Some(Reach::OtherTypes),
            &["no_worker_for_type"],
            "No live worker of queue q knows t.",
        ),
        case(Pending, |_, facts| facts.reach = Some(Reach::Draining), &["workers_draining"], "is draining"),
        case(Pending, |_, facts| facts.reach = Some(Reach::Busy), &["no_free_slot"], "takes t from q is busy"),
        case(Pending, |job, _| job.expires_at = Some(at(100)), &["expired"], "is about to be cancelled"),
        case(
            Pending,
            |job, facts| (job.expires_at, facts.leader) = (Some(at(100)), false),
            &["no_leader", "expired"],
            "No node leads",
        ),
        // What has started once does not expire.
        case(
            Pending,
            |job, _| (job.expires_at, job.started_at) = (Some(at(100)), Some(at(1))),
            &["waiting_turn"],
            "Nothing stands in its way",
        ),
    ]
}

fn owned() -> Vec<Case> {
    use JobState::*;
    let own = |job: &mut Job| {
        job.worker = Some(WorkerName::trusted("w"));
        (job.started_at, job.lease_expires_at) = (Some(at(90)), Some(at(120)));
    };
    vec![
        case(Running, |job, _| own(job), &["running"], "Worker w has been running attempt 1 of 3 since"),
        case(Dispatched, |job, _| own(job), &["dispatched"], "Attempt 1 of 3 was sent to worker w at"),
        case(
            Running,
            |job, _| {
                own(job);
                job.cancel_requested = true;
            },
            &["cancel_requested", "running"],
            "Its worker was asked to stop",
        ),
        case(
            Running,
            |job, _| {
                own(job);
                job.lease_expires_at = Some(at(100));
            },
            &["lease_expired", "running"],
            "about to be taken back",
        ),
        case(
            Running,
            |job, facts| {
                own(job);
                (job.lease_expires_at, facts.leader) = (Some(at(100)), false);
            },
            &["no_leader", "lease_expired", "running"],
            "No node leads",
        ),
    ]
}

fn over() -> Vec<Case> {
    use JobState::*;
    let why = |job: &mut Job, reason: &str| {
        job.reason = Some(reason.to_owned());
        (job.attempts, job.finished_at) = (1, Some(at(50)));
        job.attempt_log = vec![ended(AttemptOutcome::Failed, &"é".repeat(201))];
    };
    vec![
        case(
            Completed,
            |job, _| job.finished_at = Some(at(50)),
            &["completed"],
            "It completed at 2026-01-01T00:00:50Z.",
        ),
        case(
            Dead,
            |job, _| why(job, "attempts_exhausted"),
            &["attempts_exhausted"],
            "after 1 of 3 attempts: attempt 1 failed",
        ),
        case(Dead, |job, _| why(job, "fatal"), &["failed"], "ééé…."),
        case(
            Dead,
            |job, _| {
                why(job, "crash_loop");
                job.losses = 3;
            },
            &["crash_loop"],
            "3 workers in a row were lost",
        ),
        case(Cancelled, |job, _| why(job, "requested"), &["cancelled"], "on request"),
        case(Cancelled, |job, _| why(job, "expired"), &["expired"], "had not started in time"),
        case(
            Cancelled,
            |job, facts| {
                why(job, "dependency_failed");
                facts.parents = vec![(id(1), Dead), (id(2), Completed)];
            },
            &["dependency_failed"],
            "a job that it depends on did not complete",
        ),
    ]
}

#[test]
fn every_reason_is_told_the_one_that_decides_first() {
    let mut told = BTreeSet::new();
    for Case { job, facts, codes, says } in [waiting(), owned(), over()].into_iter().flatten() {
        let explanation = explain(&job, &facts);
        let reasons: Vec<&str> = explanation.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!(reasons, codes, "{explanation:?}");
        assert!(explanation.summary.contains(says), "{says:?}: {explanation:?}");
        assert_eq!((explanation.state, explanation.status), (job.state, job.state.status()));
        told.extend(explanation.reasons.into_iter().map(|reason| reason.code));
    }
    let all: BTreeSet<String> = ReasonCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(told, all);
}

#[test]
fn a_hundred_jobs_are_named_and_the_others_counted() {
    let mut facts = facts();
    facts.parents = (0..=250).map(|n| (id(n), if n == 0 { JobState::Dead } else { JobState::Pending })).collect();
    let reason = explain(&job(JobState::Blocked), &facts).reasons.remove(0);
    assert_eq!((reason.jobs.len(), reason.more, reason.jobs[0].job_id), (100, Some(150), id(1)));
    assert!(reason.message.contains("250 jobs"), "{reason:?}");
    facts.parents.truncate(101);
    assert_eq!(explain(&job(JobState::Blocked), &facts).reasons[0].more, None);
}

#[test]
fn workers_come_as_close_as_the_closest_of_them() {
    let (queue, kind) = (Queue::trusted("q"), JobType::trusted("t"));
    let worker = WorkerStatus {
        info: WorkerInfo {
            queues: Queues::Named(vec![queue.clone()]),
            job_types: Some(vec![kind.clone()]),
            ..WorkerInfo::any(WorkerName::trusted("w"))
        },
        directive: Directive::Run,
        free_slots: 1,
        started_at: at(0),
        last_seen_at: at(70),
        seen_ago: Duration::from_secs(30),
    };
    let reach = |change: &dyn Fn(&mut WorkerStatus)| {
        let mut worker = worker.clone();
        change(&mut worker);
        Reach::of(&worker, &queue, &kind)
    };
    let steps = [
        reach(&|worker| worker.seen_ago = Duration::from_secs(31)),
        reach(&|worker| worker.info.queues = Queues::Named(vec![Queue::trusted("other")])),
        reach(&|worker| worker.info.job_types = Some(Vec::new())),
        reach(&|worker| (worker.directive, worker.free_slots) = (Directive::Stop, 0)),
        reach(&|worker| worker.free_slots = 0),
        reach(&|worker| (worker.info.queues, worker.info.job_types) = (Queues::All, None)),
    ];
    assert_eq!(
        steps,
        [Reach::Nobody, Reach::OtherQueues, Reach::OtherTypes, Reach::Draining, Reach::Busy, Reach::Free]
    );
    assert!(steps.is_sorted());
}

#[test]
fn only_what_a_state_asks_for_is_looked_at() {
    let asks =
        |job: &Job| (facts::asks_for_parents(job), facts::asks_for_workers(job), facts::asks_for_leader(job, at(100)));
    let with_parents = |state| Job { depends_on: vec![id(1)], ..job(state) };
    assert_eq!(asks(&with_parents(JobState::Blocked)), (true, true, true));
    assert_eq!(asks(&with_parents(JobState::Pending)), (false, true, false));
    assert_eq!(asks(&job(JobState::Created)), (false, true, false));
    assert_eq!(asks(&Job { expires_at: Some(at(100)), ..job(JobState::Pending) }), (false, true, true));
    assert_eq!(asks(&job(JobState::Running)), (false, false, false));
    assert_eq!(asks(&Job { lease_expires_at: Some(at(100)), ..job(JobState::Running) }), (false, false, true));
    assert_eq!(asks(&with_parents(JobState::Completed)), (false, false, false));
    let failed = Job { reason: Some("dependency_failed".into()), ..with_parents(JobState::Cancelled) };
    assert_eq!(asks(&failed), (true, false, false));
}
