//! Settings of the server and the role that Orchestrix depends on.

use std::collections::BTreeMap;

use orchestrix_postgres::diagnose::Setting;

use crate::check::{Check, bytes};

/// The settings that are checked.
pub(super) const NAMES: &[&str] = &[
    "autovacuum",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "fsync",
    "full_page_writes",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "lock_timeout",
    "max_wal_size",
    "shared_buffers",
    "statement_timeout",
    "synchronous_commit",
    "track_counts",
    "transaction_timeout",
];

/// The server's default for `shared_buffers`: worth a note if it is less than a quarter of the data.
const DEFAULT_BUFFERS: u64 = 128 * 1024 * 1024;
const BUFFERS_SHARE: u64 = 4;
/// The server's default for `max_wal_size`.
const DEFAULT_WAL: u64 = 1024 * 1024 * 1024;

/// Evaluates the settings. `size` is the size of the database in bytes.
pub(super) fn evaluate(settings: &[Setting], size: u64) -> Vec<Check> {
    let settings: Settings<'_> = settings.iter().map(|setting| (setting.name.as_str(), setting)).collect();
    let mut checks = vec![durability(&settings), writes(&settings), autovacuum(&settings), memory(&settings, size)];
    checks.push(timeouts(&settings));
    checks
}

type Settings<'a> = BTreeMap<&'a str, &'a Setting>;

fn is(settings: &Settings<'_>, name: &str, value: &str) -> bool {
    settings.get(name).is_some_and(|setting| setting.value == value)
}

fn durability(settings: &Settings<'_>) -> Check {
    const NAME: &str = "durability";
    let off: Vec<&str> = ["fsync", "full_page_writes", "synchronous_commit"]
        .into_iter()
        .filter(|name| is(settings, name, "off"))
        .collect();
    if off.is_empty() {
        return Check::ok(NAME, "acknowledged jobs are on disk: fsync, full_page_writes and synchronous_commit are on");
    }
    let verb = if off.len() == 1 { "is" } else { "are" };
    Check::problem(
        NAME,
        format!("{} {verb} off: acknowledged jobs may be lost when the server or the machine crashes", off.join(", ")),
        format!("set {} = on, in postgresql.conf or in the settings of the role or database", off.join(" = on, ")),
    )
}

fn writes(settings: &Settings<'_>) -> Check {
    const NAME: &str = "transactions";
    if is(settings, "default_transaction_read_only", "on") {
        return Check::problem(
            NAME,
            "transactions start read-only (default_transaction_read_only): no job can be enqueued or finished",
            "turn it off for this role and database, or use a server that takes writes",
        );
    }
    match settings.get("default_transaction_isolation") {
        Some(setting) if setting.value != "read committed" => Check::note(
            NAME,
            format!("the default isolation level is {}; Orchestrix sets read committed itself", setting.value),
            "behind a pooler, set read committed for this role: the fencing of leases relies on it",
        ),
        _ => Check::ok(NAME, "transactions are read committed and may write"),
    }
}

fn autovacuum(settings: &Settings<'_>) -> Check {
    const NAME: &str = "autovacuum";
    match ["autovacuum", "track_counts"].into_iter().find(|name| is(settings, name, "off")) {
        Some(name) => Check::problem(
            NAME,
            format!("{name} is off, so no table is vacuumed: dead rows accumulate and claims become slower and slower"),
            format!("set {name} = on in postgresql.conf and reload"),
        ),
        None => Check::ok(NAME, "on"),
    }
}

fn memory(settings: &Settings<'_>, size: u64) -> Check {
    const NAME: &str = "memory";
    let [buffers, wal] = ["shared_buffers", "max_wal_size"].map(|name| settings.get(name).and_then(|it| in_bytes(it)));
    let shown = |name: &str, value: Option<u64>| format!("{name} {}", value.map_or_else(|| "unknown".into(), bytes));
    let detail = format!("{}, {}", shown("shared_buffers", buffers), shown("max_wal_size", wal));
    if buffers.is_some_and(|buffers| buffers <= DEFAULT_BUFFERS && size / BUFFERS_SHARE > buffers) {
        return Check::note(
            NAME,
            format!("{detail}; the database has {}", bytes(size)),
            "on a dedicated server, set shared_buffers to a quarter of the memory",
        );
    }
    if wal.is_some_and(|wal| wal < DEFAULT_WAL) {
        let advice =
            "raise max_wal_size to 1GB or more: a small one causes frequent checkpoints, and pauses, under load";
        return Check::note(NAME, detail, advice);
    }
    Check::ok(NAME, detail)
}

fn timeouts(settings: &Settings<'_>) -> Check {
    const NAME: &str = "timeouts";
    let set = |name: &str| settings.get(name).copied().filter(|setting| setting.value != "0");
    if let Some(setting) = set("idle_session_timeout") {
        return Check::warning(
            NAME,
            format!(
                "idle_session_timeout is {}: the server closes idle connections, and the one that listens for new jobs",
                shown(setting)
            ),
            "run ALTER ROLE … SET idle_session_timeout = 0 for the role of Orchestrix",
        );
    }
    let names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"];
    let limits: Vec<String> = names.iter().filter_map(|name| Some(format!("{name} {}", shown(set(name)?)))).collect();
    if limits.is_empty() {
        return Check::ok(NAME, "this role has no timeouts of its own; Orchestrix sets its own on every connection");
    }
    Check::note(
        NAME,
        format!("this role has {}; Orchestrix sets its own timeouts on every connection", limits.join(", ")),
        "they apply behind a pooler, and in your own transactions that enqueue jobs: allow at least 10 s there",
    )
}

fn shown(setting: &Setting) -> String {
    format!("{}{}", setting.value, setting.unit.as_deref().unwrap_or_default())
}

fn in_bytes(setting: &Setting) -> Option<u64> {
    let unit = match setting.unit.as_deref()? {
        "B" => 1,
        "kB" => 1024,
        "8kB" => 8 * 1024,
        "MB" => 1024 * 1024,
        "GB" => 1024 * 1024 * 1024,
        _ => return None,
    };
    setting.value.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn setting(name: &str, value: &str, unit: Option<&str>) -> Setting {
        Setting { name: name.into(), value: value.into(), unit: unit.map(Into::into) }
    }

    fn of(name: &'static str, settings: &[(&str, &str, Option<&str>)]) -> Check {
        let settings: Vec<Setting> = settings.iter().map(|(name, value, unit)| setting(name, value, *unit)).collect();
        evaluate(&settings, 10 << 30).into_iter().find(|check| check.name == name).unwrap()
    }

    #[test]
    fn every_setting_that_can_lose_acknowledged_jobs_is_named() {
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            assert_eq!(of("durability", &[(name, "on", None)]).status, Status::Ok);
            let check = of("durability", &[(name, "off", None)]);
            assert_eq!(check.status, Status::Problem);
            assert!(check.detail.starts_with(&format!("{name} is off: acknowledged jobs may be lost")));
            assert!(check.advice.unwrap().contains(&format!("set {name} = on")));
        }
        let two = of("durability", &[("fsync", "off", None), ("synchronous_commit", "off", None)]);
        assert!(two.detail.starts_with("fsync, synchronous_commit are off"), "{two:?}");
        assert_eq!(of("durability", &[("synchronous_commit", "remote_apply", None)]).status, Status::Ok);
    }

    #[test]
    fn a_read_only_role_is_a_problem() {
        assert_eq!(of("transactions", &[]).status, Status::Ok);
        assert_eq!(of("transactions", &[("default_transaction_read_only", "on", None)]).status, Status::Problem);
        let serial = [("default_transaction_isolation", "serializable", None)];
        assert_eq!(of("transactions", &serial).status, Status::Note);
    }

    #[test]
    fn autovacuum_and_track_counts_must_be_on() {
        assert_eq!(of("autovacuum", &[("autovacuum", "on", None), ("track_counts", "on", None)]).status, Status::Ok);
        for name in ["autovacuum", "track_counts"] {
            let check = of("autovacuum", &[(name, "off", None)]);
            assert!(check.status == Status::Problem && check.detail.starts_with(name), "{check:?}");
        }
    }

    #[test]
    fn default_memory_settings_are_reported_for_a_large_database() {
        let buffers = ("shared_buffers", "16384", Some("8kB"));
        let check = of("memory", &[buffers, ("max_wal_size", "1024", Some("MB"))]);
        assert!(check.status == Status::Note && check.detail.contains("the database has 10.0 GiB"), "{check:?}");
        let settings = [setting("shared_buffers", "16384", Some("8kB"))];
        assert_eq!(evaluate(&settings, 1 << 20)[3].status, Status::Ok);
        let check = of("memory", &[("shared_buffers", "1048576", Some("8kB")), ("max_wal_size", "64", Some("MB"))]);
        assert!(check.status == Status::Note && check.detail == "shared_buffers 8.0 GiB, max_wal_size 64.0 MiB");
    }

    #[test]
    fn timeouts_of_the_role_are_a_note_and_an_idle_session_timeout_is_a_warning() {
        assert_eq!(of("timeouts", &[("statement_timeout", "0", Some("ms"))]).status, Status::Ok);
        let check = of("timeouts", &[("statement_timeout", "200", Some("ms")), ("lock_timeout", "1", Some("ms"))]);
        assert!(check.status == Status::Note && check.detail.contains("statement_timeout 200ms, lock_timeout 1ms"));
        let check = of("timeouts", &[("idle_session_timeout", "60000", Some("ms"))]);
        assert!(check.status == Status::Warning && check.detail.contains("60000ms"), "{check:?}");
    }

    #[test]
    fn units_of_settings_are_converted_to_bytes() {
        for (unit, bytes) in [("B", 2), ("kB", 2048), ("8kB", 16384), ("MB", 2 << 20), ("GB", 2 << 30)] {
            assert_eq!(in_bytes(&setting("x", "2", Some(unit))), Some(bytes));
        }
        for unknown in [setting("x", "2", None), setting("x", "2", Some("ms")), setting("x", "-1", Some("kB"))] {
            assert_eq!(in_bytes(&unknown), None);
        }
    }
}
