//! The schema: numbered migrations, applied under a lock and never edited once released.
//!
//! The lock is a table lock inside the migrating transaction and not a session lock: it works behind a pooler and ends
//! with the transaction. Of several processes that start on an empty database, the first migrates; the others wait and
//! find nothing left to do.

use std::time::{Duration, Instant};

use orchestrix_core::Backoff;
use orchestrix_store::{Result, StoreError};

use crate::{
    database::{Connection, Database},
    error::store_error,
};

/// A numbered change of the schema.
struct Migration {
    version: i32,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "engine", sql: include_str!("../migrations/0001_engine.sql") },
    Migration { version: 2, name: "enqueue", sql: include_str!("../migrations/0002_enqueue.sql") },
    Migration { version: 3, name: "coordination", sql: include_str!("../migrations/0003_coordination.sql") },
    Migration { version: 4, name: "schedules", sql: include_str!("../migrations/0004_schedules.sql") },
    Migration { version: 5, name: "kept_occurrences", sql: include_str!("../migrations/0005_kept_occurrences.sql") },
    Migration { version: 6, name: "operate", sql: include_str!("../migrations/0006_operate.sql") },
    Migration { version: 7, name: "live", sql: include_str!("../migrations/0007_live.sql") },
    Migration { version: 8, name: "tenants", sql: include_str!("../migrations/0008_tenants.sql") },
    Migration { version: 9, name: "waiting", sql: include_str!("../migrations/0009_waiting.sql") },
    Migration { version: 10, name: "presence", sql: include_str!("../migrations/0010_presence.sql") },
    Migration { version: 11, name: "revived", sql: include_str!("../migrations/0011_revived.sql") },
    Migration { version: 12, name: "ready", sql: include_str!("../migrations/0012_ready.sql") },
    Migration { version: 13, name: "vacuum", sql: include_str!("../migrations/0013_vacuum.sql") },
    Migration { version: 14, name: "turns", sql: include_str!("../migrations/0014_turns.sql") },
];

/// The schema version of this program.
pub const SCHEMA_VERSION: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// How long a migration may take, and how long another process waits for it.
const MIGRATION_LIMIT: Duration = Duration::from_secs(600);

/// Delays between two attempts to connect at start.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(2);

const CREATE_MIGRATION_TABLE: &str = "
    CREATE SCHEMA IF NOT EXISTS orchestrix;
    CREATE TABLE IF NOT EXISTS orchestrix.migration (
        version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT pg_catalog.now());";

/// Waits until the database accepts connections, for at most [`PostgresOptions::startup_timeout`].
///
/// [`PostgresOptions::startup_timeout`]: crate::PostgresOptions::startup_timeout
pub(crate) async fn wait_until_up(database: &Database) -> Result<()> {
    let limit = database.options.startup_timeout;
    let begun = Instant::now();
    let mut backoff = Backoff::new(FIRST_RETRY, LONGEST_RETRY);
    loop {
        let error = match database.connection().await {
            Ok(connection) => match connection.execute("SELECT 1").await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let left = limit.saturating_sub(begun.elapsed());
        if !matches!(error, StoreError::Unavailable(_)) || left.is_zero() {
            return Err(error);
        }
        tracing::warn!(waited = ?begun.elapsed(), limit = ?limit, %error, "waiting for the database");
        let delay = backoff.next_jittered(&mut rand::rng()).min(left);
        tokio::time::sleep(delay).await;
    }
}

/// The schema version of the database; 0 if it has no schema.
pub(crate) async fn current_version(connection: &Connection<'_>) -> Result<i32> {
    let exists = connection.fetch("SELECT to_regclass('orchestrix.migration') IS NOT NULL").await?;
    if !exists[0].get::<_, bool>(0) {
        return Ok(0);
    }
    let rows = connection.fetch("SELECT coalesce(max(version), 0) FROM orchestrix.migration").await?;
    Ok(rows[0].get(0))
}

/// Applies pending migrations and returns how many it applied.
pub(crate) async fn migrate(database: &Database) -> Result<usize> {
    let connection = database.connection().await?;
    let version = current_version(&connection).await?;
    refuse_newer(version)?;
    if version == SCHEMA_VERSION {
        return Ok(0);
    }
    if version == 0 {
        create_migration_table(&connection).await?;
    }
    connection
        .transaction(async {
            // The process that holds this lock migrates; the others wait here.
            connection
                .execute_within(
                    MIGRATION_LIMIT,
                    "SET LOCAL lock_timeout = '10min'; SET LOCAL statement_timeout = '10min';
                     LOCK TABLE orchestrix.migration IN EXCLUSIVE MODE",
                )
                .await?;
            let version = current_version(&connection).await?;
            refuse_newer(version)?;
            let mut applied = 0;
            for migration in MIGRATIONS.iter().filter(|migration| migration.version > version) {
                tracing::info!(version = migration.version, name = migration.name, "applying migration");
                connection.execute_within(MIGRATION_LIMIT, migration.sql).await?;
                connection
                    .execute(&format!(
                        "INSERT INTO orchestrix.migration (version, name) VALUES ({}, '{}')",
                        migration.version, migration.name
                    ))
                    .await?;
                applied += 1;
            }
            // From yesterday, for producers whose clock is behind, to three days ahead. The leader creates later ones.
            connection
                .execute(
                    "SELECT orchestrix.make_partitions(d - 1, d + 3)
                     FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS d) AS today",
                )
                .await?;
            Ok(applied)
        })
        .await
}

/// Refuses a schema of a newer version: writing to it could break what that version relies on.
pub(crate) fn refuse_newer(version: i32) -> Result<()> {
    if version > SCHEMA_VERSION {
        return Err(StoreError::Schema(format!(
            "the database has schema version {version}, this program knows {SCHEMA_VERSION}: run a newer orchestrix"
        )));
    }
    Ok(())
}

// IF NOT EXISTS does not protect against two sessions that create the same object at once: one of them fails with a
// duplicate and succeeds when it tries again.
async fn create_migration_table(connection: &Connection<'_>) -> Result<()> {
    for _ in 0..20 {
        match connection.try_execute(CREATE_MIGRATION_TABLE).await? {
            Ok(()) => return Ok(()),
            Err(error)
                if error
                    .code()
                    .is_some_and(|code| matches!(code.code(), "23505" | "42P06" | "42P07" | "42710" | "XX000")) =>
            {
                tokio::time::sleep(Duration::from_millis(20 + rand::random_range(0..30))).await;
            }
            Err(error) => return Err(store_error(error)),
        }
    }
    connection.execute(CREATE_MIGRATION_TABLE).await
}
