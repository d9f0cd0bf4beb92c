//! Pruning: nothing before its retention ends, and everything soon after.

use std::time::Duration;

use orchestrix_core::{JobId, JobState};

use super::{Harness, fixture::*};
use orchestrix_store::{Fence, JobFilter, LogLevel, LogLine, Outcome, PageRequest, Pruned, Retention};

const DAY: Duration = secs(24 * 3600);
const RETENTION: Retention = Retention {
    completed: secs(10 * 24 * 3600),
    cancelled: secs(20 * 24 * 3600),
    dead: secs(30 * 24 * 3600),
    logs: secs(5 * 24 * 3600),
    occurrences: secs(15 * 24 * 3600),
    audit: secs(40 * 24 * 3600),
    operations: secs(25 * 24 * 3600),
};

/// How much longer a backend that prunes by whole days may take.
const SLACK: Duration = secs(2 * 24 * 3600);

async fn prune(h: &Harness) {
    let pruned = h.store.prune_history(Fence::NONE, &RETENTION, 10_000).await.expect("a valid limit");
    assert!(!pruned.more, "the limit was not reached");
}

async fn exists(h: &Harness, id: JobId) -> bool {
    let job = h.store.job(id).await.expect("a store that answers");
    let summary = h.store.job_summary(id).await.expect("a store that answers");
    assert_eq!(job.is_some(), summary.is_some());
    job.is_some()
}

async fn completed(h: &Harness) -> JobId {
    let claimed = h.start(job("completed")).await;
    h.end(&claimed, Outcome::DONE).await;
    claimed.id()
}

pub(super) async fn finished_jobs_are_pruned_after_the_retention_of_their_state(h: &Harness) {
    let completed = completed(h).await;
    let dead = h.dead(job("dead")).await;
    let cancelled = h.enqueue(job("cancelled")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    let start = h.now().await;
    for (id, kept) in [(completed, RETENTION.completed), (cancelled, RETENTION.cancelled), (dead, RETENTION.dead)] {
        let last = start + kept - Duration::from_micros(1);
        h.advance(last.duration_since(h.now().await).try_into().expect("a later time")).await;
        prune(h).await;
        assert!(exists(h, id).await, "it was pruned too early");
        h.advance(SLACK).await;
        prune(h).await;
        assert!(!exists(h, id).await, "it should be pruned by now");
    }
    assert_eq!(h.listed(&JobFilter::default()).await, []);
}

pub(super) async fn unfinished_jobs_are_never_pruned(h: &Harness) {
    let running = h.start(job("running")).await;
    let failed = h.start(job("retrying")).await;
    h.end(&failed, Outcome::fail("not yet")).await;
    let pending = h.enqueue(job("pending")).await;
    let blocked = h.enqueue(child_of([running.id()])).await;
    h.advance(100 * DAY).await;
    prune(h).await;
    for id in [running.id(), failed.id(), pending, blocked] {
        assert!(exists(h, id).await);
    }
    // Nor are their payloads.
    assert_eq!(h.claim_one().await.payload, h.job(pending).await.payload);
}

pub(super) async fn an_unlimited_retention_keeps_everything(h: &Harness) {
    let done = h.start(job("t")).await;
    let line = LogLine { at: None, level: LogLevel::Info, message: "kept".into() };
    h.store.append_logs(done.token, vec![line]).await.expect("a current token");
    h.end(&done, Outcome::DONE).await;
    let dead = h.dead(job("t")).await;
    h.advance(1_000 * DAY).await;
    let [completed, cancelled, dead_ones, logs, occurrences, audit, operations] = [Duration::MAX; 7];
    let retention = Retention { completed, cancelled, dead: dead_ones, logs, occurrences, audit, operations };
    assert_eq!(h.store.prune_history(Fence::NONE, &retention, 1_000).await.expect("a valid limit"), Pruned::default());
    assert!(exists(h, done.id()).await && exists(h, dead).await);
    assert_eq!(h.store.job_logs(done.id(), &PageRequest::first(10)).await.expect("a job that exists").items.len(), 1);
}

pub(super) async fn retention_counts_from_the_end_of_a_job(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.advance(100 * DAY).await;
    h.end(&claimed, Outcome::DONE).await;
    prune(h).await;
    assert_eq!(h.state(claimed.id()).await, JobState::Completed);
}

pub(super) async fn a_retried_job_is_not_pruned(h: &Harness) {
    let id = h.dead(job("t")).await;
    h.store.retry_job(id).await.expect("a dead job");
    h.advance(100 * DAY).await;
    prune(h).await;
    assert_eq!(h.state(id).await, JobState::Pending);
}

pub(super) async fn log_lines_are_pruned_by_their_own_age(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let line = |message: &str| LogLine { at: None, level: LogLevel::Info, message: message.into() };
    h.store.append_logs(claimed.token, vec![line("old")]).await.expect("a current token");
    h.advance(RETENTION.logs - secs(1)).await;
    h.store.append_logs(claimed.token, vec![line("new")]).await.expect("a current token");
    let messages = || async {
        prune(h).await;
        let page = h.store.job_logs(claimed.id(), &PageRequest::first(10)).await.expect("a valid page");
        page.items.into_iter().map(|entry| entry.message).collect::<Vec<_>>()
    };
    assert_eq!(messages().await, ["old", "new"]);
    h.advance(SLACK).await;
    assert_eq!(messages().await, ["new"]);
}

pub(super) async fn a_step_of_pruning_is_bounded_and_reports_whether_there_is_more(h: &Harness) {
    for _ in 0..5 {
        completed(h).await;
    }
    h.advance(RETENTION.completed + SLACK).await;
    for _ in 0..100 {
        let Pruned { count, more } = h.store.prune_history(Fence::NONE, &RETENTION, 2).await.expect("a valid limit");
        assert!(count > 0 || !more, "a step that does nothing cannot have more to do");
        if !more {
            assert_eq!(h.listed(&JobFilter::default()).await, []);
            return;
        }
    }
    panic!("pruning never ends");
}
