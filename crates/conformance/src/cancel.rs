//! Cancel: at once for a waiting job, by request for a leased one.

use orchestrix_core::{AttemptOutcome, Event, JobState, NewJob, Start};

use super::{Harness, fixture::*};
use orchestrix_store::{JobFilter, Outcome};

pub(super) async fn a_waiting_job_is_cancelled_at_once(h: &Harness) {
    let running = h.start(job("running")).await;
    let failed = h.start(job("retrying")).await;
    h.end(&failed, Outcome::fail("not yet")).await;
    let waiting = [
        h.enqueue(NewJob { hold: true, ..job("created") }).await,
        h.enqueue(child_of([running.id()])).await,
        h.enqueue(NewJob { start: Start::After(secs(60)), ..job("scheduled") }).await,
        h.enqueue(job("pending")).await,
        failed.id(),
    ];
    h.advance(secs(1)).await;
    let now = h.now().await;
    for id in waiting {
        assert_eq!(h.store.cancel_job(id).await.expect("a waiting job"), JobState::Cancelled);
        let job = h.job(id).await;
        assert_eq!((job.state, job.reason.as_deref()), (JobState::Cancelled, Some("requested")));
        assert_eq!((job.finished_at, job.updated_at, job.cancel_requested), (Some(now), now, false));
    }
    h.advance(secs(3600)).await;
    assert_eq!(h.promote().await.count, 0);
    assert_eq!(h.claim_all().await, []);
}

pub(super) async fn a_running_job_only_gets_a_request(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let before = h.job(claimed.id()).await;
    h.advance(secs(1)).await;
    for _ in 0..2 {
        assert_eq!(h.store.cancel_job(claimed.id()).await.expect("a running job"), JobState::Running);
    }
    let after = h.job(claimed.id()).await;
    assert!(after.cancel_requested);
    assert_eq!(after.updated_at, before.updated_at, "its state did not change");
    assert_eq!(h.listed(&JobFilter { states: vec![JobState::Running], ..JobFilter::default() }).await, [claimed.id()]);
}

pub(super) async fn cancelling_a_cancelled_job_succeeds_and_changes_nothing(h: &Harness) {
    let id = h.enqueue(job("t")).await;
    h.store.cancel_job(id).await.expect("a waiting job");
    let before = h.job(id).await;
    h.advance(secs(1)).await;
    assert_eq!(h.store.cancel_job(id).await.expect("a cancelled job"), JobState::Cancelled);
    assert_eq!(h.job(id).await, before);
}

pub(super) async fn a_finished_job_cannot_be_cancelled(h: &Harness) {
    let done = h.start(job("done")).await;
    h.end(&done, Outcome::DONE).await;
    let dead = h.dead(job("dead")).await;
    assert_eq!(illegal(h.store.cancel_job(done.id()).await), (JobState::Completed, Event::Cancel));
    assert_eq!(illegal(h.store.cancel_job(dead).await), (JobState::Dead, Event::Cancel));
}

pub(super) async fn an_unknown_job_cannot_be_cancelled(h: &Harness) {
    let id = unknown_id();
    assert!(not_found(&h.store.cancel_job(id).await, id));
}

pub(super) async fn a_job_completes_despite_a_cancel_request(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.store.cancel_job(claimed.id()).await.expect("a running job");
    assert_eq!(h.end(&claimed, Outcome::DONE).await, JobState::Completed);
    let job = h.job(claimed.id()).await;
    assert_eq!((job.cancel_requested, job.reason), (false, None));
}

pub(super) async fn any_other_outcome_after_a_cancel_request_cancels_the_job(h: &Harness) {
    for (outcome, recorded) in [
        (Outcome::fail("x"), AttemptOutcome::Failed),
        (fatal("x"), AttemptOutcome::Failed),
        (Outcome::Snooze(secs(1)), AttemptOutcome::Snoozed),
        (Outcome::Release, AttemptOutcome::Released),
        (Outcome::Cancelled, AttemptOutcome::Cancelled),
    ] {
        let claimed = h.start(job("t")).await;
        h.store.cancel_job(claimed.id()).await.expect("a running job");
        assert_eq!(h.end(&claimed, outcome.clone()).await, JobState::Cancelled, "{outcome:?}");
        let job = h.job(claimed.id()).await;
        assert_eq!((job.reason.as_deref(), job.cancel_requested), (Some("requested"), false));
        assert_eq!(job.attempt_log[0].outcome, recorded, "the record has the outcome that the worker reported");
        assert_eq!(h.finish(&claimed, outcome).await, Ok(JobState::Cancelled));
    }
}

pub(super) async fn reaping_or_timing_out_a_job_with_a_cancel_request_cancels_it(h: &Harness) {
    let silent = h.start(job("silent")).await;
    let slow = h.start(NewJob { timeout: Some(secs(30)), lease: secs(60), ..job("slow") }).await;
    for claimed in [&silent, &slow] {
        h.store.cancel_job(claimed.id()).await.expect("a running job");
    }
    h.advance(secs(30)).await;
    assert_eq!((h.reap().await.count, h.time_out().await.count), (1, 1));
    for (claimed, outcome) in [(silent, AttemptOutcome::Lost), (slow, AttemptOutcome::TimedOut)] {
        let job = h.job(claimed.id()).await;
        assert_eq!((job.state, job.reason.as_deref()), (JobState::Cancelled, Some("requested")));
        assert_eq!((job.finished_at, job.attempt_log[0].outcome), (Some(h.now().await), outcome));
    }
}
