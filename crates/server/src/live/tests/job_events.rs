//! The event stream of a job.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{JobId, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{ClaimRequest, LogLevel, LogLine, Outcome, Store};
use tokio::time::timeout;

use super::{A_WHILE, enqueue, finish};
use crate::{App, ServerOptions, live::job_events::JobEventStream, reader::JobReader};

async fn open(store: &Arc<dyn Store>, id: JobId) -> JobEventStream {
    let app = App::new(Arc::clone(store), ServerOptions::default());
    let job = store.job_summaries(&[id]).await.unwrap().remove(0);
    let permit = app.subscription_quota.acquire(&app.keyless_principal).unwrap();
    let mut stream = JobEventStream::new(app, &job, 0, permit);
    assert!(next(&mut stream, Some(job)).await.contains("PENDING"));
    stream
}

async fn next(stream: &mut JobEventStream, first: Option<orchestrix_store::JobSummary>) -> String {
    let event = timeout(A_WHILE, stream.next(first)).await.expect("an event should arrive");
    format!("{event:?}")
}

#[tokio::test(start_paused = true)]
async fn the_end_is_sent_after_an_outage_of_the_store() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = enqueue(&*store).await;
    let mut stream = open(&store, id).await;
    let healthy = Arc::clone(&stream.app);
    let mut app = App::new(Arc::clone(&store), ServerOptions::default());
    Arc::get_mut(&mut app).unwrap().reader = JobReader::unavailable();
    stream.app = app;
    store.cancel_job(id).await.unwrap();
    assert!(timeout(A_WHILE, stream.next(None)).await.is_err(), "the job cannot be read");
    stream.app = healthy;
    assert!(next(&mut stream, None).await.contains("CANCELLED"));
}

#[tokio::test(start_paused = true)]
async fn all_log_lines_of_an_attempt_are_sent_though_the_job_is_pending_again() {
    const LINES: usize = 450;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = enqueue(&*store).await;
    let mut stream = open(&store, id).await;
    let claim = ClaimRequest::any(WorkerName::new("w").unwrap(), 1);
    let token = store.claim_jobs(&claim).await.unwrap()[0].token;
    assert!(next(&mut stream, None).await.contains("RUNNING"));
    let line = |n: usize| LogLine { at: None, level: LogLevel::Info, message: format!("line {n}.") };
    store.append_logs(token, (0..LINES).map(line).collect()).await.unwrap();
    finish(&*store, &[token], Outcome::Snooze(Duration::from_secs(3_600))).await;
    // The status and the lines, in either order.
    let mut all = String::new();
    for _ in 0..=LINES {
        all += &next(&mut stream, None).await;
    }
    assert!(all.contains("PENDING"));
    assert!((0..LINES).all(|n| all.contains(&format!("line {n}."))), "{all}");
}
