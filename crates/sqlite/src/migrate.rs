//! Schema migrations. They are numbered, applied in order, and never edited once released.
//!
//! One transaction applies all of them under SQLite's write lock. When several processes start at once on an empty
//! file, the first one migrates and the others find nothing to do.

use std::path::Path;

use orchestrix_core::{Tenant, turn::ring_position};
use orchestrix_store::StoreError;
use rusqlite::{Connection, functions::FunctionFlags};

use crate::error::Result;

struct Migration {
    version: i32,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "engine", sql: include_str!("../migrations/0001_engine.sql") },
    Migration { version: 2, name: "coordination", sql: include_str!("../migrations/0002_coordination.sql") },
    Migration { version: 3, name: "schedules", sql: include_str!("../migrations/0003_schedules.sql") },
    Migration { version: 4, name: "kept_occurrences", sql: include_str!("../migrations/0004_kept_occurrences.sql") },
    Migration { version: 5, name: "operate", sql: include_str!("../migrations/0005_operate.sql") },
    Migration { version: 6, name: "tenants", sql: include_str!("../migrations/0006_tenants.sql") },
    Migration { version: 7, name: "presence", sql: include_str!("../migrations/0007_presence.sql") },
    Migration { version: 8, name: "revived", sql: include_str!("../migrations/0008_revived.sql") },
    Migration { version: 9, name: "lanes", sql: include_str!("../migrations/0009_lanes.sql") },
    Migration { version: 10, name: "turns", sql: include_str!("../migrations/0010_turns.sql") },
];

/// The newest schema version that this program supports.
pub const SCHEMA_VERSION: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// The `application_id` of our files: "Orcx" in ASCII.
const APPLICATION_ID: i32 = 0x4f72_6378;

/// Refuses the database of another program and a schema that is newer than this program. Changes nothing.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<()> {
    if !is_ours(connection)? {
        return Err(StoreError::Schema(format!(
            "{} is the database of another program: choose another path; this file was not changed",
            path.display()
        ))
        .into());
    }
    let version = version(connection)?;
    if version > SCHEMA_VERSION {
        return Err(StoreError::Schema(format!(
            "{} has schema version {version}, this program knows {SCHEMA_VERSION}: run a newer orchestrix",
            path.display()
        ))
        .into());
    }
    Ok(())
}

/// Whether the file was created by this program or is empty.
pub(crate) fn is_ours(connection: &Connection) -> Result<bool> {
    let marked: i32 = connection.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    Ok(marked == APPLICATION_ID || (marked == 0 && tables == 0))
}

/// The schema version of the file, or 0 if it has no schema yet.
pub(crate) fn version(connection: &Connection) -> Result<i32> {
    let has_ledger: bool =
        connection
            .query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'migration')", (), |row| row.get(0))?;
    if !has_ledger {
        return Ok(0);
    }
    Ok(connection.query_row("SELECT coalesce(max(version), 0) FROM migration", (), |row| row.get(0))?)
}

/// Applies pending migrations and returns how many there were.
pub(crate) fn migrate(connection: &Connection, path: &Path, now: i64) -> Result<usize> {
    if version(connection)? == SCHEMA_VERSION {
        return Ok(0);
    }
    define_functions(connection)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    // On an error the caller drops the connection, which rolls the transaction back.
    check(connection, path)?;
    let version = version(connection)?;
    if version == 0 {
        connection.execute_batch(
            "CREATE TABLE migration (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT",
        )?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    let mut applied = 0;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > version) {
        tracing::info!(version = migration.version, name = migration.name, "applying a migration");
        connection.execute_batch(migration.sql)?;
        connection.execute(
            "INSERT INTO migration (version, name, applied_at) VALUES (?1, ?2, ?3)",
            (migration.version, migration.name, now),
        )?;
        applied += 1;
    }
    connection.execute_batch("COMMIT")?;
    Ok(applied)
}

/// Defines what migrations compute by the rules of `orchestrix-core`.
fn define_functions(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("ring_position", 1, flags, |call| {
        let tenant: String = call.get(0)?;
        Ok(ring_position(&Tenant::trusted(&tenant)))
    })?;
    Ok(())
}
