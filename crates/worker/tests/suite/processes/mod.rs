//! A fleet of worker processes under faults of processes, network and database. Whatever happens, every acknowledged
//! job reaches its final state, no job runs twice without a fault that explains it, and a worker that lost a lease
//! changes nothing.

mod chaos;
mod checker;
mod checker_tests;
mod fleet;
mod jobs;
mod journal;
mod postgres;
mod process;
mod scenarios;
mod sqlite;
mod test_store;
mod workload;

use std::time::Duration;

/// The time limit for events that must happen. Far longer than they take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The leadership term.
const TERM: Duration = Duration::from_secs(2);

/// Polls until `poll` returns a value.
async fn wait_for<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, polling).await.unwrap_or_else(|_| panic!("{what}: did not happen within {TIMEOUT:?}"))
}
