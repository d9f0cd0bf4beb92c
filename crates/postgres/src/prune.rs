//! Retention: days of history are dropped whole; what has no day of its own goes row by row.
//!
//! A day is dropped when nothing in it is younger than its retention. Before that, what outlives the day is taken care
//! of: idempotency keys remember how their jobs ended, and jobs that are still unfinished or dead take their payloads
//! along. The last look and the drop are one transaction that keeps writers out of that day, so a job that finishes late
//! stops the drop instead of going with it. Each step can be repeated, so a crash between two costs nothing; a day that
//! is in use, or too much for one call, is left for the next.

use orchestrix_store::{Fence, Pruned, Result, Retention, StoreError, changes::REDRIVEN_RETENTION};
use uuid::Uuid;

use crate::{
    PostgresStore,
    database::{Connection, Database},
    record::millis,
    row::sweep_limit,
    statement::{
        KEEP_PAYLOADS, PARTITIONS, PRUNE_AUDIT, PRUNE_DEPENDENCIES, PRUNE_LOGS, PRUNE_OCCURRENCES, PRUNE_OPERATIONS,
        PRUNE_REVIVED, PRUNE_ROWS, REMEMBER_KEYS, STILL_KEPT,
    },
};

/// Narrow rows that one statement touches while a day is made ready to go.
const STEP: i64 = 5_000;
/// Payloads that one statement takes along; each may be a megabyte.
const PAYLOAD_STEP: i64 = 100;
/// Statements that one call spends on making days ready.
const MAX_STEPS: usize = 500;
/// How long past its retention a day may be held back by single jobs, before the others of it go row by row. Shorter
/// than a day and jobs that finish past midnight would cost every day its drop.
const GRACE_MS: i64 = 24 * 3600 * 1000;
/// Days of partitions kept ready ahead.
const DAYS_AHEAD: i32 = 3;
/// How long DDL waits for a table that is in use. Everybody else queues behind it meanwhile, so not long.
const SET_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '100ms'";

/// One call's work, and what is left of its allowance.
struct Prune<'a> {
    database: &'a Database,
    fence: Fence,
    connection: Connection<'a>,
    retention: &'a Retention,
    steps: usize,
    pruned: Pruned,
}

pub(crate) async fn prune(store: &PostgresStore, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned> {
    let limit = sweep_limit(limit)?;
    let database = store.database();
    // Days are made and dropped outside the fence, which must not be held while DDL waits: doing it twice does no harm. But
    // whoever knows better should not begin.
    database.work(fence).await?.commit().await?;
    let connection = database.connection().await?;
    let mut prune = Prune { database, fence, connection, retention, steps: MAX_STEPS, pruned: Pruned::default() };
    prune.make_partitions().await?;
    for (day, table) in prune.days("log", millis(retention.logs), limit).await? {
        let dropped = prune.drop_log_day(&table).await;
        prune.note(&day, dropped)?;
    }
    let oldest = millis(retention.completed.min(retention.cancelled));
    for (day, table) in prune.days("history", oldest, limit).await? {
        let dropped = prune.drop_history_day(&day, &table).await;
        prune.note(&day, dropped)?;
    }
    let held: Vec<String> = prune.days("history", oldest, i64::MAX).await?.into_iter().map(|(day, _)| day).collect();
    for (day, table) in prune.days("payload", oldest, limit).await? {
        if !held.contains(&day) {
            let dropped = prune.drop_payload_day(&day, &table).await;
            prune.note(&day, dropped)?;
        }
    }
    prune.rows(oldest, limit).await?;
    Ok(prune.pruned)
}

impl Prune<'_> {
    // Only missing days need DDL, so on most calls this takes no lock at all.
    async fn make_partitions(&mut self) -> Result<()> {
        for ahead in 0..=DAYS_AHEAD {
            let day = format!("(now() AT TIME ZONE 'UTC')::date + {ahead}");
            let make = format!("SELECT orchestrix.make_partitions({day}, {day})");
            let made = self.connection.transaction(async {
                self.connection.execute(SET_LOCK_TIMEOUT).await?;
                self.connection.execute(&make).await
            });
            let made = made.await.map(|()| None);
            self.note("to come", made)?;
        }
        Ok(())
    }

    // Days of a table that are wholly older than `millis`, as (day, partition).
    async fn days(&self, table: &str, millis: i64, limit: i64) -> Result<Vec<(String, String)>> {
        let rows = self.connection.query(&PARTITIONS, &[&table, &millis, &limit]).await?;
        Ok(rows.iter().map(|row| (row.get(1), row.get(0))).collect())
    }

    // Counts a day that was dropped. `None`: nothing to drop. One that could not be dropped now is for the next call.
    fn note(&mut self, day: &str, dropped: Result<Option<bool>>) -> Result<()> {
        match dropped {
            Ok(None) => {}
            Ok(Some(true)) => {
                tracing::info!(day, "dropped a day past its retention");
                self.pruned.count += 1;
            }
            Ok(Some(false)) => self.pruned.more = true,
            Err(StoreError::Unavailable(error)) => {
                tracing::warn!(day, error, "a day is in use; left for the next time");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn drop_log_day(&self, table: &str) -> Result<Option<bool>> {
        let dropped = self.connection.transaction(async {
            self.connection.execute(SET_LOCK_TIMEOUT).await?;
            self.connection.execute(&drop_table(table)).await
        });
        dropped.await.map(|()| Some(true))
    }

    async fn still_kept(&self, day: &str) -> Result<bool> {
        let ages = [self.retention.completed, self.retention.cancelled].map(millis);
        let rows = self.connection.query(&STILL_KEPT, &[&day, &ages[0], &ages[1]]).await?;
        Ok(rows[0].get(0))
    }

    async fn drop_history_day(&mut self, day: &str, table: &str) -> Result<Option<bool>> {
        if self.still_kept(day).await? {
            return Ok(None);
        }
        let mut after = Some(Uuid::nil());
        while let Some(id) = after {
            if !self.spend() {
                return Ok(Some(false));
            }
            let rows = self.connection.query(&REMEMBER_KEYS, &[&day, &id, &STEP]).await?;
            after = rows.first().map(|row| row.get(0));
        }
        loop {
            if !self.spend() {
                return Ok(Some(false));
            }
            if self.connection.query(&PRUNE_DEPENDENCIES, &[&day, &STEP]).await?.is_empty() {
                break;
            }
        }
        let dropped = self.connection.transaction(async {
            self.keep_writers_out(table).await?;
            if self.still_kept(day).await? {
                return Ok(None);
            }
            self.connection.execute(&drop_table(table)).await.map(|()| Some(true))
        });
        dropped.await
    }

    async fn payloads_to_keep(&self, day: &str) -> Result<i64> {
        let rows = self.connection.query(&KEEP_PAYLOADS, &[&day, &PAYLOAD_STEP]).await?;
        Ok(rows[0].get(0))
    }

    async fn drop_payload_day(&mut self, day: &str, table: &str) -> Result<Option<bool>> {
        loop {
            if !self.spend() {
                return Ok(Some(false));
            }
            if self.payloads_to_keep(day).await? == 0 {
                break;
            }
        }
        let dropped = self.connection.transaction(async {
            self.keep_writers_out(table).await?;
            if self.payloads_to_keep(day).await? > 0 {
                return Ok(Some(false));
            }
            self.connection.execute(&drop_table(table)).await.map(|()| Some(true))
        });
        dropped.await
    }

    async fn keep_writers_out(&self, table: &str) -> Result<()> {
        self.connection.execute(SET_LOCK_TIMEOUT).await?;
        self.connection.execute(&format!("LOCK TABLE orchestrix.{table} IN SHARE MODE")).await
    }

    async fn rows(&mut self, oldest: i64, limit: i64) -> Result<()> {
        let ages = [self.retention.completed, self.retention.cancelled, self.retention.dead].map(millis);
        let grace = oldest.saturating_add(GRACE_MS);
        let work = self.database.work(self.fence).await?;
        let rows = work.query(&PRUNE_ROWS, &[&ages[0], &ages[1], &ages[2], &grace, &limit]).await?;
        let jobs = rows[0].get::<_, i64>(0);
        self.pruned.count += usize::try_from(jobs).unwrap_or(0);
        self.pruned.more |= jobs >= limit;
        for (statement, kept) in [
            (&PRUNE_LOGS, self.retention.logs),
            (&PRUNE_OCCURRENCES, self.retention.occurrences),
            (&PRUNE_AUDIT, self.retention.audit),
            (&PRUNE_OPERATIONS, self.retention.operations),
            (&PRUNE_REVIVED, REDRIVEN_RETENTION),
        ] {
            let gone = work.query(statement, &[&millis(kept), &limit]).await?.len();
            self.pruned.count += gone;
            self.pruned.more |= i64::try_from(gone).is_ok_and(|gone| gone >= limit);
        }
        work.commit().await?;
        Ok(())
    }

    fn spend(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }
}

// The name comes from the catalog and matched a fixed pattern, so it can stand in the text.
fn drop_table(table: &str) -> String {
    format!("DROP TABLE IF EXISTS orchestrix.{table}")
}
