//! Vacuum of the tables that churn.
//!
//! Autovacuum visits a database once a minute by default. At twenty thousand jobs per second a table of a few megabytes
//! grows by a gigabyte in that time, and rarely shrinks again. So the leader vacuums a table when its dead rows
//! outnumber the live ones, which takes milliseconds.
//!
//! Dead rows that an old snapshot may read cannot be removed. After a vacuum in vain the leader leaves the table alone
//! until its dead rows become fewer, or for a pause that grows: it would read the same dead rows every second.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_store::Result;
use tokio_postgres::error::SqlState;

use crate::{
    PostgresStore,
    error::{describe, store_error},
    statement::DEAD_ROWS,
};

/// The tables from which the path of a job removes rows.
const TABLES: [&str; 5] = ["job", "ready", "depth_delta", "depth", "settled"];

/// The pause after the first vacuum in vain. It doubles up to the limit, and is at least this many times as long as the
/// vacuum took.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(60);
const PAUSE_PER_WORK: u32 = 20;

/// Rows of a table, as the server's statistics count them.
#[derive(Debug, Clone, Copy)]
struct RowCounts {
    dead: i64,
    /// Above this number of dead rows the table is due for a vacuum.
    allowed: i64,
    /// Vacuums that a session requested, ever.
    vacuums: i64,
}

/// The tables whose latest vacuum was in vain, in this process.
#[derive(Debug, Default)]
pub(crate) struct VacuumProgress(Mutex<HashMap<&'static str, VainVacuum>>);

#[derive(Debug, Clone, Copy)]
struct VainVacuum {
    /// The dead rows that it left.
    dead: i64,
    ended: Instant,
    pause: Duration,
}

/// Vacuums the tables whose dead rows outnumber their live ones. Returns how many tables it cleaned.
///
/// A table that another session vacuums or alters is skipped.
pub(crate) async fn vacuum_tables(store: &PostgresStore) -> Result<usize> {
    let progress = store.vacuum_progress();
    let counts = row_counts(store).await?;
    let mut cleaned = 0;
    for table in TABLES {
        let Some(before) = counts.get(table).filter(|rows| progress.allows(table, rows, Instant::now())) else {
            continue;
        };
        let begun = Instant::now();
        let is_done = vacuum(store, table).await;
        let after = match is_done {
            Ok(true) => row_counts(store).await?.remove(table).unwrap_or(*before),
            _ => *before,
        };
        // The server skips a locked table with a warning.
        let is_skipped = matches!(is_done, Ok(true)) && after.vacuums == before.vacuums;
        if is_skipped {
            tracing::debug!(table, "vacuum skipped a locked table");
        } else if after.dead > before.dead - before.dead / 10 {
            // Rows that die meanwhile are counted, too: only a vacuum that frees next to nothing is in vain.
            progress.record_vain(table, after.dead, begun.elapsed());
            tracing::debug!(table, dead = after.dead, "vacuum did not remove the dead rows");
        } else {
            progress.record_cleaned(table);
            cleaned += 1;
        }
        is_done?;
    }
    Ok(cleaned)
}

/// Vacuums a table. Returns false if the statement timeout ended the vacuum: only autovacuum has the time for it.
async fn vacuum(store: &PostgresStore, table: &str) -> Result<bool> {
    // Truncating the end of a table locks out all sessions, and the space is needed again at once.
    let sql = format!("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) orchestrix.{table}");
    match store.database().connection().await?.try_execute(&sql).await? {
        Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
            tracing::warn!(table, error = describe(&error), "vacuum was cancelled; the table is left to autovacuum");
            Ok(false)
        }
        result => result.map(|()| true).map_err(store_error),
    }
}

async fn row_counts(store: &PostgresStore) -> Result<HashMap<String, RowCounts>> {
    let rows = store.database().query(&DEAD_ROWS, &[&TABLES.as_slice()]).await?;
    let counts = rows.iter().map(|row| {
        let counts = RowCounts { dead: row.get("dead"), allowed: row.get("allowed"), vacuums: row.get("vacuums") };
        (row.get("name"), counts)
    });
    Ok(counts.collect())
}

impl VacuumProgress {
    /// Whether a table is due for a vacuum that may remove rows.
    fn allows(&self, table: &'static str, rows: &RowCounts, now: Instant) -> bool {
        let mut vain = self.lock();
        // Autovacuum removed them, so the snapshot is gone.
        if vain.get(table).is_some_and(|vain| rows.dead <= vain.dead / 2) {
            vain.remove(table);
        }
        rows.dead > rows.allowed && vain.get(table).is_none_or(|vain| now >= vain.ended + vain.pause)
    }

    fn record_vain(&self, table: &'static str, dead: i64, took: Duration) {
        let mut vain = self.lock();
        let pause = vain.get(table).map_or(FIRST_PAUSE, |vain| (vain.pause * 2).min(MAX_PAUSE));
        let pause = pause.max(took * PAUSE_PER_WORK);
        vain.insert(table, VainVacuum { dead, ended: Instant::now(), pause });
    }

    fn record_cleaned(&self, table: &'static str) {
        self.lock().remove(table);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, VainVacuum>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(dead: i64) -> RowCounts {
        RowCounts { dead, allowed: 100, vacuums: 0 }
    }

    /// Whether a table with these dead rows may be vacuumed some milliseconds from now.
    fn allows(progress: &VacuumProgress, dead: i64, millis: u64) -> bool {
        progress.allows("job", &rows(dead), Instant::now() + Duration::from_millis(millis))
    }

    #[test]
    fn a_table_is_due_when_its_dead_rows_outnumber_the_live_ones() {
        let progress = VacuumProgress::default();
        assert!(!allows(&progress, 100, 0));
        assert!(allows(&progress, 101, 0));
    }

    #[test]
    fn a_table_that_vacuum_cannot_clean_waits_until_its_dead_rows_become_fewer() {
        let progress = VacuumProgress::default();
        progress.record_vain("job", 300, Duration::ZERO);
        assert!(!allows(&progress, 500, 0), "an old snapshot still holds the rows");
        assert!(progress.allows("ready", &rows(500), Instant::now()), "another table is not concerned");
        assert!(allows(&progress, 150, 0), "autovacuum has removed half of them");
        assert!(allows(&progress, 500, 0));
    }

    #[test]
    fn the_pause_after_vacuums_in_vain_grows_to_a_limit_and_ends_with_the_first_success() {
        let progress = VacuumProgress::default();
        for pause in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
            progress.record_vain("job", 300, Duration::ZERO);
            assert!(!allows(&progress, 500, pause / 2));
            assert!(allows(&progress, 500, pause));
        }
        progress.record_cleaned("job");
        assert!(allows(&progress, 500, 0));
        progress.record_vain("job", 300, Duration::ZERO);
        assert!(allows(&progress, 500, 500));
    }

    #[test]
    fn a_vacuum_that_takes_long_in_vain_takes_a_small_share_of_the_time() {
        let progress = VacuumProgress::default();
        progress.record_vain("job", 300, Duration::from_secs(30));
        assert!(!allows(&progress, 500, 500_000));
        assert!(allows(&progress, 500, 600_000));
    }
}
