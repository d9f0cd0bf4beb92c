//! Whether schema, role and connections are sufficient for Orchestrix.

use orchestrix_postgres::{
    SCHEMA_VERSION,
    diagnose::{Connections, MissingPrivileges, NotifyCheck, Partitions},
};

use crate::check::{Check, join_first, millis};

/// The most connections of one process: its pool, the dedicated connections of its heartbeats, and the listener.
const PER_PROCESS: u64 = 17;
/// With fewer free connections the next process cannot connect.
const MIN_FREE: u64 = 3;

pub(super) fn migrations(version: i32) -> Check {
    const NAME: &str = "migrations";
    match SCHEMA_VERSION - version {
        0 => Check::ok(NAME, format!("the schema is at version {version}, as this program requires")),
        _ if version == 0 => Check::problem(
            NAME,
            "the database has no Orchestrix schema",
            "check --database; `orchestrix migrate` creates the schema, and so does the first server or worker",
        ),
        pending if pending > 0 => Check::problem(
            NAME,
            format!("the schema is at version {version}, this program needs {SCHEMA_VERSION}"),
            "run `orchestrix migrate`",
        ),
        _ => Check::problem(
            NAME,
            format!("the schema is at version {version}, newer than this program, which supports {SCHEMA_VERSION}"),
            "use a newer orchestrix: this one refuses to open the database",
        ),
    }
}

pub(super) fn connections(found: &Connections) -> Check {
    const NAME: &str = "connections";
    let usable = found.max.saturating_sub(found.reserved);
    let free = usable.saturating_sub(found.used);
    let detail =
        format!("{} of {usable} connections are in use, {} of them by Orchestrix", found.used, found.orchestrix);
    let advice = format!(
        "raise max_connections, use a pooler for other programs, or run fewer processes: each uses up to {PER_PROCESS}"
    );
    match free {
        0..MIN_FREE => Check::problem(NAME, format!("{detail}: the next process cannot connect"), advice),
        MIN_FREE..PER_PROCESS => Check::warning(NAME, format!("{detail}: not enough for one more process"), advice),
        _ => Check::ok(NAME, detail),
    }
}

pub(super) fn listening(found: NotifyCheck) -> Check {
    const NAME: &str = "listen";
    match found {
        NotifyCheck::Delivered(after) => {
            Check::ok(NAME, format!("LISTEN works: a notification took {}", millis(after)))
        }
        NotifyCheck::Pooled => Check::warning(
            NAME,
            "the connection goes through a pooler in transaction mode, without LISTEN: workers find new jobs by polling",
            "if that is too slow, use the database's own address in --database of servers and workers",
        ),
        NotifyCheck::TimedOut => Check::warning(
            NAME,
            "LISTEN receives nothing, so workers find new jobs by polling",
            "if there is a pooler or a proxy, use the database's own address in --database, or append ?pgbouncer=true",
        ),
    }
}

/// Evaluates the privileges that the role lacks. `has_schema` says whether the schema exists.
pub(super) fn privileges(missing: &[MissingPrivileges], has_schema: bool) -> Check {
    const NAME: &str = "privileges";
    let describe = |lack: &MissingPrivileges, privileges: &[&String]| {
        let privileges: Vec<&str> = privileges.iter().map(|privilege| privilege.as_str()).collect();
        format!("{} on {} {}", privileges.join(" and "), lack.kind, lack.name)
    };
    // Only migrations and the leader, which creates partitions, need ownership and CREATE.
    let (mut to_work, mut to_lead) = (Vec::new(), Vec::new());
    for lack in missing.iter().filter(|lack| !has_schema || lack.kind != "database") {
        let (ddl, dml): (Vec<&String>, Vec<&String>) = lack
            .privileges
            .iter()
            .partition(|privilege| has_schema && matches!(privilege.as_str(), "OWNER" | "CREATE"));
        if !dml.is_empty() {
            to_work.push(describe(lack, &dml));
        }
        if !ddl.is_empty() {
            to_lead.push(describe(lack, &ddl));
        }
    }
    if !to_work.is_empty() {
        let advice = "GRANT them, or use the role that owns the schema in --database";
        return Check::problem(NAME, format!("this role lacks {}", join_first(to_work)), advice);
    }
    if !to_lead.is_empty() {
        return Check::warning(
            NAME,
            format!(
                "this role can process jobs, but cannot migrate or manage partitions as the leader: it lacks {}",
                join_first(to_lead)
            ),
            "run one process as the role that owns the schema, and start the others with --no-coordinator",
        );
    }
    Check::ok(NAME, "this role has all privileges that are needed")
}

pub(super) fn partitions(tables: &[Partitions]) -> Check {
    const NAME: &str = "partitions";
    let of = |which: fn(&Partitions) -> bool| -> Vec<String> {
        tables.iter().filter(|table| which(table)).map(|table| table.table.clone()).collect()
    };
    let (today, tomorrow) = (of(|table| !table.today), of(|table| !table.tomorrow));
    let default_used = of(|table| table.default_used);
    let advice = "the leader creates partitions: check that there is one, that its role owns the tables, and its log";
    if !today.is_empty() {
        let detail = format!(
            "{} has no partition for today: rows go to the default partition, where retention is slow",
            join_first(today)
        );
        return Check::warning(NAME, detail, advice);
    }
    if !tomorrow.is_empty() {
        let detail = format!("{} has no partition for tomorrow yet", join_first(tomorrow));
        return Check::warning(NAME, detail, advice);
    }
    if !default_used.is_empty() {
        return Check::note(
            NAME,
            format!("the default partition of {} holds rows, from days without a partition", join_first(default_used)),
            "no action needed: retention deletes them row by row",
        );
    }
    Check::ok(NAME, "today and tomorrow have partitions, and the default partitions are empty")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::check::Status;

    fn assert_is(check: &Check, status: Status, words: &str) {
        assert!(check.status == status && check.detail.contains(words), "not {status} with {words:?}: {check:?}");
    }

    #[test]
    fn a_schema_that_is_missing_old_or_too_new_is_a_problem() {
        assert_is(&migrations(SCHEMA_VERSION), Status::Ok, "as this program requires");
        assert_is(&migrations(0), Status::Problem, "no Orchestrix schema");
        assert_is(&migrations(1), Status::Problem, "is at version 1, this program needs");
        assert_is(&migrations(SCHEMA_VERSION + 1), Status::Problem, "newer than this program");
    }

    #[test]
    fn few_free_connections_are_reported() {
        let left = |free: u64| connections(&Connections { max: 100, reserved: 3, used: 97 - free, orchestrix: 5 });
        assert_is(&left(17), Status::Ok, "80 of 97 connections are in use, 5 of them by Orchestrix");
        assert_is(&left(16), Status::Warning, "not enough for one more process");
        assert_is(&left(2), Status::Problem, "cannot connect");
        let over = Connections { max: 10, reserved: 3, used: 9, orchestrix: 0 };
        assert_eq!(connections(&over).status, Status::Problem);
    }

    #[test]
    fn a_pooler_is_distinguished_from_a_silent_listen() {
        assert_is(&listening(NotifyCheck::Delivered(Duration::from_millis(2))), Status::Ok, "took 2.0 ms");
        assert_is(&listening(NotifyCheck::Pooled), Status::Warning, "a pooler in transaction mode");
        assert_is(&listening(NotifyCheck::TimedOut), Status::Warning, "receives nothing");
    }

    #[test]
    fn privileges_that_only_a_leader_needs_are_a_warning() {
        let lack = |kind: &str, privileges: &[&str]| MissingPrivileges {
            kind: kind.into(),
            name: "x".into(),
            privileges: privileges.iter().map(|privilege| (*privilege).to_owned()).collect(),
        };
        assert_eq!(privileges(&[], true).status, Status::Ok);
        assert_eq!(privileges(&[lack("database", &["CREATE"])], true).status, Status::Ok);
        assert_is(&privileges(&[lack("database", &["CREATE"])], false), Status::Problem, "lacks CREATE on database x");
        let some = [lack("schema", &["CREATE"]), lack("table", &["OWNER"])];
        assert_is(&privileges(&some, true), Status::Warning, "lacks CREATE on schema x, OWNER on table x");
        let more = [lack("table", &["INSERT", "UPDATE", "OWNER"])];
        assert_is(&privileges(&more, true), Status::Problem, "this role lacks INSERT and UPDATE on table x");
    }

    #[test]
    fn missing_partitions_are_a_warning() {
        let table = |today, tomorrow, default_used| Partitions { table: "log".into(), today, tomorrow, default_used };
        assert_is(&partitions(&[table(true, true, false)]), Status::Ok, "today and tomorrow");
        assert_is(&partitions(&[table(false, true, false)]), Status::Warning, "log has no partition for today");
        assert_is(&partitions(&[table(true, false, true)]), Status::Warning, "for tomorrow");
        assert_is(&partitions(&[table(true, true, true)]), Status::Note, "default partition of log holds rows");
    }
}
