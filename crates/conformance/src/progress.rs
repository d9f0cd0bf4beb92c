//! Progress and checkpoints of running jobs.

use orchestrix_core::{Json, Progress};

use super::{Harness, fixture::*};
use orchestrix_store::{Outcome, ProgressUpdate};

fn percent(percent: f64) -> ProgressUpdate {
    ProgressUpdate { progress: Some(Progress { percent: Some(percent), message: None }), checkpoint: None }
}

fn message(text: &str) -> ProgressUpdate {
    ProgressUpdate { progress: Some(Progress { percent: None, message: Some(text.into()) }), checkpoint: None }
}

fn checkpoint(text: &str) -> ProgressUpdate {
    ProgressUpdate { progress: None, checkpoint: Some(Json::trusted(text)) }
}

pub(super) async fn progress_and_checkpoint_stay_until_they_are_updated(h: &Harness) {
    let claimed = h.start(job("t")).await;
    for update in [percent(10.0), checkpoint("[1]"), message("reading"), ProgressUpdate::default()] {
        h.store.record_progress(claimed.token, update).await.expect("a current token");
    }
    let job = h.job(claimed.id()).await;
    assert_eq!(job.progress, Some(Progress { percent: None, message: Some("reading".into()) }));
    assert_eq!(job.checkpoint, Some(Json::trusted("[1]")));
    let summary = h.store.job_summary(claimed.id()).await.expect("a store that answers").expect("a job that exists");
    assert_eq!(summary.progress, job.progress);
}

pub(super) async fn progress_does_not_count_as_a_change_of_state(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let before = h.job(claimed.id()).await;
    h.advance(secs(1)).await;
    h.store.record_progress(claimed.token, percent(1.0)).await.expect("a current token");
    let after = h.job(claimed.id()).await;
    assert_eq!((after.updated_at, after.lease_expires_at), (before.updated_at, before.lease_expires_at));
}

pub(super) async fn only_the_owner_can_record_progress(h: &Harness) {
    let first = h.start(job("t")).await;
    h.lose(&first).await;
    assert!(lease_lost(&h.store.record_progress(first.token, percent(1.0)).await));
    let second = h.claim_one().await;
    let before = h.job(first.id()).await;
    assert!(lease_lost(&h.store.record_progress(first.token, checkpoint("1")).await));
    assert_eq!(h.job(first.id()).await, before);
    h.end(&second, Outcome::DONE).await;
    assert!(lease_lost(&h.store.record_progress(second.token, percent(100.0)).await));
}

pub(super) async fn an_owner_with_an_expired_lease_can_record_progress(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.advance(secs(300)).await;
    h.store.record_progress(claimed.token, percent(1.0)).await.expect("a current token");
}

pub(super) async fn progress_out_of_range_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let long = "x".repeat(ProgressUpdate::MAX_MESSAGE + 1);
    for (update, field) in [
        (percent(-1.0), "percent"),
        (percent(100.5), "percent"),
        (percent(f64::NAN), "percent"),
        (message(&long), "message"),
        (message("a\0b"), "message"),
    ] {
        assert_eq!(bad_fields(h.store.record_progress(claimed.token, update).await), [field]);
    }
    assert_eq!(h.job(claimed.id()).await.progress, None);
}

pub(super) async fn a_finished_job_keeps_its_last_progress(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.store.record_progress(claimed.token, percent(99.0)).await.expect("a current token");
    h.end(&claimed, Outcome::DONE).await;
    assert_eq!(h.job(claimed.id()).await.progress, Some(Progress { percent: Some(99.0), message: None }));
}
