//! Retention: days of history are dropped whole; what has no day of its own goes row by row.
//!
//! A day is dropped when nothing in it is younger than its retention. Before that, what outlives the day is taken care
//! of: idempotency keys remember the last state, and jobs that are still unfinished or dead take their payloads along.
//! Each step can be repeated, so a crash between two costs nothing.

use orchestrix_store::{Pruned, Result, Retention, StoreError};

use crate::{
    PostgresStore,
    database::Connection,
    record::millis,
    row::sweep_limit,
    statement::{
        KEEP_PAYLOADS, PARTITIONS, PRUNE_DEPENDENCIES, PRUNE_LOGS, PRUNE_ROWS, REMEMBER_KEYS, STILL_KEPT, Statement,
    },
};

/// Rows one statement touches while a day is made ready to go.
const STEP: i64 = 10_000;
/// How long past its retention a day may be held back by single jobs, before the others of it go row by row. Shorter
/// than a day and jobs that finish past midnight would cost every day its drop.
const GRACE_MS: i64 = 24 * 3600 * 1000;
/// Days of partitions kept ready ahead.
const DAYS_AHEAD: i32 = 3;
/// How long to wait for a partitioned table that is in use, before leaving it for the next time.
const SET_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '2s'";

pub(crate) async fn prune(store: &PostgresStore, retention: &Retention, limit: usize) -> Result<Pruned> {
    let limit = sweep_limit(limit)?;
    let connection = store.database().connection().await?;
    make_partitions(&connection).await?;
    let mut pruned = Pruned::default();
    for (day, table) in days(&connection, "log", millis(retention.logs), limit).await? {
        pruned.count += drop_table(&connection, &day, &table).await?;
    }
    let oldest = millis(retention.completed.min(retention.cancelled));
    for (day, table) in days(&connection, "history", oldest, limit).await? {
        let kept =
            connection.query(&STILL_KEPT, &[&day, &millis(retention.completed), &millis(retention.cancelled)]).await?;
        if !kept[0].get::<_, bool>(0) {
            exhaust(&connection, &REMEMBER_KEYS, &day).await?;
            pruned.count += drop_table(&connection, &day, &table).await?;
            exhaust(&connection, &PRUNE_DEPENDENCIES, &day).await?;
        }
    }
    let history: Vec<String> =
        days(&connection, "history", oldest, STEP).await?.into_iter().map(|(day, _)| day).collect();
    for (day, table) in days(&connection, "payload", oldest, limit).await? {
        if !history.contains(&day) {
            exhaust(&connection, &KEEP_PAYLOADS, &day).await?;
            pruned.count += drop_table(&connection, &day, &table).await?;
        }
    }
    let ages = [retention.completed, retention.cancelled, retention.dead].map(millis);
    let rows = connection.query(&PRUNE_ROWS, &[&ages[0], &ages[1], &ages[2], &(oldest + GRACE_MS), &limit]).await?;
    let gone = rows[0].get::<_, i64>(0);
    let lines = connection.query(&PRUNE_LOGS, &[&millis(retention.logs), &limit]).await?.len();
    pruned.count += usize::try_from(gone).unwrap_or(0) + lines;
    pruned.more = gone >= limit || i64::try_from(lines).is_ok_and(|lines| lines >= limit);
    Ok(pruned)
}

async fn make_partitions(connection: &Connection<'_>) -> Result<()> {
    connection
        .transaction(async {
            connection.execute(SET_LOCK_TIMEOUT).await?;
            let today = "(now() AT TIME ZONE 'UTC')::date";
            connection.execute(&format!("SELECT orchestrix.make_partitions({today}, {today} + {DAYS_AHEAD})")).await
        })
        .await
}

// Days of a table that are wholly older than `millis`, as (day, partition).
async fn days(connection: &Connection<'_>, table: &str, millis: i64, limit: i64) -> Result<Vec<(String, String)>> {
    let rows = connection.query(&PARTITIONS, &[&table, &millis, &limit]).await?;
    Ok(rows.iter().map(|row| (row.get(1), row.get(0))).collect())
}

// Repeats a step until it finds nothing; each step makes the next one's work smaller, so this ends.
async fn exhaust(connection: &Connection<'_>, step: &Statement, day: &str) -> Result<()> {
    while !connection.query(step, &[&day, &STEP]).await?.is_empty() {}
    Ok(())
}

// The name comes from the catalog and matched a fixed pattern, so it can stand in the text.
async fn drop_table(connection: &Connection<'_>, day: &str, table: &str) -> Result<usize> {
    let dropped = connection
        .transaction(async {
            connection.execute(SET_LOCK_TIMEOUT).await?;
            connection.execute(&format!("DROP TABLE IF EXISTS orchestrix.{table}")).await
        })
        .await;
    match dropped {
        Ok(()) => {
            tracing::info!(day, table, "dropped a day past its retention");
            Ok(1)
        }
        Err(StoreError::Unavailable(error)) => {
            tracing::warn!(day, table, error, "could not drop a day now; left for the next time");
            Ok(0)
        }
        Err(error) => Err(error),
    }
}
