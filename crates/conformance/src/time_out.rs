//! Attempts that ran over their job's timeout.

use std::time::Duration;

use orchestrix_core::{AttemptOutcome, JobState, NewJob};

use super::{Harness, fixture::*};
use orchestrix_store::{Fence, FinishError, Outcome, SweepResult};

fn timed(seconds: u64) -> NewJob {
    NewJob { timeout: Some(secs(seconds)), lease: secs(3600), ..job("t") }
}

pub(super) async fn an_attempt_over_its_time_backs_off_like_a_failure(h: &Harness) {
    let claimed = h.start(timed(10)).await;
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

pub(super) async fn heartbeats_do_not_put_a_timeout_off(h: &Harness) {
    let claimed = h.start(NewJob { lease: secs(6), ..timed(10) }).await;
    for _ in 0..2 {
        h.advance(secs(5)).await;
        h.store.extend_leases(&[claimed.token]).await.expect("a store that answers");
    }
    assert_eq!((h.reap().await.count, h.time_out().await.count), (0, 1));
}

pub(super) async fn the_last_attempt_over_its_time_is_the_death_of_a_job(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..timed(10) }).await;
    h.advance(secs(10)).await;
    h.time_out().await;
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.reason.as_deref()), (JobState::Dead, Some("attempts_exhausted")));
    assert_eq!((job.attempts, job.finished_at), (1, Some(h.now().await)));
}

pub(super) async fn every_attempt_has_its_own_time(h: &Harness) {
    let claimed = h.start(timed(10)).await;
    h.advance(secs(9)).await;
    h.end(&claimed, Outcome::Release).await;
    h.claim_one().await;
    h.advance(secs(9)).await;
    assert_eq!(h.time_out().await, SweepResult { count: 0, next_in: Some(secs(1)) });
}

pub(super) async fn a_job_without_a_timeout_or_without_an_owner_never_times_out(h: &Harness) {
    h.start(job("untimed")).await;
    let released = h.start(timed(10)).await;
    h.end(&released, Outcome::Snooze(secs(1))).await;
    h.advance(secs(100)).await;
    assert_eq!(h.time_out().await, SweepResult::default());
}

pub(super) async fn the_longest_over_their_time_end_first(h: &Harness) {
    let mut claimed = Vec::new();
    for seconds in [3, 1, 2, 90] {
        claimed.push(h.start(timed(seconds)).await);
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

pub(super) async fn a_worker_that_stops_its_attempt_in_time_says_the_same(h: &Harness) {
    let claimed = h.start(timed(10)).await;
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
    assert_eq!(h.time_out().await, SweepResult::default(), "it is over already");
}

pub(super) async fn the_last_attempt_that_a_worker_stopped_is_the_death_of_a_job(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..timed(10) }).await;
    assert_eq!(h.end(&claimed, Outcome::TimedOut).await, JobState::Dead);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.reason.as_deref(), job.attempts), (Some("attempts_exhausted"), 1));
    assert_eq!(h.finish(&claimed, Outcome::TimedOut).await, Ok(JobState::Dead));
}

pub(super) async fn a_worker_that_comes_after_the_sweep_is_answered_alike(h: &Harness) {
    let claimed = h.start(timed(10)).await;
    h.advance(secs(10)).await;
    assert_eq!(h.time_out().await.count, 1);
    let before = h.job(claimed.id()).await;
    assert_eq!(h.finish(&claimed, Outcome::TimedOut).await, Ok(JobState::Retrying));
    assert_eq!(h.finish(&claimed, Outcome::DONE).await, Err(FinishError::LeaseLost));
    assert_eq!(h.job(claimed.id()).await, before);
}
