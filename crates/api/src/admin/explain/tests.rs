//! Every reason and the facts that lead to it.

use std::{collections::BTreeSet, time::Duration};

use orchestrix_core::{
    AttemptOutcome, AttemptRecord, Job, JobState, JobType, OnDependencyFailure, Queue, Tenant, Weight, WorkerName,
};
use orchestrix_store::{Directive, Queues, WorkerInfo, WorkerStatus};

use super::*;
use crate::admin::fixtures::{at, id, job};

fn attempt(outcome: AttemptOutcome, error: &str) -> AttemptRecord {
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

/// A worker has a free slot, and there is a leader.
fn facts() -> Facts {
    Facts { availability: Some(WorkerAvailability::Available), ..Facts::none(at(100)) }
}

struct Case {
    job: Job,
    facts: Facts,
    codes: &'static [&'static str],
    message: &'static str,
}

fn case(
    state: JobState,
    change: impl FnOnce(&mut Job, &mut Facts),
    codes: &'static [&'static str],
    message: &'static str,
) -> Case {
    let (mut job, mut facts) = (job(state), facts());
    change(&mut job, &mut facts);
    Case { job, facts, codes, message }
}

fn waiting() -> Vec<Case> {
    use JobState::*;
    vec![
        case(Created, |_, _| {}, &["held"], "It is held until it is released."),
        case(
            Created,
            |job, facts| {
                job.on_dependency_failure = OnDependencyFailure::Hold;
                facts.dependencies = vec![(id(1), Dead), (id(2), Completed)];
            },
            &["held"],
            "because 1 job did not complete",
        ),
        case(
            Created,
            |job, facts| (job.eligible_at, facts.dependencies) = (at(200), vec![(id(1), Running)]),
            &["held", "blocked", "scheduled"],
            "it waits for 1 job to finish; it cannot start before",
        ),
        case(
            Blocked,
            |_, facts| {
                facts.dependencies = vec![(id(1), Running), (id(2), Completed), (id(3), Pending)];
                (facts.paused, facts.availability, facts.leader) = (true, Some(WorkerAvailability::NoWorker), false);
            },
            // The completion of the last dependency unblocks the job, which needs no leader.
            &["blocked", "queue_paused", "no_worker"],
            "It waits for 2 jobs to finish; its queue q is paused; no worker is alive.",
        ),
        case(
            Blocked,
            |_, facts| facts.dependencies = vec![(id(1), Completed)],
            &["blocked"],
            "waits for the leader to unblock it",
        ),
        case(Blocked, |_, facts| facts.leader = false, &["no_leader", "blocked"], "There is no leader"),
        case(Scheduled, |job, _| job.eligible_at = at(200), &["scheduled"], "cannot start before 2026-01-01T00:03:20Z"),
        case(Scheduled, |_, _| {}, &["scheduled"], "waits for the leader to promote it"),
        case(
            Scheduled,
            |job, _| {
                job.eligible_at = at(200);
                job.attempt_log = vec![attempt(AttemptOutcome::Snoozed, "")];
            },
            &["scheduled"],
            "Its worker snoozed it until",
        ),
        case(
            Scheduled,
            |job, facts| (job.eligible_at, facts.leader) = (at(200), false),
            &["scheduled", "no_leader"],
            "which the job needs to proceed",
        ),
        case(Scheduled, |_, facts| facts.leader = false, &["no_leader", "scheduled"], "which the job needs to proceed"),
        case(
            Retrying,
            |job, _| {
                (job.attempts, job.eligible_at) = (1, at(200));
                let released = attempt(AttemptOutcome::Released, "");
                job.attempt_log = vec![attempt(AttemptOutcome::Failed, "\n boom \nat line 1"), released];
            },
            &["retrying"],
            "Attempt 2 of 3 waits until 2026-01-01T00:03:20Z because attempt 1 failed: boom.",
        ),
        case(
            Retrying,
            |job, facts| {
                (job.attempts, facts.leader) = (1, false);
                job.attempt_log = vec![attempt(AttemptOutcome::TimedOut, "")];
            },
            &["no_leader", "retrying"],
            "because attempt 1 timed out",
        ),
        case(Pending, |_, _| {}, &["waiting_turn"], "It is claimable"),
        case(Pending, |_, facts| facts.availability = None, &["waiting_turn"], "It is claimable"),
        // Claiming needs no leader.
        case(Pending, |_, facts| facts.leader = false, &["waiting_turn"], "It is claimable"),
        case(Pending, |_, facts| facts.paused = true, &["queue_paused"], "Its queue q is paused."),
        case(
            Pending,
            |_, facts| (facts.paused, facts.availability) = (true, Some(WorkerAvailability::Busy)),
            &["queue_paused"],
            "Its queue q is paused.",
        ),
        case(
            Pending,
            |_, facts| facts.availability = Some(WorkerAvailability::NoWorker),
            &["no_worker"],
            "No worker is alive.",
        ),
        case(
            Pending,
            |_, facts| facts.availability = Some(WorkerAvailability::NoWorkerForQueue),
            &["no_worker_for_queue"],
            "No live worker serves queue q.",
        ),
        case(
            Pending,
            |_, facts| facts.availability = Some(WorkerAvailability::NoWorkerForType),
            &["no_worker_for_type"],
            "No live worker of queue q handles t.",
        ),
        case(
            Pending,
            |_, facts| facts.availability = Some(WorkerAvailability::Draining),
            &["workers_draining"],
            "is draining",
        ),
        case(
            Pending,
            |_, facts| facts.availability = Some(WorkerAvailability::Busy),
            &["no_free_slot"],
            "serves t in q is busy: a free slot runs it",
        ),
        case(
            Pending,
            |job, facts| (job.tenant, facts.weight) = (Tenant::trusted("acme"), Weight::new(3).unwrap()),
            &["waiting_turn"],
            "after jobs over priority 0, jobs of its tenant acme (weight 3) that have waited longer, and the turns of",
        ),
        case(Pending, |job, _| job.expires_at = Some(at(100)), &["expired"], "waits for the leader to cancel it"),
        case(
            Pending,
            |job, facts| (job.expires_at, facts.leader) = (Some(at(100)), false),
            &["no_leader", "expired"],
            "There is no leader",
        ),
        // A job that has started once does not expire.
        case(
            Pending,
            |job, _| (job.expires_at, job.started_at) = (Some(at(100)), Some(at(1))),
            &["waiting_turn"],
            "It is claimable",
        ),
    ]
}

fn leased() -> Vec<Case> {
    use JobState::*;
    let lease = |job: &mut Job| {
        job.worker = Some(WorkerName::trusted("w"));
        (job.started_at, job.lease_expires_at) = (Some(at(90)), Some(at(120)));
    };
    vec![
        case(Running, |job, _| lease(job), &["running"], "Worker w has been running attempt 1 of 3 since"),
        case(Dispatched, |job, _| lease(job), &["dispatched"], "Attempt 1 of 3 was dispatched to worker w at"),
        case(
            Running,
            |job, _| {
                lease(job);
                job.cancel_requested = true;
            },
            &["cancel_requested", "running"],
            "A cancellation was requested",
        ),
        case(
            Running,
            |job, _| {
                lease(job);
                job.lease_expires_at = Some(at(100));
            },
            &["lease_expired", "running"],
            "waits for the leader to reap it",
        ),
        case(
            Running,
            |job, facts| {
                lease(job);
                (job.lease_expires_at, facts.leader) = (Some(at(100)), false);
            },
            &["no_leader", "lease_expired", "running"],
            "There is no leader",
        ),
    ]
}

fn finished() -> Vec<Case> {
    use JobState::*;
    let finish = |job: &mut Job, reason: &str| {
        job.reason = Some(reason.to_owned());
        (job.attempts, job.finished_at) = (1, Some(at(50)));
        job.attempt_log = vec![attempt(AttemptOutcome::Failed, &"é".repeat(201))];
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
            |job, _| finish(job, "attempts_exhausted"),
            &["attempts_exhausted"],
            "after 1 of 3 attempts: attempt 1 failed",
        ),
        case(Dead, |job, _| finish(job, "fatal"), &["failed"], "ééé…."),
        case(
            Dead,
            |job, _| {
                finish(job, "crash_loop");
                job.losses = 3;
            },
            &["crash_loop"],
            "3 workers in a row were lost",
        ),
        case(Cancelled, |job, _| finish(job, "requested"), &["cancelled"], "on request"),
        case(Cancelled, |job, _| finish(job, "expired"), &["expired"], "did not start before its expiry time"),
        case(
            Cancelled,
            |job, facts| {
                finish(job, "dependency_failed");
                facts.dependencies = vec![(id(1), Dead), (id(2), Completed)];
            },
            &["dependency_failed"],
            "a dependency did not complete",
        ),
    ]
}

#[test]
fn every_reason_is_reported_and_the_decisive_one_comes_first() {
    let mut reported = BTreeSet::new();
    for Case { job, facts, codes, message } in [waiting(), leased(), finished()].into_iter().flatten() {
        let explanation = explain(&job, &facts);
        let reasons: Vec<&str> = explanation.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!(reasons, codes, "{explanation:?}");
        assert!(explanation.summary.contains(message), "{message:?}: {explanation:?}");
        assert_eq!((explanation.state, explanation.status), (job.state, job.state.status()));
        reported.extend(explanation.reasons.into_iter().map(|reason| reason.code));
    }
    let all: BTreeSet<String> = ReasonCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(reported, all);
}

#[test]
fn only_a_job_that_waits_for_a_slot_waits_for_the_turn_of_its_tenant() {
    let facts = |availability| Facts { availability: Some(availability), weight: Weight::new(3).unwrap(), ..facts() };
    for (availability, turn) in [
        (WorkerAvailability::Available, Some(("default", 3))),
        (WorkerAvailability::Busy, Some(("default", 3))),
        (WorkerAvailability::Draining, None),
        (WorkerAvailability::NoWorker, None),
    ] {
        let reason = explain(&job(JobState::Pending), &facts(availability)).reasons.remove(0);
        assert_eq!(reason.tenant.as_ref().map(Tenant::as_str).zip(reason.weight), turn, "{reason:?}");
    }
}

#[test]
fn a_reason_lists_100_jobs_and_counts_the_others() {
    let mut facts = facts();
    facts.dependencies = (0..=250).map(|n| (id(n), if n == 0 { JobState::Dead } else { JobState::Pending })).collect();
    let reason = explain(&job(JobState::Blocked), &facts).reasons.remove(0);
    assert_eq!((reason.jobs.len(), reason.more, reason.jobs[0].job_id), (100, Some(150), id(1)));
    assert!(reason.message.contains("250 jobs"), "{reason:?}");
    facts.dependencies.truncate(101);
    assert_eq!(explain(&job(JobState::Blocked), &facts).reasons[0].more, None);
}

#[test]
fn worker_availability_is_ordered_from_no_worker_to_a_free_slot() {
    let (queue, job_type) = (Queue::trusted("q"), JobType::trusted("t"));
    let worker = WorkerStatus {
        info: WorkerInfo {
            queues: Queues::Named(vec![queue.clone()]),
            job_types: Some(vec![job_type.clone()]),
            ..WorkerInfo::any(WorkerName::trusted("w"))
        },
        directive: Directive::Run,
        free_slots: 1,
        started_at: at(0),
        last_seen_at: at(70),
        seen_ago: Duration::from_secs(30),
    };
    let availability = |change: &dyn Fn(&mut WorkerStatus)| {
        let mut worker = worker.clone();
        change(&mut worker);
        WorkerAvailability::of(&worker, &queue, &job_type)
    };
    let levels = [
        availability(&|worker| worker.seen_ago = Duration::from_secs(31)),
        availability(&|worker| worker.info.queues = Queues::Named(vec![Queue::trusted("other")])),
        availability(&|worker| worker.info.job_types = Some(Vec::new())),
        availability(&|worker| (worker.directive, worker.free_slots) = (Directive::Stop, 0)),
        availability(&|worker| worker.free_slots = 0),
        availability(&|worker| (worker.info.queues, worker.info.job_types) = (Queues::All, None)),
    ];
    assert_eq!(
        levels,
        [
            WorkerAvailability::NoWorker,
            WorkerAvailability::NoWorkerForQueue,
            WorkerAvailability::NoWorkerForType,
            WorkerAvailability::Draining,
            WorkerAvailability::Busy,
            WorkerAvailability::Available
        ]
    );
    assert!(levels.is_sorted());
}

#[test]
fn only_the_facts_that_a_state_needs_are_gathered() {
    let needs =
        |job: &Job| (facts::needs_dependencies(job), facts::needs_workers(job), facts::needs_leader(job, at(100)));
    let with_dependencies = |state| Job { depends_on: vec![id(1)], ..job(state) };
    assert_eq!(needs(&with_dependencies(JobState::Blocked)), (true, true, true));
    assert_eq!(needs(&with_dependencies(JobState::Pending)), (false, true, false));
    assert_eq!(needs(&job(JobState::Created)), (false, true, false));
    assert_eq!(needs(&Job { expires_at: Some(at(100)), ..job(JobState::Pending) }), (false, true, true));
    assert_eq!(needs(&job(JobState::Running)), (false, false, false));
    assert_eq!(needs(&Job { lease_expires_at: Some(at(100)), ..job(JobState::Running) }), (false, false, true));
    assert_eq!(needs(&with_dependencies(JobState::Completed)), (false, false, false));
    let failed = Job { reason: Some("dependency_failed".into()), ..with_dependencies(JobState::Cancelled) };
    assert_eq!(needs(&failed), (true, false, false));
    let states = JobState::ALL.iter().copied().filter(|state| facts::needs_weight(&job(*state)));
    assert_eq!(states.collect::<Vec<_>>(), [JobState::Pending]);
}
