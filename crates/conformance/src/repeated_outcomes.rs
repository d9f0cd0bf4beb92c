//! Repeated outcomes get the first answer again; different ones are refused.

use orchestrix_core::{JobState, Json, NewJob};

use super::{Harness, fixture::*};
use orchestrix_store::{FinishError, Outcome, OutcomeReport};

fn result(text: &str) -> Outcome {
    Outcome::Complete { result: Some(Json::trusted(text)) }
}

pub(super) async fn every_outcome_can_be_reported_again(h: &Harness) {
    for outcome in [
        result("1"),
        Outcome::DONE,
        Outcome::fail("x"),
        fatal("x"),
        Outcome::Snooze(secs(9)),
        Outcome::Cancelled,
        Outcome::TimedOut,
    ] {
        let claimed = h.start(job("t")).await;
        let first = h.end(&claimed, outcome.clone()).await;
        let before = h.job(claimed.id()).await;
        h.advance(secs(1)).await;
        assert_eq!(h.finish(&claimed, outcome.clone()).await, Ok(first), "{outcome:?}");
        assert_eq!(h.job(claimed.id()).await, before, "{outcome:?}");
    }
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Outcome::Release).await;
    assert_eq!(h.finish(&claimed, Outcome::Release).await, Ok(JobState::Pending));
}

pub(super) async fn a_success_after_a_failure_can_be_reported_again(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Outcome::fail("not yet")).await;
    let claimed = h.start_again(claimed.id()).await;
    h.end(&claimed, result("1")).await;
    let before = h.job(claimed.id()).await;
    assert_eq!(h.finish(&claimed, result("1")).await, Ok(JobState::Completed));
    assert_eq!(h.finish(&claimed, result("2")).await, Err(FinishError::LeaseLost));
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn a_result_that_is_formatted_differently_is_the_same(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, result(r#"{"a": 1, "b": [2]}"#)).await;
    let before = h.job(claimed.id()).await;
    assert_eq!(h.finish(&claimed, result(r#"{"b":[2],"a":1}"#)).await, Ok(JobState::Completed));
    assert_eq!(h.job(claimed.id()).await, before, "the first result is kept");
    for other in [result(r#"{"b":[2],"a":2}"#), Outcome::DONE] {
        assert_eq!(h.finish(&claimed, other).await, Err(FinishError::LeaseLost));
    }
}

pub(super) async fn a_repeat_gets_the_first_answer_whatever_happened_since(h: &Harness) {
    let first = h.start(job("t")).await;
    assert_eq!(h.end(&first, Outcome::fail("not yet")).await, JobState::Retrying);
    let second = h.start_again(first.id()).await;
    let running = h.job(first.id()).await;
    assert_eq!(h.finish(&first, Outcome::fail("not yet")).await, Ok(JobState::Retrying));
    assert_eq!(h.job(first.id()).await, running, "the second lease is not affected");
    h.end(&second, Outcome::Snooze(secs(1))).await;
    let third = h.start_again(first.id()).await;
    h.end(&third, Outcome::DONE).await;
    assert_eq!(h.finish(&first, Outcome::fail("not yet")).await, Ok(JobState::Retrying));
    assert_eq!(h.finish(&second, Outcome::Snooze(secs(1))).await, Ok(JobState::Scheduled));
    assert_eq!(h.finish(&third, Outcome::DONE).await, Ok(JobState::Completed));
}

pub(super) async fn a_repeat_is_answered_after_a_redrive(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..job("t") }).await;
    assert_eq!(h.end(&claimed, Outcome::fail("x")).await, JobState::Dead);
    h.store.retry_job(claimed.id()).await.expect("a dead job");
    assert_eq!(h.finish(&claimed, Outcome::fail("x")).await, Ok(JobState::Dead));
    assert_eq!(h.state(claimed.id()).await, JobState::Pending);
}

pub(super) async fn a_different_outcome_with_a_used_token_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Outcome::fail("x")).await;
    let before = h.job(claimed.id()).await;
    for outcome in [
        Outcome::DONE,
        Outcome::fail("y"),
        Outcome::Snooze(secs(1)),
        Outcome::Release,
        Outcome::Cancelled,
        Outcome::TimedOut,
    ] {
        assert_eq!(h.finish(&claimed, outcome.clone()).await, Err(FinishError::LeaseLost), "{outcome:?}");
    }
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn a_different_result_with_a_used_token_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, result("1")).await;
    let before = h.job(claimed.id()).await;
    for outcome in [result("2"), Outcome::DONE, Outcome::fail("x")] {
        assert_eq!(h.finish(&claimed, outcome).await, Err(FinishError::LeaseLost));
    }
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn an_outcome_after_a_lost_lease_is_refused(h: &Harness) {
    let claimed = h.start(NewJob { timeout: Some(secs(5)), ..job("t") }).await;
    h.advance(secs(5)).await;
    h.time_out().await;
    assert_eq!(h.finish(&claimed, Outcome::fail("timed out")).await, Err(FinishError::LeaseLost));
    let claimed = h.start_again(claimed.id()).await;
    h.lose(&claimed).await;
    assert_eq!(h.finish(&claimed, Outcome::Release).await, Err(FinishError::LeaseLost));
}

pub(super) async fn of_two_outcomes_in_one_call_the_first_counts(h: &Harness) {
    let finish = |token, outcome| OutcomeReport { token, outcome };
    let alike = h.start(job("alike")).await;
    let unlike = h.start(job("unlike")).await;
    let items = vec![
        finish(alike.token, Outcome::fail("x")),
        finish(unlike.token, Outcome::DONE),
        finish(alike.token, Outcome::fail("x")),
        finish(unlike.token, Outcome::fail("x")),
    ];
    let answers = h.store.finish_attempts(items).await.expect("a store that answers");
    let expected =
        [Ok(JobState::Retrying), Ok(JobState::Completed), Ok(JobState::Retrying), Err(FinishError::LeaseLost)];
    assert_eq!(answers, expected);
    assert_eq!((h.job(alike.id()).await.attempts, h.state(unlike.id()).await), (1, JobState::Completed));
}

pub(super) async fn an_outcome_for_a_pruned_job_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Outcome::DONE).await;
    h.prune_finished().await;
    assert_eq!(h.finish(&claimed, Outcome::DONE).await, Err(FinishError::LeaseLost));
}
