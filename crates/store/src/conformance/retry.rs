//! Another chance for the dead and the cancelled, one by one and by the filter.

use orchestrix_core::{Event, JobState, Json, NewJob, Progress};

use super::{Harness, fixture::*};
use crate::{JobFilter, ProgressUpdate, Verdict};

pub(super) async fn a_retried_job_is_pending_with_its_history_and_a_clean_slate(h: &Harness) {
    let claimed = h.start(NewJob { expires_at: Some(h.now().await + secs(5)), ..job("t") }).await;
    let progress = Some(Progress { percent: Some(50.0), message: None });
    let update = ProgressUpdate { progress, checkpoint: Some(Json::trusted("7")) };
    h.store.progress(claimed.token, update).await.expect("a current token");
    h.end(&claimed, fatal("no use")).await;
    h.advance(secs(60)).await;
    assert_eq!(h.store.retry(claimed.id()).await.expect("a dead job"), JobState::Pending);
    let now = h.now().await;
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.eligible_at, job.updated_at), (JobState::Pending, now, now));
    assert_eq!((job.finished_at, job.reason, job.result), (None, None, None));
    assert_eq!((job.progress, job.expires_at), (None, None));
    assert_eq!((job.attempt_log.len(), job.checkpoint), (1, Some(Json::trusted("7"))));
    assert_eq!((job.attempts, job.max_attempts), (1, 10), "nine attempts were left");
    assert_eq!(h.claim_one().await.attempt, 2);
}

pub(super) async fn an_exhausted_job_gets_one_more_attempt(h: &Harness) {
    let mut claimed = h.start(NewJob { max_attempts: 1, ..job("t") }).await;
    for attempts in 1..=3 {
        assert_eq!(h.end(&claimed, Verdict::fail("x")).await, JobState::Dead);
        h.store.retry(claimed.id()).await.expect("a dead job");
        let job = h.job(claimed.id()).await;
        assert_eq!((job.attempts, job.max_attempts), (attempts, attempts + 1));
        claimed = h.claim_one().await;
    }
}

pub(super) async fn a_crash_loop_is_counted_anew(h: &Harness) {
    h.enqueue(NewJob { max_attempts: 100, ..job("t") }).await;
    for expected in [JobState::Pending, JobState::Pending, JobState::Dead] {
        let claimed = h.claim_one().await;
        h.lose(&claimed).await;
        assert_eq!(h.state(claimed.id()).await, expected);
        if expected == JobState::Dead {
            h.store.retry(claimed.id()).await.expect("a dead job");
        }
    }
    let claimed = h.claim_one().await;
    h.lose(&claimed).await;
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.losses), (JobState::Pending, 1));
}

pub(super) async fn a_cancelled_job_can_be_retried(h: &Harness) {
    let id = h.enqueue(NewJob { expires_at: Some(h.now().await + secs(5)), ..job("t") }).await;
    h.advance(secs(5)).await;
    assert_eq!(h.expire().await.count, 1);
    assert_eq!(h.store.retry(id).await.expect("a cancelled job"), JobState::Pending);
    assert_eq!(h.expire().await.count, 0, "its expiry is behind it");
    assert_eq!(h.claim_one().await.id(), id);
}

pub(super) async fn only_dead_and_cancelled_jobs_can_be_retried(h: &Harness) {
    let done = h.start(job("done")).await;
    h.end(&done, Verdict::DONE).await;
    let running = h.start(job("running")).await;
    let failed = h.start(job("retrying")).await;
    h.end(&failed, Verdict::fail("not yet")).await;
    for (id, state) in
        [(done.id(), JobState::Completed), (running.id(), JobState::Running), (failed.id(), JobState::Retrying)]
    {
        assert_eq!(illegal(h.store.retry(id).await), (state, Event::Redrive));
    }
    let id = unknown_id();
    assert!(not_found(&h.store.retry(id).await, id));
}

pub(super) async fn many_are_retried_newest_first_and_step_by_step(h: &Harness) {
    let mut dead = Vec::new();
    for _ in 0..5 {
        dead.push(h.dead(job("t")).await);
    }
    let dead = newest_first(dead);
    let everything = JobFilter::default();
    assert_eq!(h.store.retry_many(&everything, 2).await.expect("a valid limit"), dead[..2]);
    assert_eq!(h.store.retry_many(&everything, 2).await.expect("a valid limit"), dead[2..4]);
    assert_eq!(h.store.retry_many(&everything, 2).await.expect("a valid limit"), dead[4..]);
    assert_eq!(h.store.retry_many(&everything, 2).await.expect("a valid limit"), []);
    assert_eq!(h.claim_all().await.len(), 5);
}

pub(super) async fn of_many_only_the_dead_and_cancelled_that_match_are_retried(h: &Harness) {
    let mail = |name: &str| NewJob { queue: queue("mail"), ..job(name) };
    let dead = h.dead(mail("dead")).await;
    let other = h.dead(job("other")).await;
    let done = h.start(mail("done")).await;
    h.end(&done, Verdict::DONE).await;
    h.start(mail("running")).await;
    let cancelled = h.enqueue(mail("cancelled")).await;
    h.store.cancel(cancelled).await.expect("a waiting job");
    let in_mail = JobFilter { queue: Some(queue("mail")), ..JobFilter::default() };
    let running = JobFilter { states: vec![JobState::Running, JobState::Completed], ..in_mail.clone() };
    assert_eq!(h.store.retry_many(&running, 100).await.expect("a valid limit"), []);
    let only_dead = JobFilter { states: vec![JobState::Dead, JobState::Running], ..in_mail.clone() };
    assert_eq!(h.store.retry_many(&only_dead, 100).await.expect("a valid limit"), [dead]);
    assert_eq!(h.store.retry_many(&in_mail, 100).await.expect("a valid limit"), [cancelled]);
    assert_eq!((h.state(other).await, h.state(done.id()).await), (JobState::Dead, JobState::Completed));
}

pub(super) async fn limits_out_of_range_are_refused(h: &Harness) {
    for limit in [0, 1_001] {
        assert_eq!(bad_fields(h.store.retry_many(&JobFilter::default(), limit).await), ["limit"]);
    }
}
