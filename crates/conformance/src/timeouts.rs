//! Timeouts of attempts.

use std::time::Duration;

use orchestrix_core::{AttemptOutcome, JobState, NewJob};

use super::{Harness, fixture::*};
use orchestrix_store::{Fence, FinishError, Outcome, SweepResult};

fn with_timeout(seconds: u64) -> NewJob {
    NewJob { timeout: Some(secs(seconds)), lease: secs(3600), ..job("t") }
}

pub(super) async fn a_timed_out_attempt_backs_off_like_a_failure(h: &Harness) {
    let claimed = h.start(with_timeout(10)).await;
    h.advance(secs(9)).await;
    assert_eq!(h.time_out().await, SweepResult { count: 0, next_in: Some(secs(1)) });
    h.advance(secs(1)).await;
    let now = h.now().await;
    assert_eq!(h.time_out().await, SweepResult { count: 1, next_in: None });
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.eligible_at, job.updated_at), (JobState::Retrying, now + secs(1), now));
    assert_eq!((job.attempts, job.lease_expires_at), (1, None));
    let record = &job.attempt_log[0];
    assert_eq!((record.outcome, record.attempt, record.ended_at), (AttemptOutcome::TimedOut, 1, now));
    assert_eq!(h.finish(&claimed, Outcome::DONE).await, Err(FinishError::LeaseLost));
}

pub(super) async fn heartbeats_do_not_postpone_a_timeout(h: &Harness) {
    let claimed = h.start(NewJob { lease: secs(6), ..with_timeout(10) }).await;
    for _ in 0..2 {
        h.advance(secs(5)).await;
        h.store.extend_leases(&[claimed.token]).await.expect("a store that answers");
    }
    assert_eq!((h.reap().await.count, h.time_out().await.count), (0, 1));
}

pub(super) async fn a_job_dies_when_its_last_attempt_times_out(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..with_timeout(10) }).await;
    h.advance(secs(10)).await;
    h.time_out().await;
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.reason.as_deref()), (JobState::Dead, Some("attempts_exhausted")));
    assert_eq!((job.attempts, job.finished_at), (1, Some(h.now().await)));
}

pub(super) async fn every_attempt_has_its_own_timeout(h: &Harness) {
    let claimed = h.start(with_timeout(10)).await;
    h.advance(secs(9)).await;
    h.end(&claimed, Outcome::Release).await;
    h.claim_one().await;
    h.advance(secs(9)).await;
    assert_eq!(h.time_out().await, SweepResult { count: 0, next_in: Some(secs(1)) });
}

pub(super) async fn a_job_without_a_timeout_or_without_a_lease_never_times_out(h: &Harness) {
    h.start(job("untimed")).await;
    let released = h.start(with_timeout(10)).await;
    h.end(&released, Outcome::Snooze(secs(1))).await;
    h.advance(secs(100)).await;
    assert_eq!(h.time_out().await, SweepResult::default());
}

pub(super) async fn attempts_time_out_longest_overdue_first(h: &Harness) {
    let mut claimed = Vec::new();
    for seconds in [3, 1, 2, 90] {
        claimed.push(h.start(with_timeout(seconds)).await);
    }
    h.advance(secs(30)).await;
    let step = || async { h.store.time_out_attempts(Fence::NONE, 2).await.expect("a valid limit") };
    assert_eq!(step().await, SweepResult { count: 2, next_in: Some(Duration::ZERO) });
    assert_eq!(
        (h.state(claimed[1].id()).await, h.state(claimed[2].id()).await),
        (JobState::Retrying, JobState::Retrying)
    );
    assert_eq!(step().await, SweepResult { count: 1, next_in: Some(secs(60)) });
}

pub(super) async fn a_worker_can_report_a_timeout_before_the_sweep(h: &Harness) {
    let claimed = h.start(with_timeout(10)).await;
    h.advance(secs(9)).await;
    let now = h.now().await;
    assert_eq!(h.end(&claimed, Outcome::TimedOut).await, JobState::Retrying);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.eligible_at, job.updated_at), (JobState::Retrying, now + secs(1), now));
    assert_eq!((job.attempts, job.losses, job.lease_expires_at), (1, 0, None));
    let record = &job.attempt_log[0];
    assert_eq!((record.outcome, record.attempt, record.ended_at), (AttemptOutcome::TimedOut, 1, now));
    assert_eq!(record.error, None, "as the sweep writes it");
    h.advance(secs(10)).await;
    assert_eq!(h.time_out().await, SweepResult::default(), "the attempt has already ended");
}

pub(super) async fn a_job_dies_when_its_worker_reports_its_last_attempt_as_timed_out(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..with_timeout(10) }).await;
    assert_eq!(h.end(&claimed, Outcome::TimedOut).await, JobState::Dead);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.reason.as_deref(), job.attempts), (Some("attempts_exhausted"), 1));
    assert_eq!(h.finish(&claimed, Outcome::TimedOut).await, Ok(JobState::Dead));
}

pub(super) async fn a_timeout_reported_after_the_sweep_gets_the_same_answer(h: &Harness) {
    let claimed = h.start(with_timeout(10)).await;
    h.advance(secs(10)).await;
    assert_eq!(h.time_out().await.count, 1);
    let before = h.job(claimed.id()).await;
    assert_eq!(h.finish(&claimed, Outcome::TimedOut).await, Ok(JobState::Retrying));
    assert_eq!(h.finish(&claimed, Outcome::DONE).await, Err(FinishError::LeaseLost));
    assert_eq!(h.job(claimed.id()).await, before);
}
