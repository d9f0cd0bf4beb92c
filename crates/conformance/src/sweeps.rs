//! Sweeps: promote due jobs, expire late ones, reap expired leases. Always in bounded steps, longest due first.

use std::time::Duration;

use orchestrix_core::{AttemptOutcome, AttemptRecord, JobId, JobState, NewJob, Start};

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimRequest, Fence, JobFilter, Outcome, Retention, SweepResult};

async fn in_state(h: &Harness, state: JobState) -> Vec<JobId> {
    let mut ids = h.listed(&JobFilter { states: vec![state], ..JobFilter::default() }).await;
    ids.sort_unstable();
    ids
}

pub(super) async fn a_job_is_promoted_when_its_time_has_come(h: &Harness) {
    let id = h.enqueue(NewJob { start: Start::After(secs(60)), ..job("t") }).await;
    let time = h.now().await + secs(60);
    h.advance(Duration::from_micros(59_999_999)).await;
    assert_eq!(h.promote().await, SweepResult { count: 0, next_in: Some(Duration::from_micros(1)) });
    assert_eq!(h.state(id).await, JobState::Scheduled);
    h.advance(secs(1)).await;
    let now = h.now().await;
    assert_eq!(h.promote().await, SweepResult { count: 1, next_in: None });
    let job = h.job(id).await;
    assert_eq!((job.state, job.eligible_at, job.updated_at), (JobState::Pending, time, now));
}

pub(super) async fn a_retrying_job_is_promoted_after_its_back_off(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Outcome::fail("not yet")).await;
    assert_eq!(h.promote().await, SweepResult { count: 0, next_in: Some(secs(1)) });
    h.advance(secs(1)).await;
    assert_eq!(h.promote().await, SweepResult { count: 1, next_in: None });
    assert_eq!(h.claim_one().await.attempt, 2);
}

pub(super) async fn jobs_are_promoted_longest_due_first(h: &Harness) {
    let mut ids = Vec::new();
    for delay in [3, 1, 2, 90] {
        ids.push(h.enqueue(NewJob { start: Start::After(secs(delay)), ..job("t") }).await);
    }
    h.advance(secs(30)).await;
    let step = || async { h.store.promote_jobs(Fence::NONE, 2).await.expect("a valid limit") };
    assert_eq!(step().await, SweepResult { count: 2, next_in: Some(Duration::ZERO) });
    let mut promoted = vec![ids[1], ids[2]];
    promoted.sort_unstable();
    assert_eq!(in_state(h, JobState::Pending).await, promoted);
    assert_eq!(step().await, SweepResult { count: 1, next_in: Some(secs(60)) });
    assert_eq!(h.state(ids[3]).await, JobState::Scheduled);
}

pub(super) async fn a_job_that_did_not_start_in_time_expires(h: &Harness) {
    let running = h.start(job("running")).await;
    let expires_at = Some(h.now().await + secs(5));
    let late = [
        h.enqueue(NewJob { expires_at, hold: true, ..job("created") }).await,
        h.enqueue(NewJob { expires_at, ..child_of([running.id()]) }).await,
        h.enqueue(NewJob { expires_at, start: Start::After(secs(60)), ..job("scheduled") }).await,
        h.enqueue(NewJob { expires_at, ..job("pending") }).await,
    ];
    h.advance(secs(4)).await;
    assert_eq!(h.expire().await, SweepResult { count: 0, next_in: Some(secs(1)) });
    h.advance(secs(1)).await;
    let now = h.now().await;
    assert_eq!(h.expire().await, SweepResult { count: 4, next_in: None });
    for id in late {
        let job = h.job(id).await;
        assert_eq!((job.state, job.reason.as_deref()), (JobState::Cancelled, Some("expired")));
        assert_eq!((job.finished_at, job.updated_at), (Some(now), now));
    }
}

pub(super) async fn a_job_that_has_started_does_not_expire(h: &Harness) {
    let expires_at = Some(h.now().await + secs(5));
    let running = h.start(NewJob { expires_at, ..job("running") }).await;
    let mut started = vec![(running.id(), JobState::Running)];
    for (outcome, state) in [
        (Outcome::Release, JobState::Pending),
        (Outcome::Snooze(secs(60)), JobState::Scheduled),
        (Outcome::fail("not yet"), JobState::Retrying),
    ] {
        let id = h.enqueue(NewJob { expires_at, queue: queue("q"), ..job("t") }).await;
        let mut claimed = h.claim_all().await;
        claimed.retain(|claimed| claimed.id() == id);
        h.end(&claimed[0], outcome).await;
        started.push((id, state));
    }
    h.advance(secs(10)).await;
    assert_eq!(h.expire().await, SweepResult::default());
    for (id, state) in started.into_iter().filter(|(_, state)| *state != JobState::Pending) {
        assert_eq!(h.state(id).await, state);
    }
}

pub(super) async fn a_parent_and_its_child_that_expire_together_both_have_reason_expired(h: &Harness) {
    let expires_at = Some(h.now().await + secs(5));
    let parent = h.enqueue(NewJob { expires_at, ..job("parent") }).await;
    let child = h.enqueue(NewJob { expires_at, ..child_of([parent]) }).await;
    h.advance(secs(5)).await;
    assert_eq!(h.expire().await.count, 2);
    for id in [parent, child] {
        assert_eq!(h.job(id).await.reason.as_deref(), Some("expired"));
    }
}

pub(super) async fn jobs_expire_longest_overdue_first(h: &Harness) {
    let now = h.now().await;
    let mut ids = Vec::new();
    for seconds in [3, 1, 2, 90] {
        ids.push(h.enqueue(NewJob { expires_at: Some(now + secs(seconds)), ..job("t") }).await);
    }
    h.advance(secs(30)).await;
    let step = || async { h.store.expire_jobs(Fence::NONE, 2).await.expect("a valid limit") };
    assert_eq!(step().await, SweepResult { count: 2, next_in: Some(Duration::ZERO) });
    assert_eq!((h.state(ids[1]).await, h.state(ids[2]).await), (JobState::Cancelled, JobState::Cancelled));
    assert_eq!(step().await, SweepResult { count: 1, next_in: Some(secs(60)) });
}

pub(super) async fn a_lease_is_reaped_only_after_it_expired(h: &Harness) {
    h.enqueue(job("t")).await;
    let started_at = h.now().await;
    let claimed = h.claim(&ClaimRequest::any(worker("ann"), 1)).await.remove(0);
    h.advance(Duration::from_micros(29_999_999)).await;
    assert_eq!(h.reap().await, SweepResult { count: 0, next_in: Some(Duration::from_micros(1)) });
    assert_eq!(h.state(claimed.id()).await, JobState::Running);
    h.advance(Duration::from_micros(1)).await;
    let now = h.now().await;
    assert_eq!(h.reap().await, SweepResult { count: 1, next_in: None });
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.eligible_at, job.updated_at), (JobState::Pending, now, now));
    assert_eq!((job.attempts, job.losses, job.lease_expires_at), (1, 1, None));
    let record = AttemptRecord {
        attempt: 1,
        lease: 1,
        outcome: AttemptOutcome::Lost,
        led_to: JobState::Pending,
        worker: Some(worker("ann")),
        started_at,
        ended_at: now,
        error: None,
    };
    assert_eq!(job.attempt_log, [record]);
    let again = h.claim_one().await;
    assert_eq!((again.attempt, again.token.counter), (2, 2));
}

pub(super) async fn leases_are_reaped_longest_expired_first(h: &Harness) {
    let mut claimed = Vec::new();
    for lease in [3, 1, 2, 90] {
        claimed.push(h.start(NewJob { lease: secs(lease), ..job("t") }).await);
    }
    h.advance(secs(30)).await;
    let step = || async { h.store.reap_leases(Fence::NONE, 2, 3).await.expect("a valid limit") };
    assert_eq!(step().await, SweepResult { count: 2, next_in: Some(Duration::ZERO) });
    assert_eq!(
        (h.state(claimed[1].id()).await, h.state(claimed[2].id()).await),
        (JobState::Pending, JobState::Pending)
    );
    assert_eq!(step().await, SweepResult { count: 1, next_in: Some(secs(60)) });
}

pub(super) async fn losses_in_a_row_are_a_crash_loop(h: &Harness) {
    h.enqueue(NewJob { max_attempts: 100, ..job("t") }).await;
    for losses in 1..=2 {
        let claimed = h.claim_one().await;
        h.advance(claimed.lease).await;
        assert_eq!(h.store.reap_leases(Fence::NONE, 10, 2).await.expect("a valid limit").count, 1);
        let job = h.job(claimed.id()).await;
        assert_eq!(job.losses, losses);
        if losses == 2 {
            assert_eq!((job.state, job.reason.as_deref()), (JobState::Dead, Some("crash_loop")));
            assert_eq!(job.finished_at, Some(h.now().await));
        }
    }
}

pub(super) async fn any_outcome_from_a_worker_resets_the_crash_loop(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 100, ..job("t") }).await;
    h.lose(&claimed).await;
    let claimed = h.claim_one().await;
    h.lose(&claimed).await;
    let claimed = h.claim_one().await;
    h.end(&claimed, Outcome::fail("still alive")).await;
    assert_eq!(h.job(claimed.id()).await.losses, 0);
    let claimed = h.start_again(claimed.id()).await;
    h.lose(&claimed).await;
    assert_eq!(h.state(claimed.id()).await, JobState::Pending);
}

pub(super) async fn a_job_that_lost_its_last_attempt_is_dead(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..job("t") }).await;
    h.lose(&claimed).await;
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.reason.as_deref()), (JobState::Dead, Some("attempts_exhausted")));
    assert_eq!((job.attempts, job.max_attempts), (1, 1));
}

pub(super) async fn sweep_limits_out_of_range_are_refused(h: &Harness) {
    for limit in [0, 10_001] {
        assert_eq!(bad_fields(h.store.promote_jobs(Fence::NONE, limit).await), ["limit"]);
        assert_eq!(bad_fields(h.store.unblock_jobs(Fence::NONE, limit).await), ["limit"]);
        assert_eq!(bad_fields(h.store.expire_jobs(Fence::NONE, limit).await), ["limit"]);
        assert_eq!(bad_fields(h.store.reap_leases(Fence::NONE, limit, 3).await), ["limit"]);
        assert_eq!(bad_fields(h.store.time_out_attempts(Fence::NONE, limit).await), ["limit"]);
        assert_eq!(bad_fields(h.store.forget_workers(Fence::NONE, secs(1), limit).await), ["limit"]);
        assert_eq!(bad_fields(h.store.prune_history(Fence::NONE, &Retention::default(), limit).await), ["limit"]);
    }
}

pub(super) async fn sweeping_an_empty_store_finds_nothing(h: &Harness) {
    for swept in [h.promote().await, h.expire().await, h.reap().await, h.time_out().await] {
        assert_eq!(swept, SweepResult::default());
    }
    assert_eq!(h.store.unblock_jobs(Fence::NONE, 10_000).await.expect("a valid limit").count, 0);
}
