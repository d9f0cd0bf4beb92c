//! One who follows a job.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{JobId, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{ClaimRequest, LogLevel, LogLine, Outcome, Store};
use tokio::time::timeout;

use super::{A_WHILE, enqueue, finish};
use crate::{App, ServerOptions, live::events::Follow, reader::Reader};

async fn follow(store: &Arc<dyn Store>, id: JobId) -> Follow {
    let app = App::new(Arc::clone(store), ServerOptions::default());
    let job = store.job_summaries(&[id]).await.unwrap().remove(0);
    let place = app.live.take(&app.host).unwrap();
    let mut follow = Follow::new(app, &job, 0, place);
    assert!(told(&mut follow, Some(job)).await.contains("PENDING"));
    follow
}

async fn told(follow: &mut Follow, first: Option<orchestrix_store::JobSummary>) -> String {
    let event = timeout(A_WHILE, follow.next(first)).await.expect("an event in time");
    format!("{event:?}")
}

#[tokio::test(start_paused = true)]
async fn an_end_is_told_though_the_store_was_away_when_it_was_noticed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = enqueue(&*store).await;
    let mut follow = follow(&store, id).await;
    let healthy = Arc::clone(&follow.app);
    let mut app = App::new(Arc::clone(&store), ServerOptions::default());
    Arc::get_mut(&mut app).unwrap().reader = Reader::away();
    follow.app = app;
    store.cancel_job(id).await.unwrap();
    assert!(timeout(A_WHILE, follow.next(None)).await.is_err(), "it cannot be looked at");
    follow.app = healthy;
    assert!(told(&mut follow, None).await.contains("CANCELLED"));
}

#[tokio::test(start_paused = true)]
async fn all_that_an_attempt_said_is_told_though_the_job_waits_again() {
    const LINES: usize = 450;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = enqueue(&*store).await;
    let mut follow = follow(&store, id).await;
    let claim = ClaimRequest::any(WorkerName::new("w").unwrap(), 1);
    let token = store.claim_jobs(&claim).await.unwrap()[0].token;
    assert!(told(&mut follow, None).await.contains("RUNNING"));
    let line = |n: usize| LogLine { at: None, level: LogLevel::Info, message: format!("line {n}.") };
    store.append_logs(token, (0..LINES).map(line).collect()).await.unwrap();
    finish(&*store, &[token], Outcome::Snooze(Duration::from_secs(3_600))).await;
    // Its status and its lines, in whichever order they were noticed.
    let mut all = String::new();
    for _ in 0..=LINES {
        all += &told(&mut follow, None).await;
    }
    assert!(all.contains("PENDING"));
    assert!((0..LINES).all(|n| all.contains(&format!("line {n}."))), "{all}");
}
