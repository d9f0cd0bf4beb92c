//! Settings of the server, and of the role, that jobs depend on.

use std::collections::BTreeMap;

use orchestrix_postgres::diagnose::Setting;

use super::super::check::{Check, bytes};

/// Those that are looked at.
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

/// What the server begins with; less than this share of the data in memory is worth a word.
const SMALL_BUFFERS: u64 = 128 * 1024 * 1024;
const BUFFERS_SHARE: u64 = 4;
/// What the server begins with.
const SMALL_LOG: u64 = 1024 * 1024 * 1024;

/// Judges them, with the size of the database.
pub(super) fn judge(settings: &[Setting], size: u64) -> Vec<Check> {
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
        return Check::ok(
            NAME,
            "what was acknowledged is on the disk: fsync, full_page_writes and synchronous_commit are on",
        );
    }
    let verb = if off.len() == 1 { "is" } else { "are" };
    Check::problem(
        NAME,
        format!(
            "{} {verb} off: jobs that were acknowledged may be lost when the server or the machine crashes",
            off.join(", ")
        ),
        format!("set {} = on, in postgresql.conf or where a role or database turned it off", off.join(" = on, ")),
    )
}

fn writes(settings: &Settings<'_>) -> Check {
    const NAME: &str = "transactions";
    if is(settings, "default_transaction_read_only", "on") {
        return Check::problem(
            NAME,
            "transactions begin read-only (default_transaction_read_only): no job can be recorded or finished",
            "turn it off for this role and database, or name a server that takes writes",
        );
    }
    match settings.get("default_transaction_isolation") {
        Some(setting) if setting.value != "read committed" => Check::note(
            NAME,
            format!("transactions begin as {}; ours say read committed themselves", setting.value),
            "behind a pooler set read committed for this role: the guards against lost leases are written for it",
        ),
        _ => Check::ok(NAME, "transactions begin read committed, and may write"),
    }
}

fn autovacuum(settings: &Settings<'_>) -> Check {
    const NAME: &str = "autovacuum";
    match ["autovacuum", "track_counts"].into_iter().find(|name| is(settings, name, "off")) {
        Some(name) => Check::problem(
            NAME,
            format!("{name} is off, so nothing vacuums by itself: dead rows pile up and claims get slower without end"),
            format!("set {name} = on in postgresql.conf and reload"),
        ),
        None => Check::ok(NAME, "on"),
    }
}

fn memory(settings: &Settings<'_>, size: u64) -> Check {
    const NAME: &str = "memory";
    let [buffers, log] = ["shared_buffers", "max_wal_size"].map(|name| settings.get(name).and_then(|it| in_bytes(it)));
    let shown = |name: &str, value: Option<u64>| format!("{name} {}", value.map_or_else(|| "unknown".into(), bytes));
    let detail = format!("{}, {}", shown("shared_buffers", buffers), shown("max_wal_size", log));
    if buffers.is_some_and(|buffers| buffers <= SMALL_BUFFERS && size / BUFFERS_SHARE > buffers) {
        return Check::note(
            NAME,
            format!("{detail}; the database has {}", bytes(size)),
            "on a server of its own give shared_buffers a quarter of the memory",
        );
    }
    if log.is_some_and(|log| log < SMALL_LOG) {
        let advice =
            "raise max_wal_size to 1GB or more: under load a small one makes checkpoints, and so pauses, frequent";
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
                "idle_session_timeout is {}: connections that wait, and that which listens for jobs, are cut off",
                shown(setting)
            ),
            "ALTER ROLE … SET idle_session_timeout = 0 for the role of Orchestrix",
        );
    }
    let names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"];
    let limits: Vec<String> = names.iter().filter_map(|name| Some(format!("{name} {}", shown(set(name)?)))).collect();
    if limits.is_empty() {
        return Check::ok(NAME, "this role has no limits of its own; ours are set with every connection");
    }
    Check::note(
        NAME,
        format!(
            "sessions of this role begin with {}; ours set their own limits with every connection",
            limits.join(", ")
        ),
        "behind a pooler, and in your own transactions that record jobs, these limits hold: leave room for 10 s",
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
    use super::{super::super::check::Status, *};

    fn setting(name: &str, value: &str, unit: Option<&str>) -> Setting {
        Setting { name: name.into(), value: value.into(), unit: unit.map(Into::into) }
    }

    fn of(name: &'static str, settings: &[(&str, &str, Option<&str>)]) -> Check {
        let settings: Vec<Setting> = settings.iter().map(|(name, value, unit)| setting(name, value, *unit)).collect();
        judge(&settings, 10 << 30).into_iter().find(|check| check.name == name).unwrap()
    }

    #[test]
    fn every_way_to_lose_acknowledged_jobs_is_named() {
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            assert_eq!(of("durability", &[(name, "on", None)]).status, Status::Ok);
            let check = of("durability", &[(name, "off", None)]);
            assert_eq!(check.status, Status::Problem);
            assert!(check.detail.starts_with(&format!("{name} is off: jobs that were acknowledged may be lost")));
            assert!(check.advice.unwrap().contains(&format!("set {name} = on")));
        }
        let two = of("durability", &[("fsync", "off", None), ("synchronous_commit", "off", None)]);
        assert!(two.detail.starts_with("fsync, synchronous_commit are off"), "{two:?}");
        assert_eq!(of("durability", &[("synchronous_commit", "remote_apply", None)]).status, Status::Ok);
    }

    #[test]
    fn a_role_that_only_reads_cannot_work() {
        assert_eq!(of("transactions", &[]).status, Status::Ok);
        assert_eq!(of("transactions", &[("default_transaction_read_only", "on", None)]).status, Status::Problem);
        let serial = [("default_transaction_isolation", "serializable", None)];
        assert_eq!(of("transactions", &serial).status, Status::Note);
    }

    #[test]
    fn autovacuum_needs_its_counts() {
        assert_eq!(of("autovacuum", &[("autovacuum", "on", None), ("track_counts", "on", None)]).status, Status::Ok);
        for name in ["autovacuum", "track_counts"] {
            let check = of("autovacuum", &[(name, "off", None)]);
            assert!(check.status == Status::Problem && check.detail.starts_with(name), "{check:?}");
        }
    }

    #[test]
    fn little_memory_matters_where_there_is_much_data() {
        let buffers = ("shared_buffers", "16384", Some("8kB"));
        let check = of("memory", &[buffers, ("max_wal_size", "1024", Some("MB"))]);
        assert!(check.status == Status::Note && check.detail.contains("the database has 10.0 GiB"), "{check:?}");
        let settings = [setting("shared_buffers", "16384", Some("8kB"))];
        assert_eq!(judge(&settings, 1 << 20)[3].status, Status::Ok);
        let check = of("memory", &[("shared_buffers", "1048576", Some("8kB")), ("max_wal_size", "64", Some("MB"))]);
        assert!(check.status == Status::Note && check.detail == "shared_buffers 8.0 GiB, max_wal_size 64.0 MiB");
    }

    #[test]
    fn limits_of_the_role_are_told_and_those_that_cut_off_are_a_warning() {
        assert_eq!(of("timeouts", &[("statement_timeout", "0", Some("ms"))]).status, Status::Ok);
        let check = of("timeouts", &[("statement_timeout", "200", Some("ms")), ("lock_timeout", "1", Some("ms"))]);
        assert!(check.status == Status::Note && check.detail.contains("statement_timeout 200ms, lock_timeout 1ms"));
        let check = of("timeouts", &[("idle_session_timeout", "60000", Some("ms"))]);
        assert!(check.status == Status::Warning && check.detail.contains("60000ms"), "{check:?}");
    }

    #[test]
    fn units_are_understood() {
        for (unit, bytes) in [("B", 2), ("kB", 2048), ("8kB", 16384), ("MB", 2 << 20), ("GB", 2 << 30)] {
            assert_eq!(in_bytes(&setting("x", "2", Some(unit))), Some(bytes));
        }
        for unknown in [setting("x", "2", None), setting("x", "2", Some("ms")), setting("x", "-1", Some("kB"))] {
            assert_eq!(in_bytes(&unknown), None);
        }
    }
}
