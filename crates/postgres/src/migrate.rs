//! The schema: numbered migrations, never edited once landed, applied under a lock.
//!
//! The lock is a row lock inside the migrating transaction, not a session lock, so it works behind a pooler and is
//! gone with whoever held it. Eight processes that start at once on an empty database queue up; the first migrates and
//! the others find nothing left to do.

use std::time::{Duration, Instant};

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
];

/// The newest version this program knows.
pub const SCHEMA_VERSION: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// How long a migration, or waiting for somebody else's, may take.
const MIGRATION_LIMIT: Duration = Duration::from_secs(600);

const CREATE_LEDGER: &str = "
    CREATE SCHEMA IF NOT EXISTS orchestrix;
    CREATE TABLE IF NOT EXISTS orchestrix.migration (
        version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT pg_catalog.now());";

/// Waits for a database that is still coming up, telling how it goes, up to the options' limit.
pub(crate) async fn wait_until_up(database: &Database) -> Result<()> {
    let limit = database.options.startup_timeout;
    let begun = Instant::now();
    let mut pause = Duration::from_millis(100);
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
        tokio::time::sleep(pause.mul_f64(1.0 + 0.2 * rand::random::<f64>()).min(left)).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// The version of the schema in the database; 0 when there is none.
pub(crate) async fn current_version(connection: &Connection<'_>) -> Result<i32> {
    let known = connection.fetch("SELECT to_regclass('orchestrix.migration') IS NOT NULL").await?;
    if !known[0].get::<_, bool>(0) {
        return Ok(0);
    }
    let rows = connection.fetch("SELECT coalesce(max(version), 0) FROM orchestrix.migration").await?;
    Ok(rows[0].get(0))
}

/// Applies what is pending; answers how many were.
pub(crate) async fn migrate(database: &Database) -> Result<usize> {
    let connection = database.connection().await?;
    let version = current_version(&connection).await?;
    refuse_newer(version)?;
    if version == SCHEMA_VERSION {
        return Ok(0);
    }
    if version == 0 {
        create_ledger(&connection).await?;
    }
    connection
        .transaction(async {
            // Whoever holds this lock migrates; the others wait here, each for as long as a migration may take.
            connection
                .execute_within(MIGRATION_LIMIT, "SET LOCAL lock_timeout = '10min'; SET LOCAL statement_timeout = '10min'; LOCK TABLE orchestrix.migration IN EXCLUSIVE MODE")
                .await?;
            let version = current_version(&connection).await?;
            refuse_newer(version)?;
            let mut applied = 0;
            for migration in MIGRATIONS.iter().filter(|migration| migration.version > version) {
                tracing::info!(version = migration.version, name = migration.name, "migrating");
                connection.execute_within(MIGRATION_LIMIT, migration.sql).await?;
                connection
                    .execute(&format!(
                        "INSERT INTO orchestrix.migration (version, name) VALUES ({}, '{}')",
                        migration.version, migration.name
                    ))
                    .await?;
                applied += 1;
            }
            // From a day back, for producers whose clock is behind, to a few ahead, until housekeeping makes more.
            connection
                .execute("SELECT orchestrix.make_partitions(d - 1, d + 3) FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS d) AS today")
                .await?;
            Ok(applied)
        })
        .await
}

/// Refuses a schema from the future: writing to it could break what a newer program relies on.
pub(crate) fn refuse_newer(version: i32) -> Result<()> {
    if version > SCHEMA_VERSION {
        return Err(StoreError::Schema(format!(
            "the database has schema version {version}, this program knows {SCHEMA_VERSION}: run a newer orchestrix"
        )));
    }
    Ok(())
}

// IF NOT EXISTS does not keep two sessions from making the same thing at once: one of them fails with a duplicate, and
// finds it there the next time.
async fn create_ledger(connection: &Connection<'_>) -> Result<()> {
    for _ in 0..20 {
        match connection.try_execute(CREATE_LEDGER).await? {
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
    connection.execute(CREATE_LEDGER).await
}
