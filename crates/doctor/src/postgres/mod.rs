//! A PostgreSQL database. Nothing is changed.

mod access;
mod settings;
mod vacuum;

use std::time::{Duration, Instant};

use orchestrix_core::Timestamp;
use orchestrix_postgres::{
    PostgresOptions,
    diagnose::{Diagnostics, Server},
};
use orchestrix_store::StoreError;

use crate::{
    Report,
    check::{Check, millis},
    clock::{self, ClockSample},
    runner::CheckRunner,
    snapshot,
};

/// A longer round trip slows every operation down.
const SLOW_ROUND_TRIP: Duration = Duration::from_millis(20);

/// Checks a PostgreSQL database. `label` names it in messages, without its password. Waits up to `timeout` for a
/// connection.
pub async fn check_postgres(options: PostgresOptions, label: &str, timeout: Duration) -> Report {
    let started = Instant::now();
    let diagnostics = match tokio::time::timeout(timeout, Diagnostics::connect(options)).await {
        Ok(Ok(diagnostics)) => diagnostics,
        Ok(Err(error)) => return connect_error(label, &error),
        Err(_) => {
            let why = format!("no answer within {} s", timeout.as_secs_f64());
            return connect_error(label, &StoreError::Unavailable(why));
        }
    };
    let connect_time = started.elapsed();
    let mut runner = CheckRunner::new("the database");
    runner
        .run("connection", diagnostics.round_trip(), |round_trip| vec![connection(label, connect_time, *round_trip)])
        .await;
    let sent_at = Timestamp::now();
    let server = runner
        .run("server", diagnostics.server(), |server| {
            let (remote, received_at) = (server.time, Timestamp::now());
            let sample = ClockSample { sent_at, remote, received_at, resolution: Duration::ZERO };
            vec![version(server), clock::evaluate("clock", "the database", &sample)]
        })
        .await;
    let schema =
        runner.run("migrations", diagnostics.schema_version(), |version| vec![access::migrations(*version)]).await;
    let size = server.as_ref().map_or(0, |server| server.bytes);
    runner.run("settings", diagnostics.settings(settings::NAMES), |found| settings::evaluate(found, size)).await;
    runner.run("connections", diagnostics.connections(), |found| vec![access::connections(found)]).await;
    runner.run("listen", diagnostics.notify_check(), |found| vec![access::listening(*found)]).await;
    let sees_all = server.as_ref().is_none_or(|server| server.sees_all);
    runner.run("old-transactions", diagnostics.vacuum_blockers(), |found| vacuum::blockers(found, sees_all)).await;
    // If the version is unknown, the schema probably exists.
    let has_schema = schema != Some(0);
    runner
        .run("privileges", diagnostics.missing_privileges(), |found| vec![access::privileges(found, has_schema)])
        .await;
    if has_schema {
        runner.run("dead-rows", diagnostics.tables(), |found| vacuum::tables(found)).await;
        runner.run("partitions", diagnostics.partitions(), |found| vec![access::partitions(found)]).await;
        runner.run("standing", diagnostics.snapshot(), snapshot::evaluate).await;
    }
    Report { checks: runner.checks, unreachable: false }
}

fn connect_error(label: &str, error: &StoreError) -> Report {
    let unreachable = matches!(error, StoreError::Unavailable(_));
    let (detail, advice) = match unreachable {
        true => (
            format!("{label} cannot be reached: {error}"),
            "check that the server is running, and check host, port and firewall; --connect-timeout waits longer",
        ),
        false => (
            format!("{label} refuses the connection: {error}"),
            "check the user, the password and the database name in --database",
        ),
    };
    Report { checks: vec![Check::problem("connection", detail, advice)], unreachable }
}

fn connection(label: &str, connect_time: Duration, round_trip: Duration) -> Check {
    let detail = format!("{label}: connected in {}, round trip {}", millis(connect_time), millis(round_trip));
    match round_trip {
        _ if round_trip > SLOW_ROUND_TRIP => Check::warning(
            "connection",
            format!("{detail}: every claim and every completion takes several round trips"),
            "run workers and servers closer to the database",
        ),
        _ => Check::ok("connection", detail),
    }
}

fn version(server: &Server) -> Check {
    const NAME: &str = "server";
    let Server { version, role, database, .. } = server;
    if server.version_number < 150_000 {
        let detail = format!("PostgreSQL {version} is too old");
        return Check::problem(NAME, detail, "upgrade the server to PostgreSQL 15 or later");
    }
    if server.in_recovery {
        return Check::problem(
            NAME,
            format!("PostgreSQL {version} is a standby and takes no writes"),
            "use the primary in --database, or list all hosts and add target_session_attrs=read-write",
        );
    }
    Check::ok(NAME, format!("PostgreSQL {version}, database {database}, role {role}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn server(version_number: i32, in_recovery: bool) -> Server {
        Server {
            version_number,
            version: "x".into(),
            time: Timestamp::UNIX_EPOCH,
            in_recovery,
            role: "app".into(),
            database: "jobs".into(),
            bytes: 0,
            sees_all: true,
        }
    }

    #[test]
    fn an_old_server_and_a_standby_are_problems() {
        assert_eq!(version(&server(150_000, false)).status, Status::Ok);
        assert_eq!(version(&server(140_022, false)).status, Status::Problem);
        let standby = version(&server(170_000, true));
        assert!(standby.status == Status::Problem && standby.detail.contains("takes no writes"), "{standby:?}");
    }

    #[test]
    fn a_long_round_trip_is_a_warning() {
        let after = |millis: u64| connection("there", Duration::ZERO, Duration::from_millis(millis));
        assert_eq!(after(20).status, Status::Ok);
        assert_eq!(after(21).status, Status::Warning);
        assert!(after(21).detail.starts_with("there: connected in 0.0 ms, round trip 21 ms"));
    }

    #[test]
    fn an_unreachable_server_is_distinguished_from_one_that_refuses() {
        let away = connect_error("there", &StoreError::Unavailable("refused".into()));
        assert!(away.unreachable && away.checks[0].detail.contains("cannot be reached"), "{away:?}");
        let refused = connect_error("there", &StoreError::Backend("no such role".into()));
        assert!(!refused.unreachable && refused.checks[0].detail.contains("refuses the connection"), "{refused:?}");
        assert!([away, refused].iter().all(|report| report.checks[0].status == Status::Problem));
    }
}
