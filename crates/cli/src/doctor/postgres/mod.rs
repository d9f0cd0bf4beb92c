//! A PostgreSQL database, looked at from all sides. Nothing is changed in it.

mod access;
mod settings;
mod vacuum;

use std::time::{Duration, Instant};

use orchestrix_core::Timestamp;
use orchestrix_postgres::{
    PostgresOptions,
    diagnose::{Examination, Server},
};
use orchestrix_store::StoreError;

use super::{
    Report,
    check::{Check, millis},
    clock::{self, Reading},
    standing,
    ward::Ward,
};

/// Slower than this, everything is.
const SLOW: Duration = Duration::from_millis(20);

/// Looks at it. `place` is what it may be called.
pub(super) async fn examine(options: PostgresOptions, place: &str, patience: Duration) -> Report {
    let begun = Instant::now();
    let examination = match tokio::time::timeout(patience, Examination::begin(options)).await {
        Ok(Ok(examination)) => examination,
        Ok(Err(error)) => return refused(place, &error),
        Err(_) => {
            let why = format!("no answer within {} s", patience.as_secs_f64());
            return refused(place, &StoreError::Unavailable(why));
        }
    };
    let connected = begun.elapsed();
    let mut ward = Ward::new("the database");
    ward.look("connection", examination.round_trip(), |trip| vec![connection(place, connected, *trip)]).await;
    let asked = Timestamp::now();
    let server = ward
        .look("server", examination.server(), |server| {
            let (theirs, answered) = (server.time, Timestamp::now());
            let reading = Reading { asked, theirs, answered, grain: Duration::ZERO };
            vec![version(server), clock::judge("clock", "the database", &reading)]
        })
        .await;
    let schema = ward.look("migrations", examination.schema_version(), |found| vec![access::migrations(*found)]).await;
    let size = server.as_ref().map_or(0, |server| server.bytes);
    ward.look("settings", examination.settings(settings::NAMES), |found| settings::judge(found, size)).await;
    ward.look("connections", examination.connections(), |found| vec![access::connections(found)]).await;
    ward.look("listen", examination.listening(), |found| vec![access::listening(*found)]).await;
    let sees_all = server.as_ref().is_none_or(|server| server.sees_all);
    ward.look("old-transactions", examination.holders(), |found| vacuum::holders(found, sees_all)).await;
    // Where that cannot be told there is at least something to be told about.
    let ours = schema != Some(0);
    ward.look("privileges", examination.lacks(), |found| vec![access::privileges(found, ours)]).await;
    // Where there are no tables there is no more to be said than that.
    if ours {
        ward.look("dead-rows", examination.tables(), |found| vacuum::tables(found)).await;
        ward.look("partitions", examination.days(), |found| vec![access::days(found)]).await;
        ward.look("standing", examination.standing(), standing::judge).await;
    }
    Report { checks: ward.checks, unreachable: false }
}

fn refused(place: &str, error: &StoreError) -> Report {
    let away = matches!(error, StoreError::Unavailable(_));
    let (detail, advice) = match away {
        true => (
            format!("{place} cannot be reached: {error}"),
            "is the server up, and are host, port and firewall right? --connect-timeout waits longer for it",
        ),
        false => (
            format!("{place} lets nobody in: {error}"),
            "are the user, the password and the name of the database in --database right?",
        ),
    };
    Report { checks: vec![Check::problem("connection", detail, advice)], unreachable: away }
}

fn connection(place: &str, connected: Duration, trip: Duration) -> Check {
    let detail = format!("{place} lets us in after {} and answers in {}", millis(connected), millis(trip));
    match trip {
        _ if trip > SLOW => Check::warning(
            "connection",
            format!("{detail}: every claim and every completion takes some of these"),
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
            format!("PostgreSQL {version} follows another server and takes no writes"),
            "name the primary in --database, or add target_session_attrs=read-write with all hosts",
        );
    }
    Check::ok(NAME, format!("PostgreSQL {version}, database {database}, role {role}"))
}

#[cfg(test)]
mod tests {
    use super::{super::check::Status, *};

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
    fn an_old_server_and_one_that_only_follows_are_problems() {
        assert_eq!(version(&server(150_000, false)).status, Status::Ok);
        assert_eq!(version(&server(140_022, false)).status, Status::Problem);
        let standby = version(&server(170_000, true));
        assert!(standby.status == Status::Problem && standby.detail.contains("takes no writes"), "{standby:?}");
    }

    #[test]
    fn a_far_away_database_is_a_warning() {
        let after = |millis: u64| connection("there", Duration::ZERO, Duration::from_millis(millis));
        assert_eq!(after(20).status, Status::Ok);
        assert_eq!(after(21).status, Status::Warning);
        assert!(after(21).detail.starts_with("there lets us in after 0.0 ms and answers in 21 ms"));
    }

    #[test]
    fn whoever_is_away_is_told_from_whoever_says_no() {
        let away = refused("there", &StoreError::Unavailable("refused".into()));
        assert!(away.unreachable && away.checks[0].detail.contains("cannot be reached"), "{away:?}");
        let no = refused("there", &StoreError::Backend("no such role".into()));
        assert!(!no.unreachable && no.checks[0].detail.contains("lets nobody in"), "{no:?}");
        assert!([away, no].iter().all(|report| report.checks[0].status == Status::Problem));
    }
}
