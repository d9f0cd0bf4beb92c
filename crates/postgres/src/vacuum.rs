//! Vacuum of the tables that churn.
//!
//! Autovacuum visits a database once a minute by default. At twenty thousand jobs per second a table of a few megabytes
//! grows by a gigabyte in that time, and rarely shrinks again. So the leader vacuums a table when its dead rows
//! outnumber the live ones, which takes milliseconds. It also vacuums a table that has many more rows than the planner
//! expects, and shrinks one that is almost empty: the planner expects no rows in pages that were empty before.
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
    statement::CHURNING_TABLES,
};

/// The tables from which the path of a job removes rows.
const TABLES: [&str; 5] = ["job", "ready", "depth_delta", "depth", "settled"];

/// A table may have this many dead rows, and the planner may expect no rows where there are this many: a few pages.
const FEW_ROWS: i64 = 2_000;
/// A table with this many times the rows that the planner expects is vacuumed, which counts them.
const TOO_MANY: i64 = 10;
/// A table of fewer pages is not shrunk.
const FEW_PAGES: i64 = 1_000;

/// The pause after the first vacuum in vain. It doubles up to the limit, and is at least this many times as long as the
/// vacuum took.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(60);
const PAUSE_PER_WORK: u32 = 20;

/// The state of a table, as the server's statistics count it.
#[derive(Debug, Clone, Copy, Default)]
struct TableState {
    dead: i64,
    live: i64,
    /// How many rows the planner expects in the pages of the last vacuum. Negative before the first vacuum.
    expected: i64,
    pages: i64,
    /// Vacuums that a session requested, ever.
    vacuums: i64,
}

/// Why a table is due for a vacuum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reason {
    /// Dead rows outnumber live ones.
    DeadRows,
    /// The planner expects far too few rows.
    UncountedRows,
    /// The table has more pages than rows.
    EmptyPages,
}

impl Reason {
    const ALL: [Self; 3] = [Self::DeadRows, Self::UncountedRows, Self::EmptyPages];

    fn applies(self, table: &TableState) -> bool {
        let TableState { dead, live, expected, pages, .. } = *table;
        match self {
            Self::DeadRows => dead > live.max(FEW_ROWS),
            Self::UncountedRows => expected >= 0 && live > FEW_ROWS.max(expected.saturating_mul(TOO_MANY)),
            // After a crash of the server `live` counts from zero.
            Self::EmptyPages => pages > FEW_PAGES && live.max(expected) + dead < pages,
        }
    }

    /// What a vacuum should make smaller.
    const fn excess(self, table: &TableState) -> i64 {
        match self {
            Self::DeadRows => table.dead,
            Self::UncountedRows => table.live - table.expected,
            Self::EmptyPages => table.pages,
        }
    }
}

/// The tables whose latest vacuum was in vain, in this process.
#[derive(Debug, Default)]
pub(crate) struct VacuumProgress(Mutex<HashMap<(&'static str, Reason), VainVacuum>>);

#[derive(Debug, Clone, Copy)]
struct VainVacuum {
    /// The excess that it left.
    excess: i64,
    ended: Instant,
    pause: Duration,
}

/// Vacuums the tables that are due. Returns how many tables it cleaned.
///
/// A table that another session vacuums or alters is skipped.
pub(crate) async fn vacuum_tables(store: &PostgresStore) -> Result<usize> {
    let progress = store.vacuum_progress();
    let states = table_states(store).await?;
    let mut cleaned = 0;
    for table in TABLES {
        let Some(before) = states.get(table) else { continue };
        let Some(reason) = progress.due(table, before, Instant::now()) else { continue };
        let begun = Instant::now();
        let is_done = vacuum(store, table, reason).await;
        let after = match is_done {
            Ok(true) => table_states(store).await?.remove(table).unwrap_or(*before),
            _ => *before,
        };
        // The server skips a locked table with a warning.
        let is_skipped = matches!(is_done, Ok(true)) && after.vacuums == before.vacuums;
        let (old, new) = (reason.excess(before), reason.excess(&after));
        if is_skipped {
            tracing::debug!(table, ?reason, "vacuum skipped a locked table");
        } else if new > old - old / 10 {
            // Rows that die meanwhile are counted, too: only a vacuum that frees next to nothing is in vain.
            progress.record_vain(table, reason, new, begun.elapsed());
            tracing::debug!(table, ?reason, excess = new, "vacuum was in vain");
        } else {
            progress.record_cleaned(table, reason);
            cleaned += 1;
        }
        is_done?;
    }
    Ok(cleaned)
}

/// Vacuums a table. Returns false if the statement timeout ended the vacuum: only autovacuum has the time for it.
async fn vacuum(store: &PostgresStore, table: &str, reason: Reason) -> Result<bool> {
    // Shrinking a table locks out all sessions for a moment, and in a steady flow the space is needed again at once.
    let truncate = reason == Reason::EmptyPages;
    let sql = format!("VACUUM (SKIP_LOCKED, TRUNCATE {truncate}) orchestrix.{table}");
    match store.database().connection().await?.try_execute(&sql).await? {
        Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
            tracing::warn!(table, error = describe(&error), "vacuum was cancelled; the table is left to autovacuum");
            Ok(false)
        }
        result => result.map(|()| true).map_err(store_error),
    }
}

async fn table_states(store: &PostgresStore) -> Result<HashMap<String, TableState>> {
    let rows = store.database().query(&CHURNING_TABLES, &[&TABLES.as_slice()]).await?;
    let states = rows.iter().map(|row| {
        let state = TableState {
            dead: row.get("dead"),
            live: row.get("live"),
            expected: row.get("expected"),
            pages: row.get("pages"),
            vacuums: row.get("vacuums"),
        };
        (row.get("name"), state)
    });
    Ok(states.collect())
}

impl VacuumProgress {
    /// Why a table is due for a vacuum now, if it is.
    fn due(&self, table: &'static str, state: &TableState, now: Instant) -> Option<Reason> {
        let mut vain = self.lock();
        Reason::ALL.into_iter().find(|reason| {
            let key = (table, *reason);
            // Autovacuum removed them, so the snapshot is gone.
            if vain.get(&key).is_some_and(|vain| reason.excess(state) <= vain.excess / 2) {
                vain.remove(&key);
            }
            reason.applies(state) && vain.get(&key).is_none_or(|vain| now >= vain.ended + vain.pause)
        })
    }

    fn record_vain(&self, table: &'static str, reason: Reason, excess: i64, took: Duration) {
        let mut vain = self.lock();
        let pause = vain.get(&(table, reason)).map_or(FIRST_PAUSE, |vain| (vain.pause * 2).min(MAX_PAUSE));
        let pause = pause.max(took * PAUSE_PER_WORK);
        vain.insert((table, reason), VainVacuum { excess, ended: Instant::now(), pause });
    }

    fn record_cleaned(&self, table: &'static str, reason: Reason) {
        self.lock().remove(&(table, reason));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(&'static str, Reason), VainVacuum>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(dead: i64) -> TableState {
        TableState { dead, ..TableState::default() }
    }

    /// Whether a table with these dead rows is due some milliseconds from now.
    fn is_due(progress: &VacuumProgress, rows: i64, millis: u64) -> bool {
        progress.due("job", &dead(rows), Instant::now() + Duration::from_millis(millis)).is_some()
    }

    fn record_vain(progress: &VacuumProgress, took: Duration) {
        progress.record_vain("job", Reason::DeadRows, 3_000, took);
    }

    #[test]
    fn a_table_is_due_when_its_dead_rows_outnumber_the_live_ones() {
        let progress = VacuumProgress::default();
        assert!(!is_due(&progress, FEW_ROWS, 0));
        assert!(is_due(&progress, FEW_ROWS + 1, 0));
        let live = TableState { live: 5_000, expected: 5_000, ..dead(5_000) };
        assert!(!Reason::DeadRows.applies(&live));
        assert!(Reason::DeadRows.applies(&TableState { dead: 5_001, ..live }));
    }

    #[test]
    fn a_table_is_due_when_the_planner_expects_a_tenth_of_its_rows() {
        let due = |live, expected| Reason::UncountedRows.applies(&TableState { live, expected, ..dead(0) });
        assert_eq!([due(2_000, 0), due(2_001, 0), due(50_000, 5_000), due(50_001, 5_000)], [false, true, false, true]);
        assert!(!due(1_000_000, -1), "before the first vacuum the planner counts pages");
    }

    #[test]
    fn a_table_is_due_when_it_has_more_pages_than_rows() {
        let due = |pages, live| Reason::EmptyPages.applies(&TableState { pages, live, ..dead(500) });
        assert_eq!([due(1_000, 0), due(1_001, 0), due(1_001, 500), due(1_001, 501)], [false, true, true, false]);
        let uncounted = TableState { pages: 2_000, expected: 50_000, ..dead(0) };
        assert!(!Reason::EmptyPages.applies(&uncounted));
    }

    #[test]
    fn a_table_that_vacuum_cannot_clean_waits_until_its_dead_rows_become_fewer() {
        let progress = VacuumProgress::default();
        record_vain(&progress, Duration::ZERO);
        assert!(!is_due(&progress, 5_000, 0), "an old snapshot still holds the rows");
        assert!(progress.due("ready", &dead(5_000), Instant::now()).is_some(), "another table is not concerned");
        let other = TableState { live: 9_000, ..dead(5_000) };
        assert_eq!(progress.due("job", &other, Instant::now()), Some(Reason::UncountedRows), "nor is another reason");
        assert!(!is_due(&progress, 1_500, 0), "autovacuum has removed half of them");
        assert!(is_due(&progress, 5_000, 0));
    }

    #[test]
    fn the_pause_after_vacuums_in_vain_grows_to_a_limit_and_ends_with_the_first_success() {
        let progress = VacuumProgress::default();
        for pause in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
            record_vain(&progress, Duration::ZERO);
            assert!(!is_due(&progress, 5_000, pause / 2));
            assert!(is_due(&progress, 5_000, pause));
        }
        progress.record_cleaned("job", Reason::DeadRows);
        assert!(is_due(&progress, 5_000, 0));
        record_vain(&progress, Duration::ZERO);
        assert!(is_due(&progress, 5_000, 500));
    }

    #[test]
    fn a_vacuum_that_takes_long_in_vain_takes_a_small_share_of_the_time() {
        let progress = VacuumProgress::default();
        record_vain(&progress, Duration::from_secs(30));
        assert!(!is_due(&progress, 5_000, 500_000));
        assert!(is_due(&progress, 5_000, 600_000));
    }
}
