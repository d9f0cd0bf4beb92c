//! Outcomes that workers report, and what is stored of them.

use orchestrix_core::{AttemptOutcome, AttemptRecord, FieldError, JobState, Json, LeaseToken, NewJob, RetryPolicy};
use uuid::Uuid;

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimRequest, FinishError, Outcome, OutcomeReport};

pub(super) async fn a_completed_job_keeps_its_result_and_no_history(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.advance(secs(5)).await;
    let now = h.now().await;
    let outcome = Outcome::Complete { result: Some(Json::trusted(r#"{ "b": 1, "a": "\u0000" }"#)) };
    assert_eq!(h.end(&claimed, outcome).await, JobState::Completed);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.attempts, job.finished_at, job.updated_at), (JobState::Completed, 1, Some(now), now));
    assert_eq!(job.result, Some(Json::trusted(r#"{ "b": 1, "a": "\u0000" }"#)));
    assert_eq!((job.reason, job.attempt_log), (None, vec![]));
}

pub(super) async fn a_finished_job_keeps_its_last_worker_and_has_no_lease(h: &Harness) {
    for outcome in [Outcome::DONE, fatal("no use"), Outcome::Cancelled] {
        h.enqueue(job("t")).await;
        let started = h.now().await;
        let claimed = h.claim(&ClaimRequest::any(worker("ann"), 1)).await.remove(0);
        h.advance(secs(5)).await;
        h.end(&claimed, outcome).await;
        let job = h.job(claimed.id()).await;
        assert_eq!((job.worker, job.started_at), (Some(worker("ann")), Some(started)));
        assert_eq!((job.lease_expires_at, job.cancel_requested), (None, false));
    }
    h.advance(secs(3600)).await;
    assert_eq!((h.reap().await.count, h.time_out().await.count, h.promote().await.count), (0, 0, 0));
}

pub(super) async fn a_failed_attempt_is_recorded_and_retried_after_its_back_off(h: &Harness) {
    h.enqueue(job("t")).await;
    let started_at = h.now().await;
    let claimed = h.claim(&ClaimRequest::any(worker("ann"), 1)).await.remove(0);
    h.advance(secs(5)).await;
    let now = h.now().await;
    assert_eq!(h.end(&claimed, Outcome::fail("it broke")).await, JobState::Retrying);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.attempts, job.eligible_at), (JobState::Retrying, 1, now + secs(1)));
    assert_eq!((job.updated_at, job.finished_at, job.lease_expires_at, job.reason), (now, None, None, None));
    let record = AttemptRecord {
        attempt: 1,
        lease: 1,
        outcome: AttemptOutcome::Failed,
        led_to: JobState::Retrying,
        worker: Some(worker("ann")),
        started_at,
        ended_at: now,
        error: Some("it broke".into()),
    };
    assert_eq!(job.attempt_log, [record]);
}

pub(super) async fn the_back_off_grows_with_every_failure_up_to_its_cap(h: &Harness) {
    let retry = RetryPolicy { base: secs(2), multiplier: 3.0, max: secs(20), jitter: 0.0 };
    let mut claimed = h.start(NewJob { retry, ..job("t") }).await;
    for wait in [2, 6, 18, 20, 20] {
        h.end(&claimed, Outcome::fail("not yet")).await;
        assert_eq!(h.job(claimed.id()).await.eligible_at, h.now().await + secs(wait));
        claimed = h.start_again(claimed.id()).await;
    }
}

pub(super) async fn jitter_adds_no_more_than_its_share(h: &Harness) {
    let retry = RetryPolicy { base: secs(100), jitter: 0.5, ..RetryPolicy::default() };
    h.enqueue_many(vec![NewJob { retry, ..job("t") }; 20]).await;
    let now = h.now().await;
    for claimed in h.claim_all().await {
        h.end(&claimed, Outcome::fail("not yet")).await;
        let eligible_at = h.job(claimed.id()).await.eligible_at;
        assert!((now + secs(100)..=now + secs(150)).contains(&eligible_at), "{eligible_at} at {now}");
    }
}

pub(super) async fn a_worker_can_set_the_retry_delay(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let outcome = Outcome::Fail { error: "slow down".into(), retryable: true, retry_after: Some(secs(77)) };
    assert_eq!(h.end(&claimed, outcome).await, JobState::Retrying);
    assert_eq!(h.job(claimed.id()).await.eligible_at, h.now().await + secs(77));
}

pub(super) async fn a_job_dies_when_its_last_attempt_fails(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 2, ..job("t") }).await;
    assert_eq!(h.end(&claimed, Outcome::fail("one")).await, JobState::Retrying);
    let claimed = h.start_again(claimed.id()).await;
    assert_eq!((claimed.attempt, claimed.max_attempts), (2, 2));
    assert_eq!(h.end(&claimed, Outcome::fail("two")).await, JobState::Dead);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.attempts, job.reason.as_deref()), (2, Some("attempts_exhausted")));
    assert_eq!(job.finished_at, Some(h.now().await));
    let log: Vec<_> = job.attempt_log.iter().map(|r| (r.attempt, r.lease, r.error.as_deref())).collect();
    assert_eq!(log, [(1, 1, Some("one")), (2, 2, Some("two"))]);
}

pub(super) async fn a_fatal_failure_kills_a_job_at_once(h: &Harness) {
    for max_attempts in [10, 1] {
        let claimed = h.start(NewJob { max_attempts, ..job("t") }).await;
        assert_eq!(h.end(&claimed, fatal("no use")).await, JobState::Dead);
        let job = h.job(claimed.id()).await;
        assert_eq!((job.attempts, job.reason.as_deref()), (1, Some("fatal")));
        assert_eq!(job.attempt_log[0].outcome, AttemptOutcome::Failed);
    }
}

pub(super) async fn a_success_after_a_failure_is_recorded(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Outcome::fail("not yet")).await;
    let claimed = h.start_again(claimed.id()).await;
    assert_eq!(h.end(&claimed, Outcome::DONE).await, JobState::Completed);
    let job = h.job(claimed.id()).await;
    let log: Vec<_> = job.attempt_log.iter().map(|r| (r.attempt, r.lease, r.outcome)).collect();
    assert_eq!(log, [(1, 1, AttemptOutcome::Failed), (2, 2, AttemptOutcome::Completed)]);
    assert_eq!((job.attempts, &job.attempt_log[1].error), (2, &None));
}

pub(super) async fn a_snoozed_job_runs_again_later_and_uses_no_attempt(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..job("t") }).await;
    h.advance(secs(5)).await;
    assert_eq!(h.end(&claimed, Outcome::Snooze(secs(60))).await, JobState::Scheduled);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.attempts, job.eligible_at), (0, h.now().await + secs(60)));
    assert_eq!((job.attempt_log[0].outcome, job.attempt_log[0].attempt), (AttemptOutcome::Snoozed, 1));
    let claimed = h.start_again(claimed.id()).await;
    assert_eq!((claimed.attempt, claimed.token.counter), (1, 2));
}

pub(super) async fn a_released_attempt_makes_the_job_claimable_and_uses_no_attempt(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..job("t") }).await;
    h.advance(secs(5)).await;
    assert_eq!(h.end(&claimed, Outcome::Release).await, JobState::Pending);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.attempts, job.eligible_at, job.lease_expires_at), (0, h.now().await, None));
    assert_eq!((job.attempt_log[0].outcome, job.attempt_log[0].attempt), (AttemptOutcome::Released, 1));
    assert_eq!(h.claim_one().await.attempt, 1);
}

pub(super) async fn a_worker_can_cancel_its_job_without_a_request(h: &Harness) {
    let claimed = h.start(job("t")).await;
    assert_eq!(h.end(&claimed, Outcome::Cancelled).await, JobState::Cancelled);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.reason.as_deref(), job.finished_at), (Some("requested"), Some(h.now().await)));
    assert_eq!((job.attempts, job.attempt_log[0].outcome), (1, AttemptOutcome::Cancelled));
}

pub(super) async fn a_late_outcome_counts_until_the_lease_is_reaped(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.advance(secs(3600)).await;
    assert_eq!(h.end(&claimed, Outcome::DONE).await, JobState::Completed);
}

pub(super) async fn an_outcome_without_the_lease_changes_nothing(h: &Harness) {
    let first = h.start(job("t")).await;
    h.lose(&first).await;
    let pending = h.job(first.id()).await;
    for outcome in [
        Outcome::DONE,
        Outcome::fail("late"),
        Outcome::Snooze(secs(1)),
        Outcome::Release,
        Outcome::Cancelled,
        Outcome::TimedOut,
    ] {
        assert_eq!(h.finish(&first, outcome).await, Err(FinishError::LeaseLost));
    }
    assert_eq!(h.job(first.id()).await, pending);
    let second = h.claim_one().await;
    let running = h.job(first.id()).await;
    assert_eq!(h.finish(&first, Outcome::DONE).await, Err(FinishError::LeaseLost));
    assert_eq!(h.job(first.id()).await, running);
    assert_eq!(h.end(&second, Outcome::DONE).await, JobState::Completed);
    assert_eq!(h.finish(&first, Outcome::DONE).await, Err(FinishError::LeaseLost));
}

pub(super) async fn a_token_must_match_in_every_part(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let before = h.job(claimed.id()).await;
    let token = claimed.token;
    let forged = [
        LeaseToken { job: unknown_id(), ..token },
        LeaseToken { counter: token.counter + 1, ..token },
        LeaseToken { counter: token.counter - 1, ..token },
        LeaseToken { secret: Uuid::from_u128(token.secret.as_u128() ^ 1), ..token },
    ];
    let items = forged.map(|token| OutcomeReport { token, outcome: Outcome::DONE }).to_vec();
    let answers = h.store.finish_attempts(items).await.expect("a store that answers");
    assert_eq!(answers, vec![Err(FinishError::LeaseLost); 4]);
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn of_several_tokens_of_one_job_only_the_current_one_counts(h: &Harness) {
    let (one, other) = (h.start(job("one")).await, h.start(job("other")).await);
    let token = one.token;
    let tokens = [
        LeaseToken { counter: token.counter - 1, ..token },
        LeaseToken { secret: Uuid::from_u128(token.secret.as_u128() ^ 1), ..token },
        token,
        other.token,
        LeaseToken { secret: Uuid::from_u128(token.secret.as_u128() ^ (1 << 127)), ..token },
        LeaseToken { counter: token.counter + 1, ..token },
    ];
    let items = tokens.map(|token| OutcomeReport { token, outcome: Outcome::DONE }).to_vec();
    let answers = h.store.finish_attempts(items).await.expect("a store that answers");
    let (lost, done) = (Err(FinishError::LeaseLost), Ok(JobState::Completed));
    assert_eq!(answers, [lost.clone(), lost.clone(), done.clone(), done, lost.clone(), lost]);
}

pub(super) async fn one_refused_report_does_not_affect_the_others(h: &Harness) {
    let first = h.start(job("first")).await;
    let second = h.start(NewJob { lease: secs(1), ..job("second") }).await;
    let third = h.start(job("third")).await;
    h.lose(&second).await;
    let finish = |token, outcome| OutcomeReport { token, outcome };
    let items = vec![
        finish(third.token, Outcome::Snooze(NewJob::MAX_DELAY + secs(1))),
        finish(second.token, Outcome::DONE),
        finish(first.token, Outcome::DONE),
    ];
    let answers = h.store.finish_attempts(items).await.expect("a store that answers");
    assert!(matches!(&answers[0], Err(FinishError::Invalid(FieldError { field, .. })) if field == "seconds"));
    assert_eq!(answers[1..], [Err(FinishError::LeaseLost), Ok(JobState::Completed)]);
    assert_eq!(h.state(third.id()).await, JobState::Running);
    assert_eq!(h.store.finish_attempts(vec![]).await.expect("a store that answers"), []);
}

pub(super) async fn a_call_with_too_many_reports_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let item = OutcomeReport { token: claimed.token, outcome: Outcome::DONE };
    assert_eq!(bad_fields(h.store.finish_attempts(vec![item; OutcomeReport::MAX_ITEMS + 1]).await), ["items"]);
    assert_eq!(h.state(claimed.id()).await, JobState::Running);
}

pub(super) async fn delays_out_of_range_are_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let before = h.job(claimed.id()).await;
    let too_long = NewJob::MAX_DELAY + secs(1);
    let outcome = Outcome::Fail { error: "slow down".into(), retryable: true, retry_after: Some(too_long) };
    let answer = h.finish(&claimed, outcome).await;
    assert!(matches!(answer, Err(FinishError::Invalid(error)) if error.field == "retryAfterSeconds"));
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn errors_are_made_storable(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let text = format!("a\0b{}", "é".repeat(AttemptRecord::MAX_ERROR));
    h.end(&claimed, Outcome::fail(&text)).await;
    let kept = h.job(claimed.id()).await.attempt_log[0].error.clone();
    assert_eq!(kept, Some(AttemptRecord::error_text(&text)));
    // Reported again at full length, it is still the same outcome.
    assert_eq!(h.finish(&claimed, Outcome::fail(&text)).await, Ok(JobState::Retrying));
}

pub(super) async fn only_the_latest_attempts_are_kept(h: &Harness) {
    let id = h.enqueue(job("t")).await;
    let rounds = i32::try_from(AttemptRecord::KEPT).expect("a small number") + 5;
    for _ in 0..rounds {
        let claimed = h.claim_one().await;
        h.end(&claimed, Outcome::Release).await;
    }
    let job = h.job(id).await;
    let leases: Vec<i32> = job.attempt_log.iter().map(|record| record.lease).collect();
    assert_eq!(leases, (6..=rounds).collect::<Vec<_>>());
    assert_eq!((job.attempts, job.leases), (0, rounds));
}
