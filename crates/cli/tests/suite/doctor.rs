//! `orchestrix doctor` on healthy databases, and on databases with one fault each.

use std::{
    fs,
    io::{Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    process::Command,
};

use orchestrix_testkit::{Durability, PgBouncer, PostgresServer, TestDatabase, psql, test_postgres};
use serde_json::Value;
use tokio_postgres::NoTls;

use crate::{
    harness::{CliOutput, TestEnv, each_database, each_empty_database, orchestrix},
    server::process::ServerProcess,
    worker::{WorkerProcess, eventually},
};

/// The checks of one run of `doctor`.
#[derive(Debug)]
struct DoctorReport {
    code: Option<i32>,
    checks: Vec<Value>,
    stdout: String,
}

impl DoctorReport {
    fn run(command: &mut Command) -> Self {
        let ran = CliOutput::run(command);
        let checks = ran.json()["checks"].as_array().unwrap().clone();
        Self { code: ran.code, checks, stdout: ran.stdout }
    }

    fn of_env(env: &TestEnv) -> Self {
        Self::run(&mut env.command(&["doctor", "--output", "json"]))
    }

    fn of_database(url: &str) -> Self {
        Self::run(&mut orchestrix(&["doctor", "--output", "json", "--database", url]))
    }

    #[track_caller]
    fn check(&self, name: &str) -> &Value {
        self.checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {self:#?}"))
    }

    /// Asserts the status of a check and a part of its detail.
    #[track_caller]
    fn assert_check(&self, name: &str, status: &str, text: &str) {
        let check = self.check(name);
        let detail = check["detail"].as_str().unwrap();
        assert!(check["status"] == status && detail.contains(text), "not {status} with {text:?}: {check:#}");
        assert_eq!(check.get("advice").is_none(), status == "ok", "{check:#}");
    }

    fn not_ok(&self) -> Vec<&Value> {
        self.checks.iter().filter(|check| check["status"] != "ok").collect()
    }
}

/// Runs `doctor` until a worker leads, which takes a moment after its start.
fn report_once_led(env: &TestEnv) -> DoctorReport {
    eventually("a node leads", || {
        let report = DoctorReport::of_env(env);
        (report.check("leader")["status"] == "ok").then_some(report)
    })
}

#[test]
fn a_healthy_database_has_no_problems() {
    let server = PostgresServer::builder().durability(Durability::Durable).start().unwrap();
    for env in [TestEnv::on_postgres(&server), TestEnv::sqlite()] {
        env.run(&["migrate"]).success();
        let _worker = WorkerProcess::start(&env, &[]);
        let report = report_once_led(&env);
        assert_eq!(report.code, Some(0), "{report:#?}");
        // Open files and the disk depend on the machine.
        let ours = |check: &&&Value| !["open-files", "disk", "file-system"].contains(&check["name"].as_str().unwrap());
        let wrong: Vec<_> = report.not_ok();
        assert_eq!(wrong.iter().filter(ours).count(), 0, "{wrong:#?}");
        assert!(report.checks.len() > 12, "{report:#?}");
        report.assert_check("transport", "ok", "configured");
        report.assert_check("workers", "ok", "1 worker");
        let lines = env.run(&["doctor", "--output", "jsonl"]).success().stdout;
        assert_eq!(lines.lines().count(), report.checks.len(), "{lines}");
        let text = env.run(&["doctor"]).success().stdout;
        assert!(text.starts_with("ok       ") && text.contains("0 problems"), "{text}");
    }
}

#[test]
fn settings_that_risk_data_or_bloat_are_problems() {
    // The private servers of tests run without fsync.
    let server = PostgresServer::builder().setting("autovacuum", "off").start().unwrap();
    let env = TestEnv::on_postgres(&server);
    env.run(&["migrate"]).success();
    psql(&server.url("postgres"), "ALTER TABLE orchestrix.job SET (autovacuum_enabled = off)").unwrap();
    psql(&server.url("postgres"), "ALTER ROLE postgres SET statement_timeout = '7s'").unwrap();
    let report = DoctorReport::of_env(&env);
    assert_eq!(report.code, Some(1));
    report.assert_check("durability", "problem", "fsync, full_page_writes");
    report.assert_check("autovacuum", "problem", "autovacuum");
    report.assert_check("table-autovacuum", "warning", "job");
    report.assert_check("timeouts", "note", "statement_timeout");
    report.assert_check("leader", "warning", "no node");
}

#[tokio::test]
async fn transactions_that_hold_back_vacuum_are_named() {
    let database = TestDatabase::create("doctor").unwrap();
    CliOutput::run(&mut orchestrix(&["migrate", "--database", database.url()])).success();
    DoctorReport::of_database(database.url()).assert_check("old-transactions", "ok", "");
    let url = format!("{}?application_name=forgetful", database.url());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let report = eventually("the transaction is old enough", || {
        let report = DoctorReport::of_database(database.url());
        (report.check("old-transactions")["status"] == "note").then_some(report)
    });
    report.assert_check("old-transactions", "note", &format!("pid {pid}"));
    assert!(report.check("old-transactions")["advice"].as_str().unwrap().contains(&format!("({pid})")));
    client.batch_execute("ROLLBACK").await.unwrap();
    DoctorReport::of_database(database.url()).assert_check("old-transactions", "ok", "");
}

#[test]
fn missing_and_unknown_migrations_are_problems_and_doctor_applies_none() {
    for env in each_empty_database() {
        // An empty file, because a missing one is another problem. PostgreSQL does not use it.
        fs::write(env.dir().join("jobs.db"), "").unwrap();
        let report = DoctorReport::of_env(&env);
        assert_eq!(report.code, Some(1));
        assert_eq!(report.check("migrations")["status"], "problem");
        env.run(&["migrate", "--check"]).exits_with(1, "");
        env.run(&["migrate"]).success();
        DoctorReport::of_env(&env).assert_check("migrations", "ok", "");
    }
    let database = TestDatabase::create("doctor").unwrap();
    CliOutput::run(&mut orchestrix(&["migrate", "--database", database.url()])).success();
    psql(database.url(), "INSERT INTO orchestrix.migration (version, name) VALUES (999, 'to come')").unwrap();
    let report = DoctorReport::of_database(database.url());
    assert_eq!(report.code, Some(1));
    report.assert_check("migrations", "problem", "newer");
}

#[test]
fn unreachable_and_refusing_databases_differ_and_no_password_is_shown() {
    let mut server = PostgresServer::builder().start().unwrap();
    let port = server.port();
    let refused = DoctorReport::of_database(&format!("postgres://postgres:hunter2@127.0.0.1:{port}/nowhere"));
    assert_eq!(refused.code, Some(1));
    refused.assert_check("connection", "problem", "");
    server.stop().unwrap();
    let away = DoctorReport::of_database(&format!("postgres://postgres:hunter2@127.0.0.1:{port}/postgres"));
    assert_eq!(away.code, Some(5));
    away.assert_check("connection", "problem", &format!("127.0.0.1:{port}/postgres"));
    away.check("open-files");
    for report in [refused, away] {
        assert!(!report.stdout.contains("hunter2"), "{}", report.stdout);
    }
    let env = TestEnv::sqlite();
    let report = DoctorReport::of_env(&env);
    assert_eq!(report.code, Some(5));
    report.assert_check("file", "problem", "");
    assert!(fs::read_dir(env.dir()).unwrap().next().is_none(), "doctor created a file");
    CliOutput::run(&mut orchestrix(&["doctor"])).exits_with(2, "--database");
    CliOutput::run(&mut orchestrix(&["doctor", "--database", "memory:"])).exits_with(2, "memory:");
}

#[tokio::test]
async fn jobs_that_no_worker_can_take_are_found() {
    for env in each_database() {
        env.enqueue_dead_job(&["t"], "broken").await;
        env.enqueue(&["SEND", "--queue", "email"]);
        env.enqueue(&["orchestrix.noop", "--queue", "other"]);
        env.run(&["queues", "pause", "email"]).success();
        env.run(&["queues", "pause", "other"]).success();
        let _worker = WorkerProcess::start(&env, &[]);
        let report = report_once_led(&env);
        assert_eq!(report.check("migrations")["status"], "ok");
        report.assert_check("paused-queues", "warning", "email (holds 1)");
        report.assert_check("unserved-jobs", "warning", "SEND in email");
        report.assert_check("dead-jobs", "note", "1 job");
        assert!(!report.check("unserved-jobs")["detail"].as_str().unwrap().contains("noop"));
    }
}

#[test]
fn a_transaction_pooler_is_recognised() {
    let database = TestDatabase::create("doctor").unwrap();
    CliOutput::run(&mut orchestrix(&["migrate", "--database", database.url()])).success();
    DoctorReport::of_database(database.url()).assert_check("listen", "ok", "");
    let pooler = PgBouncer::start(test_postgres().unwrap(), 3).unwrap();
    let report = DoctorReport::of_database(&pooler.url(database.name()));
    report.assert_check("listen", "warning", "pooler");
    report.assert_check("migrations", "ok", "");
    report.assert_check("leader", "warning", "no node");
}

#[test]
fn a_role_without_privileges_is_told_what_is_missing() {
    let database = TestDatabase::create("doctor").unwrap();
    CliOutput::run(&mut orchestrix(&["migrate", "--database", database.url()])).success();
    let role = format!("weak_{}", database.name());
    psql(database.url(), &format!("CREATE ROLE {role} LOGIN")).unwrap();
    let url = database.url().replacen("postgres@", &format!("{role}@"), 1);
    let report = DoctorReport::of_database(&url);
    assert_eq!(report.code, Some(1));
    report.assert_check("privileges", "problem", "");
    report.assert_check("old-transactions", "note", "");
    // A check that lacks privileges does not stop the others.
    report.assert_check("partitions", "warning", "");
    report.check("connections");
    psql(
        database.url(),
        &format!(
            "GRANT USAGE ON SCHEMA orchestrix TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA orchestrix TO {role}; \
             GRANT ALL ON ALL SEQUENCES IN SCHEMA orchestrix TO {role}"
        ),
    )
    .unwrap();
    let report = DoctorReport::of_database(&url);
    report.assert_check("privileges", "warning", "migrate");
    assert_eq!(report.check("partitions")["status"], "ok");
}

#[test]
fn doctor_leaves_the_sqlite_file_unchanged() {
    let env = TestEnv::sqlite();
    env.enqueue(&["t"]);
    let file = env.dir().join("jobs.db");
    let before = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().mtime_nsec());
    assert_eq!(DoctorReport::of_env(&env).code, Some(0));
    assert_eq!((fs::read(&file).unwrap(), fs::metadata(&file).unwrap().mtime_nsec()), before);
    let files: Vec<_> = fs::read_dir(env.dir()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["jobs.db"]);
}

#[test]
fn a_damaged_or_foreign_file_is_a_problem() {
    let env = TestEnv::sqlite();
    let file = env.dir().join("jobs.db");
    env.enqueue(&["t"]);
    let size = fs::metadata(&file).unwrap().len();
    let mut damaged = fs::OpenOptions::new().write(true).open(&file).unwrap();
    // Damages the pages with jobs, but not the schema pages.
    for page in 2..size / 4096 {
        damaged.seek(SeekFrom::Start(page * 4096)).unwrap();
        damaged.write_all(&[0xa5; 64]).unwrap();
    }
    let report = DoctorReport::of_env(&env);
    assert_eq!(report.code, Some(1));
    report.assert_check("integrity", "problem", "damaged");
    fs::write(&file, "not a database, and long enough to have a header").unwrap();
    let report = DoctorReport::of_env(&env);
    assert_eq!(report.code, Some(1));
    report.assert_check("integrity", "problem", "not a database");
}

#[test]
fn a_read_only_file_is_a_problem() {
    let env = TestEnv::sqlite();
    env.enqueue(&["t"]);
    // Root ignores file permissions, but not a read-only mount.
    let dir = env.dir().to_str().unwrap();
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"";
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = Command::new("unshare");
    command.args(if root { &["--mount"][..] } else { &["--map-root-user", "--mount"] });
    command.args(["--", "sh", "-c", script, "sh", dir, env!("CARGO_BIN_EXE_orchestrix"), "doctor"]);
    command.args(["--output", "json", "--database", &format!("sqlite:{dir}/jobs.db")]);
    let report = DoctorReport::run(&mut command);
    assert_eq!(report.code, Some(1));
    report.assert_check("file", "problem", "writable");
}

#[test]
fn a_server_is_checked_over_http() {
    let env = TestEnv::sqlite();
    let server = ServerProcess::start(&env);
    let url = format!("http://{}", server.address);
    let ask = || DoctorReport::run(&mut orchestrix(&["doctor", "--output", "json", "--server", &url]));
    let report = eventually("the server leads", || {
        let report = ask();
        (report.check("server-coordinator")["status"] == "ok").then_some(report)
    });
    assert_eq!(report.code, Some(0), "{report:#?}");
    report.assert_check("server", "ok", "");
    report.assert_check("server-tls", "ok", "");
    report.assert_check("server-clock", "ok", "");
    report.assert_check("server-key", "ok", "");
    report.assert_check("server-persistence", "ok", "");
    report.assert_check("server-transport", "ok", "configured");
    report.assert_check("server-workers", "warning", "no worker");
    let both = DoctorReport::run(&mut env.command(&["doctor", "--output", "json", "--server", &url]));
    assert!(both.check("server")["status"] == "ok" && both.check("file")["status"] == "ok", "{both:#?}");
    drop(server);
    let away = ask();
    assert_eq!(away.code, Some(5));
    away.assert_check("server", "problem", "");
    CliOutput::run(&mut orchestrix(&["doctor", "--server", "ftp://x"])).exits_with(2, "--server");
}

#[test]
fn the_key_is_checked_against_the_server() {
    let env = TestEnv::sqlite();
    let key = |role: &str, flags: &[&str]| {
        let ran = env.run(&[&["keys", "create", "--role", role], flags].concat()).success();
        ran.stdout.trim_end().to_owned()
    };
    let keys = [key("operator", &["--tenant", "acme"]), key("client", &[]), "hunter2".to_owned(), String::new()];
    let server = ServerProcess::spawn(env.command(&["server", "--listen", "127.0.0.1:0"]));
    let url = format!("http://{}", server.address);
    for (key, code, status, text) in [
        (&keys[0], 0, "ok", "operator"),
        (&keys[1], 0, "note", "operator"),
        (&keys[2], 1, "problem", "key"),
        (&keys[3], 0, "warning", ""),
    ] {
        let mut command = orchestrix(&["doctor", "--output", "json", "--server", &url]);
        let report = DoctorReport::run(command.env("ORCHESTRIX_API_KEY", key));
        report.assert_check("server-key", status, text);
        assert_eq!(report.code, Some(code), "{report:#?}");
        assert!(key.is_empty() || !report.stdout.contains(key.as_str()), "{report:#?}");
    }
}
