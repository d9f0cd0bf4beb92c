//! Holding a lock that a store needs, and observing that the store waits.
//!
//! A test of a race stops one side at the critical point instead of hoping that two sides meet there.

use std::time::{Duration, Instant};

use orchestrix_core::JobId;
use tokio_postgres::Client;

use crate::support::connect;

/// How long any event may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A transaction on its own connection, which holds its locks until it ends.
pub(crate) struct LockHolder(Client);

impl LockHolder {
    pub(crate) async fn begin(url: &str) -> Self {
        let client = connect(url).await;
        client.batch_execute("BEGIN").await.unwrap();
        Self(client)
    }

    /// The connection, inside the transaction.
    pub(crate) fn client(&self) -> &Client {
        &self.0
    }

    /// Begins a transaction and runs `sql` in it.
    pub(crate) async fn with(url: &str, sql: &str) -> Self {
        let holder = Self::begin(url).await;
        holder.0.batch_execute(sql).await.unwrap();
        holder
    }

    /// Begins a transaction that has inserted `id` into history: another session that completes the job locks its row
    /// and then waits at the insert.
    pub(crate) async fn with_history_of(url: &str, id: JobId) -> Self {
        Self::with_finished(url, "history", "completed", id).await
    }

    /// Like [`with_history_of`](LockHolder::with_history_of), for jobs that die.
    pub(crate) async fn with_dead(url: &str, id: JobId) -> Self {
        Self::with_finished(url, "dead", "dead", id).await
    }

    async fn with_finished(url: &str, table: &str, state: &str, id: JobId) -> Self {
        let sql = format!(
            "INSERT INTO orchestrix.{table} (id, created_at, finished_at, eligible_at, state, lease_counter, lease_ms, rank, attempts,
                 max_attempts, losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant)
             VALUES ('{id}', now(), now(), now(), '{state}', 0, 0, 0, 0, 1, 0, false, false, false, 'q', 't', 't')"
        );
        Self::with(url, &sql).await
    }

    pub(crate) async fn commit(self) {
        self.0.batch_execute("COMMIT").await.unwrap();
    }

    pub(crate) async fn rollback(self) {
        self.0.batch_execute("ROLLBACK").await.unwrap();
    }
}

/// How many sessions wait for a lock.
pub(crate) async fn waiting(watcher: &Client) -> i64 {
    watcher.query_one(WAITING, &[]).await.unwrap().get(0)
}

/// Waits until `n` sessions wait for a lock.
pub(crate) async fn until_waiting(watcher: &Client, n: i64) {
    until(watcher, &format!("{n} sessions wait for a lock"), |row| row == n, WAITING).await;
}

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND wait_event_type = 'Lock'";

/// Polls until the number that `sql` selects is as expected.
pub(crate) async fn until(watcher: &Client, what: &str, expected: impl Fn(i64) -> bool, sql: &str) {
    let begun = Instant::now();
    loop {
        let found: i64 = watcher.query_one(sql, &[]).await.unwrap().get(0);
        if expected(found) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}; the number is {found}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
