//! What vacuum has left to do, and who keeps it from it.

use std::time::Duration;

use orchestrix_postgres::diagnose::{Holder, HolderKind, Table};

use super::super::check::{Check, bytes, listed};
use crate::times;

/// Fewer dead rows than this slow nothing down.
const FEW: u64 = 20_000;
/// Autovacuum is behind when there are so many times more than it begins at.
const BEHIND: f64 = 3.0;
/// A transaction this old is worth a word, or a warning.
const OPEN: Duration = Duration::from_secs(2);
const OLD: Duration = Duration::from_secs(60);
/// A slot or standby holds on to something old when so many transactions have passed since.
const MANY_TRANSACTIONS: i32 = 1_000_000;
/// So much log that a slot holds back is worth a warning.
const MUCH_LOG: u64 = 1024 * 1024 * 1024;

/// Judges tables, which come with the most dead rows first.
pub(super) fn tables(tables: &[Table]) -> Vec<Check> {
    let disabled: Vec<String> =
        tables.iter().filter(|table| !table.autovacuum).map(|table| table.name.clone()).collect();
    let mut checks = Vec::new();
    if !disabled.is_empty() {
        let first = &disabled[0];
        checks.push(Check::warning(
            "table-autovacuum",
            format!("autovacuum is turned off for {}: their dead rows pile up", listed(disabled.iter().cloned())),
            format!("ALTER TABLE orchestrix.{first} RESET (autovacuum_enabled)"),
        ));
    }
    checks.push(dead_rows(tables));
    checks
}

fn dead_rows(tables: &[Table]) -> Check {
    const NAME: &str = "dead-rows";
    let behind = |table: &&Table| table.dead >= FEW && table.dead as f64 > BEHIND * table.begins_at;
    let shown = |table: &Table| {
        let vacuumed = table.vacuumed.map_or_else(|| "never".into(), |ago| format!("{} ago", times::brief(ago)));
        format!("{} has {} beside {} live ones (vacuumed {vacuumed})", table.name, table.dead, table.live)
    };
    let late: Vec<String> = tables.iter().filter(behind).map(shown).collect();
    if late.is_empty() {
        let most = tables.first().filter(|table| table.dead > 0);
        let most = most.map_or_else(|| "none".into(), |table| format!("at most {}, in {}", table.dead, table.name));
        return Check::ok(NAME, format!("dead rows: {most}"));
    }
    Check::warning(
        NAME,
        format!("vacuum does not keep up: {}", listed(late)),
        "see old-transactions; if nobody holds it up, lower autovacuum_vacuum_cost_delay or raise autovacuum_max_workers",
    )
}

/// Judges those who hold vacuum up. Without `sees_all` those of other roles are missing among them.
pub(super) fn holders(holders: &[Holder], sees_all: bool) -> Vec<Check> {
    let mut checks = vec![transactions(holders, sees_all)];
    checks.extend(slots(holders));
    checks
}

fn transactions(holders: &[Holder], sees_all: bool) -> Check {
    const NAME: &str = "old-transactions";
    let aged = holders.iter().filter_map(|holder| Some((holder.age?, holder)));
    let aged: Vec<(Duration, &Holder)> = aged.filter(|(age, _)| *age >= OPEN).collect();
    let Some((oldest, first)) = aged.iter().max_by_key(|(age, _)| *age) else {
        return match sees_all {
            true => Check::ok(NAME, "no transaction keeps vacuum from removing dead rows"),
            false => Check::note(
                NAME,
                "no transaction of this role keeps vacuum from removing dead rows; those of others cannot be seen",
                "GRANT pg_read_all_stats to this role, or ask as another",
            ),
        };
    };
    let shown = listed(aged.iter().map(|(age, holder)| describe(holder, *age)));
    let detail = format!("keeps vacuum from removing what has died since: {shown}");
    let advice = match (first.kind, first.pid) {
        (HolderKind::Prepared, _) => format!("COMMIT PREPARED or ROLLBACK PREPARED '{}'", first.name),
        (_, Some(pid)) => format!("end it where it was begun, or: SELECT pg_terminate_backend({pid})"),
        _ => "end it where it was begun".into(),
    };
    match *oldest >= OLD {
        true => Check::warning(NAME, detail, advice),
        false => Check::note(NAME, detail, format!("it may be about to end; if it stays: {advice}")),
    }
}

fn describe(holder: &Holder, age: Duration) -> String {
    let since = times::brief(age);
    match (holder.kind, holder.pid) {
        (HolderKind::Prepared, _) => format!("prepared transaction {:?} of {}, for {since}", holder.name, holder.owner),
        (_, Some(pid)) => format!("{} of {} (pid {pid}, {}), for {since}", holder.name, holder.owner, holder.state),
        _ => format!("{} of {}, for {since}", holder.name, holder.owner),
    }
}

fn slots(holders: &[Holder]) -> Vec<Check> {
    let mut checks = Vec::new();
    for holder in holders {
        let old = holder.transactions.is_some_and(|n| n >= MANY_TRANSACTIONS);
        match holder.kind {
            HolderKind::Slot => {
                let much = holder.retained.filter(|n| *n >= MUCH_LOG);
                let inactive = holder.state == "inactive";
                let Some(why) = slot_trouble(holder, old, much, inactive) else { continue };
                checks.push(Check::warning(
                    "replication-slots",
                    format!("slot {} ({}) {why}", holder.name, holder.state),
                    format!(
                        "let its reader catch up; if there is none any more: SELECT pg_drop_replication_slot('{}')",
                        holder.name
                    ),
                ));
            }
            HolderKind::Standby if old => checks.push(Check::warning(
                "standbys",
                format!(
                    "the standby {} reads what is {} transactions old",
                    holder.name,
                    holder.transactions.unwrap_or(0)
                ),
                "end its long queries, or turn hot_standby_feedback off there",
            )),
            _ => {}
        }
    }
    if checks.is_empty() {
        checks.push(Check::ok("replication-slots", "no slot and no standby holds anything up"));
    }
    checks
}

fn slot_trouble(slot: &Holder, old: bool, much: Option<u64>, inactive: bool) -> Option<String> {
    match (much, slot.transactions) {
        (Some(n), _) => Some(format!("holds back {} of log, which fills the disk", bytes(n))),
        (None, Some(n)) if old => Some(format!("keeps vacuum from what died in the last {n} transactions")),
        (None, Some(_)) if inactive => Some("has no reader and keeps vacuum from removing dead rows".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
