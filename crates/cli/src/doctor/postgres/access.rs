//! Whether the schema, the role and the connections are what processes need.

use orchestrix_postgres::{
    SCHEMA_VERSION,
    diagnose::{Connections, Days, Lack, Listening},
};

use super::super::check::{Check, listed, millis};

/// What one process takes at most: its pool, what its heartbeats have for themselves, and the one that listens.
const PROCESS: u64 = 17;
/// With fewer nobody gets in.
const LAST: u64 = 3;

pub(super) fn migrations(version: i32) -> Check {
    const NAME: &str = "migrations";
    match SCHEMA_VERSION - version {
        0 => Check::ok(NAME, format!("the schema is at version {version}, as this program wants it")),
        _ if version == 0 => Check::problem(
            NAME,
            "there is nothing of Orchestrix in this database yet",
            "is it the right one? `orchestrix migrate` makes the schema, and so does whatever starts first",
        ),
        pending if pending > 0 => Check::problem(
            NAME,
            format!("the schema is at version {version}, this program needs {SCHEMA_VERSION}"),
            "run `orchestrix migrate`",
        ),
        _ => Check::problem(
            NAME,
            format!("the schema is at version {version}, newer than this program, which knows {SCHEMA_VERSION}"),
            "run a newer orchestrix: this one refuses to touch the database",
        ),
    }
}

pub(super) fn connections(found: &Connections) -> Check {
    const NAME: &str = "connections";
    let usable = found.most.saturating_sub(found.reserved);
    let free = usable.saturating_sub(found.taken);
    let detail = format!("{} of {usable} connections are taken, {} of them by Orchestrix", found.taken, found.ours);
    let advice = format!(
        "raise max_connections, give other programs a pooler, or run fewer processes: each takes up to {PROCESS}"
    );
    match free {
        0..LAST => Check::problem(NAME, format!("{detail}: the next process will be turned away"), advice),
        LAST..PROCESS => Check::warning(NAME, format!("{detail}: there is no room for one more process"), advice),
        _ => Check::ok(NAME, detail),
    }
}

pub(super) fn listening(found: Listening) -> Check {
    const NAME: &str = "listen";
    match found {
        Listening::Hears(after) => {
            Check::ok(NAME, format!("processes hear of each other's jobs: a word took {}", millis(after)))
        }
        Listening::Pooled => Check::warning(
            NAME,
            "a pooler in transaction mode is in between: LISTEN does not work through it, so new jobs are found by polling",
            "where that is too slow, name the database itself in --database of servers and workers",
        ),
        Listening::Deaf => Check::warning(
            NAME,
            "LISTEN hears nothing, so new jobs are found by polling",
            "is a pooler or a proxy in between? name the database itself in --database of servers and workers, or end it with ?pgbouncer=true",
        ),
    }
}

/// Judges what the role may not do; `ours` is whether there is a schema yet.
pub(super) fn privileges(lacks: &[Lack], ours: bool) -> Check {
    const NAME: &str = "privileges";
    let shown = |lack: &Lack, privileges: &[&String]| {
        let privileges: Vec<&str> = privileges.iter().map(|privilege| privilege.as_str()).collect();
        format!("{} on {} {}", privileges.join(" and "), lack.kind, lack.name)
    };
    // To own a table is more than a privilege, and to make one is only needed by whoever makes partitions and migrates.
    let (mut needed, mut wanted) = (Vec::new(), Vec::new());
    for lack in lacks.iter().filter(|lack| !ours || lack.kind != "database") {
        let (to_make, to_work): (Vec<&String>, Vec<&String>) =
            lack.privileges.iter().partition(|privilege| ours && matches!(privilege.as_str(), "OWNER" | "CREATE"));
        if !to_work.is_empty() {
            needed.push(shown(lack, &to_work));
        }
        if !to_make.is_empty() {
            wanted.push(shown(lack, &to_make));
        }
    }
    if !needed.is_empty() {
        let advice = "GRANT them, or name the role that owns the schema in --database";
        return Check::problem(NAME, format!("this role lacks {}", listed(needed)), advice);
    }
    if !wanted.is_empty() {
        return Check::warning(
            NAME,
            format!(
                "this role can work on jobs but not migrate, and as leader not make or drop days: it lacks {}",
                listed(wanted)
            ),
            "let one process that may lead use the role that owns the schema, and start the others with --no-coordinator",
        );
    }
    Check::ok(NAME, "this role may do all that is needed")
}

pub(super) fn days(days: &[Days]) -> Check {
    const NAME: &str = "partitions";
    let of = |which: fn(&Days) -> bool| -> Vec<String> {
        days.iter().filter(|days| which(days)).map(|days| days.table.clone()).collect()
    };
    let (today, tomorrow, taken) = (of(|days| !days.today), of(|days| !days.tomorrow), of(|days| days.default_taken));
    let advice = "the leader makes them: is there one, does it own the tables, and what does its log say?";
    if !today.is_empty() {
        let detail = format!(
            "{} has no partition for today: rows go to the default one, where retention is slow",
            listed(today)
        );
        return Check::warning(NAME, detail, advice);
    }
    if !tomorrow.is_empty() {
        let detail = format!("{} has no partition for tomorrow yet", listed(tomorrow));
        return Check::warning(NAME, detail, advice);
    }
    if !taken.is_empty() {
        return Check::note(
            NAME,
            format!("the default partition of {} holds rows, of days that had none", listed(taken)),
            "nothing need be done: they go row by row when their time has come",
        );
    }
    Check::ok(NAME, "today and tomorrow have theirs, and the default ones are empty")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::super::check::Status, *};

    fn assert_is(check: &Check, status: Status, words: &str) {
        assert!(check.status == status && check.detail.contains(words), "not {status} with {words:?}: {check:?}");
    }

    #[test]
    fn a_schema_is_right_missing_behind_or_ahead() {
        assert_is(&migrations(SCHEMA_VERSION), Status::Ok, "as this program wants it");
        assert_is(&migrations(0), Status::Problem, "nothing of Orchestrix");
        assert_is(&migrations(1), Status::Problem, "is at version 1, this program needs");
        assert_is(&migrations(SCHEMA_VERSION + 1), Status::Problem, "newer than this program");
    }

    #[test]
    fn connections_count_by_what_is_left() {
        let left = |free: u64| connections(&Connections { most: 100, reserved: 3, taken: 97 - free, ours: 5 });
        assert_is(&left(17), Status::Ok, "80 of 97 connections are taken, 5 of them by Orchestrix");
        assert_is(&left(16), Status::Warning, "no room for one more process");
        assert_is(&left(2), Status::Problem, "turned away");
        let over = Connections { most: 10, reserved: 3, taken: 9, ours: 0 };
        assert_eq!(connections(&over).status, Status::Problem);
    }

    #[test]
    fn a_pooler_is_told_from_silence() {
        assert_is(&listening(Listening::Hears(Duration::from_millis(2))), Status::Ok, "took 2.0 ms");
        assert_is(&listening(Listening::Pooled), Status::Warning, "a pooler in transaction mode");
        assert_is(&listening(Listening::Deaf), Status::Warning, "hears nothing");
    }

    #[test]
    fn what_is_needed_is_told_from_what_only_a_leader_needs() {
        let lack = |kind: &str, privileges: &[&str]| Lack {
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
    fn days_want_their_places() {
        let table = |today, tomorrow, default_taken| Days { table: "log".into(), today, tomorrow, default_taken };
        assert_is(&days(&[table(true, true, false)]), Status::Ok, "today and tomorrow");
        assert_is(&days(&[table(false, true, false)]), Status::Warning, "log has no partition for today");
        assert_is(&days(&[table(true, false, true)]), Status::Warning, "for tomorrow");
        assert_is(&days(&[table(true, true, true)]), Status::Note, "default partition of log holds rows");
    }
}
