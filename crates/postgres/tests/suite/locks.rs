//! Holding a lock that a store needs, and seeing it wait.
//!
//! A race is shown by stopping one side at the very point in question, not by hoping that two sides meet there.

use std::time::{Duration, Instant};

use orchestrix_core::JobId;
use tokio_postgres::Client;

use crate::support::connect;

/// How long anything may take to happen on a machine that is busy with other things.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A transaction on a connection of its own, which holds whatever its statements lock until it ends.
pub(crate) struct Holder(Client);

impl Holder {
    pub(crate) async fn begin(url: &str) -> Self {
        let client = connect(url).await;
        client.batch_execute("BEGIN").await.unwrap();
        Self(client)
    }

    /// The connection, inside the transaction.
    pub(crate) fn client(&self) -> &Client {
        &self.0
    }

    /// Begins a transaction that has done `sql`.
    pub(crate) async fn with(url: &str, sql: &str) -> Self {
        let holder = Self::begin(url).await;
        holder.0.batch_execute(sql).await.unwrap();
        holder
    }

    /// Begins a transaction that has moved `id` to the history already: whoever ends the job meanwhile gets as far as
    /// recording its end, with the job's row locked, and waits there.
    pub(crate) async fn with_history_of(url: &str, id: JobId) -> Self {
        Self::with_finished(url, "history", "completed", id).await
    }

    /// The same for jobs that die.
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

/// How many sessions of the database wait for a lock.
pub(crate) async fn waiting(watcher: &Client) -> i64 {
    watcher.query_one(WAITING, &[]).await.unwrap().get(0)
}

/// Returns once `n` sessions of the database wait for a lock.
pub(crate) async fn until_waiting(watcher: &Client, n: i64) {
    until(watcher, &format!("{n} sessions wait for a lock"), |row| row == n, WAITING).await;
}

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND wait_event_type = 'Lock'";

/// Looks again and again until the number that `sql` selects is as wanted.
pub(crate) async fn until(watcher: &Client, what: &str, wanted: impl Fn(i64) -> bool, sql: &str) {
    let begun = Instant::now();
    loop {
        let found: i64 = watcher.query_one(sql, &[]).await.unwrap().get(0);
        if wanted(found) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}; it is {found}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
