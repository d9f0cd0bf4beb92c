//! A verdict told twice is answered twice alike; a different one comes too late.

use orchestrix_core::{JobState, Json, NewJob};

use super::{Harness, fixture::*};
use crate::{Finish, FinishError, Verdict};

fn result(text: &str) -> Verdict {
    Verdict::Complete { result: Some(Json::trusted(text)) }
}

pub(super) async fn every_verdict_may_be_told_again(h: &Harness) {
    for verdict in [
        result("1"),
        Verdict::DONE,
        Verdict::fail("x"),
        fatal("x"),
        Verdict::Snooze(secs(9)),
        Verdict::Cancelled,
        Verdict::TimedOut,
    ] {
        let claimed = h.start(job("t")).await;
        let first = h.end(&claimed, verdict.clone()).await;
        let before = h.job(claimed.id()).await;
        h.advance(secs(1)).await;
        assert_eq!(h.finish(&claimed, verdict.clone()).await, Ok(first), "{verdict:?}");
        assert_eq!(h.job(claimed.id()).await, before, "{verdict:?}");
    }
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Verdict::Release).await;
    assert_eq!(h.finish(&claimed, Verdict::Release).await, Ok(JobState::Pending));
}

pub(super) async fn a_success_that_was_not_the_first_attempt_may_be_told_again(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Verdict::fail("not yet")).await;
    let claimed = h.start_again(claimed.id()).await;
    h.end(&claimed, result("1")).await;
    let before = h.job(claimed.id()).await;
    assert_eq!(h.finish(&claimed, result("1")).await, Ok(JobState::Completed));
    assert_eq!(h.finish(&claimed, result("2")).await, Err(FinishError::LeaseLost));
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn a_result_that_is_written_otherwise_is_the_same(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, result(r#"{"a": 1, "b": [2]}"#)).await;
    let before = h.job(claimed.id()).await;
    assert_eq!(h.finish(&claimed, result(r#"{"b":[2],"a":1}"#)).await, Ok(JobState::Completed));
    assert_eq!(h.job(claimed.id()).await, before, "it stays as it was first written");
    for other in [result(r#"{"b":[2],"a":2}"#), Verdict::DONE] {
        assert_eq!(h.finish(&claimed, other).await, Err(FinishError::LeaseLost));
    }
}

pub(super) async fn a_repeat_is_answered_as_the_first_time_whatever_happened_since(h: &Harness) {
    let first = h.start(job("t")).await;
    assert_eq!(h.end(&first, Verdict::fail("not yet")).await, JobState::Retrying);
    let second = h.start_again(first.id()).await;
    let running = h.job(first.id()).await;
    assert_eq!(h.finish(&first, Verdict::fail("not yet")).await, Ok(JobState::Retrying));
    assert_eq!(h.job(first.id()).await, running, "the second lease is untouched");
    h.end(&second, Verdict::Snooze(secs(1))).await;
    let third = h.start_again(first.id()).await;
    h.end(&third, Verdict::DONE).await;
    assert_eq!(h.finish(&first, Verdict::fail("not yet")).await, Ok(JobState::Retrying));
    assert_eq!(h.finish(&second, Verdict::Snooze(secs(1))).await, Ok(JobState::Scheduled));
    assert_eq!(h.finish(&third, Verdict::DONE).await, Ok(JobState::Completed));
}

pub(super) async fn a_repeat_is_answered_after_a_redrive(h: &Harness) {
    let claimed = h.start(NewJob { max_attempts: 1, ..job("t") }).await;
    assert_eq!(h.end(&claimed, Verdict::fail("x")).await, JobState::Dead);
    h.store.retry(claimed.id()).await.expect("a dead job");
    assert_eq!(h.finish(&claimed, Verdict::fail("x")).await, Ok(JobState::Dead));
    assert_eq!(h.state(claimed.id()).await, JobState::Pending);
}

pub(super) async fn another_verdict_under_a_used_token_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Verdict::fail("x")).await;
    let before = h.job(claimed.id()).await;
    for verdict in [
        Verdict::DONE,
        Verdict::fail("y"),
        Verdict::Snooze(secs(1)),
        Verdict::Release,
        Verdict::Cancelled,
        Verdict::TimedOut,
    ] {
        assert_eq!(h.finish(&claimed, verdict.clone()).await, Err(FinishError::LeaseLost), "{verdict:?}");
    }
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn another_result_under_a_used_token_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, result("1")).await;
    let before = h.job(claimed.id()).await;
    for verdict in [result("2"), Verdict::DONE, Verdict::fail("x")] {
        assert_eq!(h.finish(&claimed, verdict).await, Err(FinishError::LeaseLost));
    }
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn a_lost_attempt_has_no_verdict_to_repeat(h: &Harness) {
    let claimed = h.start(NewJob { timeout: Some(secs(5)), ..job("t") }).await;
    h.advance(secs(5)).await;
    h.time_out().await;
    assert_eq!(h.finish(&claimed, Verdict::fail("timed out")).await, Err(FinishError::LeaseLost));
    let claimed = h.start_again(claimed.id()).await;
    h.lose(&claimed).await;
    assert_eq!(h.finish(&claimed, Verdict::Release).await, Err(FinishError::LeaseLost));
}

pub(super) async fn of_two_verdicts_in_one_call_the_first_counts(h: &Harness) {
    let finish = |token, verdict| Finish { token, verdict };
    let alike = h.start(job("alike")).await;
    let unlike = h.start(job("unlike")).await;
    let items = vec![
        finish(alike.token, Verdict::fail("x")),
        finish(unlike.token, Verdict::DONE),
        finish(alike.token, Verdict::fail("x")),
        finish(unlike.token, Verdict::fail("x")),
    ];
    let answers = h.store.finish(items).await.expect("a store that answers");
    let expected =
        [Ok(JobState::Retrying), Ok(JobState::Completed), Ok(JobState::Retrying), Err(FinishError::LeaseLost)];
    assert_eq!(answers, expected);
    assert_eq!((h.job(alike.id()).await.attempts, h.state(unlike.id()).await), (1, JobState::Completed));
}

pub(super) async fn a_verdict_on_a_forgotten_job_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Verdict::DONE).await;
    h.forget_finished().await;
    assert_eq!(h.finish(&claimed, Verdict::DONE).await, Err(FinishError::LeaseLost));
}
