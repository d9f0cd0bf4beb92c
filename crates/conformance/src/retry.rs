//! Retries of dead and cancelled jobs, by id and by filter.

use orchestrix_core::{Event, JobId, JobState, Json, NewJob, Progress};

use super::{Harness, fixture::*};
use orchestrix_store::{JobFilter, Outcome, PageRequest, ProgressUpdate, inspect::MAX_SCAN};

// Retries one page.
async fn retried(h: &Harness, filter: &JobFilter, limit: usize) -> Vec<JobId> {
    h.store.retry_jobs(filter, &PageRequest::first(limit)).await.expect("a valid page").items
}

pub(super) async fn a_retried_job_is_pending_and_keeps_its_attempts(h: &Harness) {
    let claimed = h.start(NewJob { expires_at: Some(h.now().await + secs(5)), ..job("t") }).await;
    let progress = Some(Progress { percent: Some(50.0), message: None });
    let update = ProgressUpdate { progress, checkpoint: Some(Json::trusted("7")) };
    h.store.record_progress(claimed.token, update).await.expect("a current token");
    h.end(&claimed, fatal("no use")).await;
    h.advance(secs(60)).await;
    assert_eq!(h.store.retry_job(claimed.id()).await.expect("a dead job"), JobState::Pending);
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
        assert_eq!(h.end(&claimed, Outcome::fail("x")).await, JobState::Dead);
        h.store.retry_job(claimed.id()).await.expect("a dead job");
        let job = h.job(claimed.id()).await;
        assert_eq!((job.attempts, job.max_attempts), (attempts, attempts + 1));
        claimed = h.claim_one().await;
    }
}

pub(super) async fn a_retry_resets_the_crash_loop(h: &Harness) {
    h.enqueue(NewJob { max_attempts: 100, ..job("t") }).await;
    for expected in [JobState::Pending, JobState::Pending, JobState::Dead] {
        let claimed = h.claim_one().await;
        h.lose(&claimed).await;
        assert_eq!(h.state(claimed.id()).await, expected);
        if expected == JobState::Dead {
            h.store.retry_job(claimed.id()).await.expect("a dead job");
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
    assert_eq!(h.store.retry_job(id).await.expect("a cancelled job"), JobState::Pending);
    assert_eq!(h.expire().await.count, 0, "a retried job no longer expires");
    assert_eq!(h.claim_one().await.id(), id);
}

pub(super) async fn only_dead_and_cancelled_jobs_can_be_retried(h: &Harness) {
    let done = h.start(job("done")).await;
    h.end(&done, Outcome::DONE).await;
    let running = h.start(job("running")).await;
    let failed = h.start(job("retrying")).await;
    h.end(&failed, Outcome::fail("not yet")).await;
    for (id, state) in
        [(done.id(), JobState::Completed), (running.id(), JobState::Running), (failed.id(), JobState::Retrying)]
    {
        assert_eq!(illegal(h.store.retry_job(id).await), (state, Event::Redrive));
    }
    let id = unknown_id();
    assert!(not_found(&h.store.retry_job(id).await, id));
}

pub(super) async fn many_jobs_are_retried_newest_first_page_by_page(h: &Harness) {
    let mut dead = Vec::new();
    for _ in 0..5 {
        dead.push(h.dead(job("t")).await);
    }
    let dead = newest_first(dead);
    for expected in [&dead[..2], &dead[2..4], &dead[4..], &[]] {
        assert_eq!(retried(h, &JobFilter::default(), 2).await, expected);
    }
    assert_eq!(h.claim_all().await.len(), 5);
}

pub(super) async fn following_the_cursors_retries_each_job_once_even_if_it_dies_again(h: &Harness) {
    let mut dead = Vec::new();
    for _ in 0..7 {
        dead.push(h.dead(job("t")).await);
    }
    let everything = JobFilter::default();
    let mut all = Vec::new();
    let mut page = PageRequest::first(3);
    loop {
        let part = h.store.retry_jobs(&everything, &page).await.expect("a valid page");
        assert!(part.items.len() <= 3);
        for claimed in h.claim_all().await {
            assert_eq!(h.end(&claimed, fatal("no use")).await, JobState::Dead);
        }
        all.extend(part.items);
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 3);
    }
    assert_eq!(all, newest_first(dead), "all of them, and none twice");
}

pub(super) async fn one_call_scans_a_bounded_number_of_jobs_and_returns_a_cursor(h: &Harness) {
    let soon = NewJob { expires_at: Some(h.now().await + secs(5)), ..job("t") };
    let wanted = h.enqueue(NewJob { queue: queue("rare"), ..soon.clone() }).await;
    for more in [MAX_SCAN, 10] {
        h.enqueue_many(vec![soon.clone(); more]).await;
    }
    h.advance(secs(5)).await;
    while h.expire().await.count > 0 {}
    let rare = JobFilter { queue: Some(queue("rare")), ..JobFilter::default() };
    let first = h.store.retry_jobs(&rare, &PageRequest::first(10)).await.expect("a valid page");
    assert_eq!(first.items, [], "it lies behind more jobs than one call scans");
    let second = PageRequest::after(first.next.expect("there is a next page"), 10);
    let second = h.store.retry_jobs(&rare, &second).await.expect("a valid page");
    assert_eq!((second.items, second.next), (vec![wanted], None));
}

pub(super) async fn only_matching_dead_and_cancelled_jobs_are_retried(h: &Harness) {
    let mail = |name: &str| NewJob { queue: queue("mail"), ..job(name) };
    let dead = h.dead(mail("dead")).await;
    let other = h.dead(job("other")).await;
    let done = h.start(mail("done")).await;
    h.end(&done, Outcome::DONE).await;
    h.start(mail("running")).await;
    let cancelled = h.enqueue(mail("cancelled")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    let in_mail = JobFilter { queue: Some(queue("mail")), ..JobFilter::default() };
    let running = JobFilter { states: vec![JobState::Running, JobState::Completed], ..in_mail.clone() };
    assert_eq!(retried(h, &running, 100).await, []);
    let only_dead = JobFilter { states: vec![JobState::Dead, JobState::Running], ..in_mail.clone() };
    assert_eq!(retried(h, &only_dead, 100).await, [dead]);
    assert_eq!(retried(h, &in_mail, 100).await, [cancelled]);
    assert_eq!((h.state(other).await, h.state(done.id()).await), (JobState::Dead, JobState::Completed));
}

pub(super) async fn limits_out_of_range_are_refused(h: &Harness) {
    for limit in [0, 1_001] {
        assert_eq!(bad_fields(h.store.retry_jobs(&JobFilter::default(), &PageRequest::first(limit)).await), ["limit"]);
    }
}
