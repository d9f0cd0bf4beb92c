//! Retention: daily partitions are dropped whole; rows outside them are deleted one by one.
//!
//! A day is dropped when every row in it is past its retention. Data that outlives the day is saved first:
//! idempotency keys note how their jobs ended, and unfinished or dead jobs get their payloads inlined. The last check
//! and the drop are one transaction that locks out writers of that day, so a job that finishes late prevents the
//! drop. Each step can be repeated, so a crash in between does no harm. A day that is in use, or too large for one
//! call, is left for the next.

use orchestrix_store::{Fence, Pruned, Result, Retention, StoreError, changes::REDRIVEN_RETENTION};
use uuid::Uuid;

use crate::{
    PostgresStore,
    database::{Connection, Database},
    job_columns::millis,
    ready::repair_ready,
    row::sweep_limit,
    statement::{
        EXPIRED_PARTITIONS, HAS_RETAINED_JOBS, INLINE_PAYLOADS, PRUNE_AUDIT, PRUNE_DEPENDENCIES, PRUNE_JOBS,
        PRUNE_LOGS, PRUNE_OCCURRENCES, PRUNE_OPERATIONS, PRUNE_REDRIVEN, REMEMBER_KEY_STATES,
    },
};

/// Narrow rows that one statement touches while it prepares a day.
const STEP: i64 = 5_000;
/// Payloads that one statement inlines; each may have a megabyte.
const PAYLOAD_STEP: i64 = 100;
/// Statements that one call spends on preparing days.
const MAX_STEPS: usize = 500;
/// How long single jobs may delay the drop of a day past its retention before its other jobs are deleted row by row.
/// With less than a day, jobs that finish past midnight would prevent every drop.
const GRACE_MS: i64 = 24 * 3600 * 1000;
/// Days of partitions kept ready ahead.
const DAYS_AHEAD: i32 = 3;
/// How long DDL waits for a table in use. Short, because all other statements on that table queue behind it.
const SET_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '100ms'";

/// One call of [`prune_history`].
struct Prune<'a> {
    database: &'a Database,
    fence: Fence,
    connection: Connection<'a>,
    retention: &'a Retention,
    /// Statements left to prepare days.
    steps: usize,
    pruned: Pruned,
}

pub(crate) async fn prune_history(
    store: &PostgresStore,
    fence: Fence,
    retention: &Retention,
    limit: usize,
) -> Result<Pruned> {
    let limit = sweep_limit(limit)?;
    let database = store.database();
    // Partitions are created and dropped outside the fence, which must not be held while DDL waits: two leaders doing
    // it do no harm. But a deposed leader should not begin.
    database.fenced(fence).await?.commit().await?;
    let connection = database.connection().await?;
    let mut prune = Prune { database, fence, connection, retention, steps: MAX_STEPS, pruned: Pruned::default() };
    prune.make_partitions().await?;
    for (day, table) in prune.days("log", millis(retention.logs), limit).await? {
        let dropped = prune.drop_log_day(&table).await;
        prune.count_day(&day, dropped)?;
    }
    let oldest = millis(retention.completed.min(retention.cancelled));
    for (day, table) in prune.days("history", oldest, limit).await? {
        let dropped = prune.drop_history_day(&day, &table).await;
        prune.count_day(&day, dropped)?;
    }
    let kept: Vec<String> = prune.days("history", oldest, i64::MAX).await?.into_iter().map(|(day, _)| day).collect();
    for (day, table) in prune.days("payload", oldest, limit).await? {
        if !kept.contains(&day) {
            let dropped = prune.drop_payload_day(&day, &table).await;
            prune.count_day(&day, dropped)?;
        }
    }
    prune.delete_rows(oldest, limit).await?;
    repair_ready(store, fence).await?;
    Ok(prune.pruned)
}

impl Prune<'_> {
    // Only missing days need DDL, so most calls take no lock here.
    async fn make_partitions(&mut self) -> Result<()> {
        for ahead in 0..=DAYS_AHEAD {
            let day = format!("(now() AT TIME ZONE 'UTC')::date + {ahead}");
            let make = format!("SELECT orchestrix.make_partitions({day}, {day})");
            let made = self.connection.transaction(async {
                self.connection.execute(SET_LOCK_TIMEOUT).await?;
                self.connection.execute(&make).await
            });
            let made = made.await.map(|()| None);
            self.count_day("upcoming", made)?;
        }
        Ok(())
    }

    // Days of a table that end more than `millis` ago, as (day, partition).
    async fn days(&self, table: &str, millis: i64, limit: i64) -> Result<Vec<(String, String)>> {
        let rows = self.connection.query(&EXPIRED_PARTITIONS, &[&table, &millis, &limit]).await?;
        Ok(rows.iter().map(|row| (row.get("day"), row.get("partition"))).collect())
    }

    // Counts a dropped day. `None` means that the day stays, `false` that the next call must continue with it.
    fn count_day(&mut self, day: &str, dropped: Result<Option<bool>>) -> Result<()> {
        match dropped {
            Ok(None) => {}
            Ok(Some(true)) => {
                tracing::info!(day, "dropped a partition past its retention");
                self.pruned.count += 1;
            }
            Ok(Some(false)) => self.pruned.more = true,
            Err(StoreError::Unavailable(error)) => {
                tracing::warn!(day, error, "partition in use; left for the next sweep");
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

    async fn has_retained_jobs(&self, day: &str) -> Result<bool> {
        let ages = [self.retention.completed, self.retention.cancelled].map(millis);
        let rows = self.connection.query(&HAS_RETAINED_JOBS, &[&day, &ages[0], &ages[1]]).await?;
        Ok(rows[0].get("retained"))
    }

    async fn drop_history_day(&mut self, day: &str, table: &str) -> Result<Option<bool>> {
        if self.has_retained_jobs(day).await? {
            return Ok(None);
        }
        let mut after = Some(Uuid::nil());
        while let Some(id) = after {
            if !self.spend_step() {
                return Ok(Some(false));
            }
            let rows = self.connection.query(&REMEMBER_KEY_STATES, &[&day, &id, &STEP]).await?;
            after = rows.first().map(|row| row.get("id"));
        }
        loop {
            if !self.spend_step() {
                return Ok(Some(false));
            }
            if self.connection.query(&PRUNE_DEPENDENCIES, &[&day, &STEP]).await?.is_empty() {
                break;
            }
        }
        let dropped = self.connection.transaction(async {
            self.lock_out_writers(table).await?;
            if self.has_retained_jobs(day).await? {
                return Ok(None);
            }
            self.connection.execute(&drop_table(table)).await.map(|()| Some(true))
        });
        dropped.await
    }

    // Inlines payloads; returns how many were left.
    async fn inline_payloads(&self, day: &str) -> Result<i64> {
        let rows = self.connection.query(&INLINE_PAYLOADS, &[&day, &PAYLOAD_STEP]).await?;
        Ok(rows[0].get("remaining"))
    }

    async fn drop_payload_day(&mut self, day: &str, table: &str) -> Result<Option<bool>> {
        loop {
            if !self.spend_step() {
                return Ok(Some(false));
            }
            if self.inline_payloads(day).await? == 0 {
                break;
            }
        }
        let dropped = self.connection.transaction(async {
            self.lock_out_writers(table).await?;
            if self.inline_payloads(day).await? > 0 {
                return Ok(Some(false));
            }
            self.connection.execute(&drop_table(table)).await.map(|()| Some(true))
        });
        dropped.await
    }

    async fn lock_out_writers(&self, table: &str) -> Result<()> {
        self.connection.execute(SET_LOCK_TIMEOUT).await?;
        self.connection.execute(&format!("LOCK TABLE orchestrix.{table} IN SHARE MODE")).await
    }

    async fn delete_rows(&mut self, oldest: i64, limit: i64) -> Result<()> {
        let ages = [self.retention.completed, self.retention.cancelled, self.retention.dead].map(millis);
        let grace = oldest.saturating_add(GRACE_MS);
        let tx = self.database.fenced(self.fence).await?;
        let rows = tx.query(&PRUNE_JOBS, &[&ages[0], &ages[1], &ages[2], &grace, &limit]).await?;
        let jobs = rows[0].get::<_, i64>("pruned");
        self.pruned.count += usize::try_from(jobs).unwrap_or(0);
        self.pruned.more |= jobs >= limit;
        for (statement, retention) in [
            (&PRUNE_LOGS, self.retention.logs),
            (&PRUNE_OCCURRENCES, self.retention.occurrences),
            (&PRUNE_AUDIT, self.retention.audit),
            (&PRUNE_OPERATIONS, self.retention.operations),
            (&PRUNE_REDRIVEN, REDRIVEN_RETENTION),
        ] {
            let deleted = tx.query(statement, &[&millis(retention), &limit]).await?.len();
            self.pruned.count += deleted;
            self.pruned.more |= i64::try_from(deleted).is_ok_and(|deleted| deleted >= limit);
        }
        tx.commit().await?;
        Ok(())
    }

    // Takes one statement of those left; false once there are none.
    fn spend_step(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }
}

// The name comes from the catalog and matched a fixed pattern, so it needs no quoting.
fn drop_table(table: &str) -> String {
    format!("DROP TABLE IF EXISTS orchestrix.{table}")
}
