//! Dead rows, and the transactions, slots and standbys that keep vacuum from removing them.

use std::time::Duration;

use orchestrix_postgres::diagnose::{BlockerKind, Table, VacuumBlocker};

use crate::check::{Check, brief, bytes, join_first};

/// Fewer dead rows do not slow anything down.
const FEW: u64 = 20_000;
/// Autovacuum is behind when a table has this many times its threshold of dead rows.
const BEHIND_FACTOR: f64 = 3.0;
/// The age of a transaction that is worth a note, and a warning.
const OPEN: Duration = Duration::from_secs(2);
const OLD: Duration = Duration::from_secs(60);
/// A slot or standby is behind when it holds back this many transactions.
const MANY_TRANSACTIONS: i32 = 1_000_000;
/// A slot that retains this much write-ahead log is worth a warning.
const MUCH_WAL: u64 = 1024 * 1024 * 1024;

/// Evaluates tables, which are sorted by dead rows, most first.
pub(super) fn tables(tables: &[Table]) -> Vec<Check> {
    let disabled: Vec<String> =
        tables.iter().filter(|table| !table.autovacuum).map(|table| table.name.clone()).collect();
    let mut checks = Vec::new();
    if !disabled.is_empty() {
        let first = &disabled[0];
        checks.push(Check::warning(
            "table-autovacuum",
            format!("autovacuum is turned off for {}: dead rows accumulate", join_first(disabled.iter().cloned())),
            format!("run ALTER TABLE orchestrix.{first} RESET (autovacuum_enabled)"),
        ));
    }
    checks.push(dead_rows(tables));
    checks
}

fn dead_rows(tables: &[Table]) -> Check {
    const NAME: &str = "dead-rows";
    let behind = |table: &&Table| table.dead >= FEW && table.dead as f64 > BEHIND_FACTOR * table.vacuum_threshold;
    let describe = |table: &Table| {
        let vacuumed = table.vacuumed.map_or_else(|| "never".into(), |ago| format!("{} ago", brief(ago)));
        format!("{} has {} dead and {} live rows (last vacuum: {vacuumed})", table.name, table.dead, table.live)
    };
    let late: Vec<String> = tables.iter().filter(behind).map(describe).collect();
    if late.is_empty() {
        let most = tables.first().filter(|table| table.dead > 0);
        let most = most.map_or_else(|| "none".into(), |table| format!("at most {}, in {}", table.dead, table.name));
        return Check::ok(NAME, format!("dead rows: {most}"));
    }
    Check::warning(
        NAME,
        format!("vacuum does not keep up: {}", join_first(late)),
        "see old-transactions; if there are none, lower autovacuum_vacuum_cost_delay or raise autovacuum_max_workers",
    )
}

/// Evaluates what holds vacuum back. Without `sees_all` the blockers of other roles are missing.
pub(super) fn blockers(blockers: &[VacuumBlocker], sees_all: bool) -> Vec<Check> {
    let mut checks = vec![transactions(blockers, sees_all)];
    checks.extend(slots(blockers));
    checks
}

fn transactions(blockers: &[VacuumBlocker], sees_all: bool) -> Check {
    const NAME: &str = "old-transactions";
    let aged = blockers.iter().filter_map(|blocker| Some((blocker.age?, blocker)));
    let aged: Vec<(Duration, &VacuumBlocker)> = aged.filter(|(age, _)| *age >= OPEN).collect();
    let Some((oldest, first)) = aged.iter().max_by_key(|(age, _)| *age) else {
        return match sees_all {
            true => Check::ok(NAME, "no old transaction holds vacuum back"),
            false => Check::note(
                NAME,
                "no old transaction of this role holds vacuum back; those of other roles cannot be seen",
                "GRANT pg_read_all_stats to this role, or run the doctor as another role",
            ),
        };
    };
    let shown = join_first(aged.iter().map(|(age, blocker)| describe(blocker, *age)));
    let detail = format!("old transactions keep vacuum from removing dead rows: {shown}");
    let advice = match (first.kind, first.pid) {
        (BlockerKind::Prepared, _) => format!("run COMMIT PREPARED or ROLLBACK PREPARED '{}'", first.name),
        (_, Some(pid)) => format!("end it in the program that started it, or run SELECT pg_terminate_backend({pid})"),
        _ => "end it in the program that started it".into(),
    };
    match *oldest >= OLD {
        true => Check::warning(NAME, detail, advice),
        false => Check::note(NAME, detail, format!("it may end by itself; if not: {advice}")),
    }
}

fn describe(blocker: &VacuumBlocker, age: Duration) -> String {
    let since = brief(age);
    match (blocker.kind, blocker.pid) {
        (BlockerKind::Prepared, _) => {
            format!("prepared transaction {:?} of {}, for {since}", blocker.name, blocker.owner)
        }
        (_, Some(pid)) => format!("{} of {} (pid {pid}, {}), for {since}", blocker.name, blocker.owner, blocker.state),
        _ => format!("{} of {}, for {since}", blocker.name, blocker.owner),
    }
}

fn slots(blockers: &[VacuumBlocker]) -> Vec<Check> {
    let mut checks = Vec::new();
    for blocker in blockers {
        let old = blocker.transactions.is_some_and(|n| n >= MANY_TRANSACTIONS);
        match blocker.kind {
            BlockerKind::Slot => {
                let much_wal = blocker.retained.filter(|n| *n >= MUCH_WAL);
                let inactive = blocker.state == "inactive";
                let Some(why) = slot_problem(blocker, old, much_wal, inactive) else { continue };
                checks.push(Check::warning(
                    "replication-slots",
                    format!("slot {} ({}) {why}", blocker.name, blocker.state),
                    format!(
                        "let its consumer catch up; if it no longer has one, run SELECT pg_drop_replication_slot('{}')",
                        blocker.name
                    ),
                ));
            }
            BlockerKind::Standby if old => checks.push(Check::warning(
                "standbys",
                format!(
                    "the standby {} holds vacuum back by {} transactions",
                    blocker.name,
                    blocker.transactions.unwrap_or(0)
                ),
                "end its long queries, or turn hot_standby_feedback off there",
            )),
            _ => {}
        }
    }
    if checks.is_empty() {
        checks.push(Check::ok("replication-slots", "no slot and no standby holds vacuum back"));
    }
    checks
}

fn slot_problem(slot: &VacuumBlocker, old: bool, much_wal: Option<u64>, inactive: bool) -> Option<String> {
    match (much_wal, slot.transactions) {
        (Some(n), _) => Some(format!("retains {} of write-ahead log, which fills the disk", bytes(n))),
        (None, Some(n)) if old => Some(format!("holds vacuum back by {n} transactions")),
        (None, Some(_)) if inactive => Some("has no consumer and holds vacuum back".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
