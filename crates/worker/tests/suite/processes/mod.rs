//! Workers that are processes, and all that can happen to them and to their database. Whatever does: every job that was
//! acknowledged comes to its end, nothing runs twice without a reason, and nobody who lost a job changes it.

mod chaos;
mod fleet;
mod ground;
mod jobs;
mod journal;
mod judge;
mod judge_tests;
mod postgres;
mod process;
mod sqlite;
mod stream;
mod trials;

use std::time::Duration;

/// How long to wait for what must come: far longer than it takes.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a leader leads without renewing.
const TERM: Duration = Duration::from_secs(2);

/// Waits until `found` finds something.
async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let look = async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, look).await.unwrap_or_else(|_| panic!("{what}: not within {LIMIT:?}"))
}
