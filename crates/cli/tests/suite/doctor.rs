//! The doctor on real patients: healthy ones, and each with one thing wrong.

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
    server::http::Server,
    support::{Place, Ran, bare, places},
    worker::{Running, eventually},
};

/// What the doctor found.
#[derive(Debug)]
struct Findings {
    code: Option<i32>,
    checks: Vec<Value>,
    stdout: String,
}

impl Findings {
    fn of(command: &mut Command) -> Self {
        let ran = Ran::of(command);
        let checks = ran.json()["checks"].as_array().unwrap().clone();
        Self { code: ran.code, checks, stdout: ran.stdout }
    }

    fn at(place: &Place) -> Self {
        Self::of(&mut place.command(&["doctor", "--output", "json"]))
    }

    fn on(url: &str) -> Self {
        Self::of(&mut bare(&["doctor", "--output", "json", "--database", url]))
    }

    #[track_caller]
    fn check(&self, name: &str) -> &Value {
        self.checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {self:#?}"))
    }

    /// Whether a check has this status and says this.
    #[track_caller]
    fn says(&self, name: &str, status: &str, words: &str) {
        let check = self.check(name);
        let detail = check["detail"].as_str().unwrap();
        assert!(check["status"] == status && detail.contains(words), "not {status} with {words:?}: {check:#}");
        assert_eq!(check.get("advice").is_none(), status == "ok", "{check:#}");
    }

    fn not_ok(&self) -> Vec<&Value> {
        self.checks.iter().filter(|check| check["status"] != "ok").collect()
    }
}

/// Asks again until a worker leads, which takes a moment after it has started.
fn once_somebody_leads(place: &Place) -> Findings {
    eventually("somebody leads", || {
        let found = Findings::at(place);
        (found.check("leader")["status"] == "ok").then_some(found)
    })
}

#[test]
fn a_healthy_database_has_nothing_to_be_said_against_it() {
    let server = PostgresServer::builder().durability(Durability::Durable).start().unwrap();
    for place in [Place::on(&server), Place::sqlite()] {
        place.run(&["migrate"]).done();
        let _worker = Running::start(&place, &[]);
        let found = once_somebody_leads(&place);
        assert_eq!(found.code, Some(0), "{found:#?}");
        // How many files may be open is the machine's, and so is the disk.
        let ours = |check: &&&Value| !["open-files", "disk", "file-system"].contains(&check["name"].as_str().unwrap());
        let wrong: Vec<_> = found.not_ok();
        assert_eq!(wrong.iter().filter(ours).count(), 0, "{wrong:#?}");
        assert!(found.checks.len() > 12, "{found:#?}");
        found.says("transport", "ok", "none is configured");
        found.says("workers", "ok", "1 worker is there");
        let lines = place.run(&["doctor", "--output", "jsonl"]).done().stdout;
        assert_eq!(lines.lines().count(), found.checks.len(), "{lines}");
        let text = place.run(&["doctor"]).done().stdout;
        assert!(text.starts_with("ok       ") && text.contains("0 problems"), "{text}");
    }
}

#[test]
fn settings_that_lose_jobs_or_pile_up_dead_rows_are_problems() {
    // Private servers of tests run without fsync.
    let server = PostgresServer::builder().setting("autovacuum", "off").start().unwrap();
    let place = Place::on(&server);
    place.run(&["migrate"]).done();
    psql(&server.url("postgres"), "ALTER TABLE orchestrix.job SET (autovacuum_enabled = off)").unwrap();
    psql(&server.url("postgres"), "ALTER ROLE postgres SET statement_timeout = '7s'").unwrap();
    let found = Findings::at(&place);
    assert_eq!(found.code, Some(1));
    found.says("durability", "problem", "fsync, full_page_writes are off: jobs that were acknowledged may be lost");
    found.says("autovacuum", "problem", "autovacuum is off");
    found.says("table-autovacuum", "warning", "turned off for job");
    found.says("timeouts", "note", "statement_timeout 7000ms");
    found.says("leader", "warning", "no node is there");
}

#[tokio::test]
async fn whoever_keeps_vacuum_from_its_work_is_named() {
    let database = TestDatabase::create("doctor").unwrap();
    Ran::of(&mut bare(&["migrate", "--database", database.url()])).done();
    Findings::on(database.url()).says("old-transactions", "ok", "no transaction");
    let url = format!("{}?application_name=forgetful", database.url());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let found = eventually("the transaction is old enough", || {
        let found = Findings::on(database.url());
        (found.check("old-transactions")["status"] == "note").then_some(found)
    });
    found.says("old-transactions", "note", &format!("forgetful of postgres (pid {pid}, idle in transaction), for "));
    assert!(found.check("old-transactions")["advice"].as_str().unwrap().contains(&format!("({pid})")));
    client.batch_execute("ROLLBACK").await.unwrap();
    Findings::on(database.url()).says("old-transactions", "ok", "no transaction");
}

#[test]
fn missing_and_unknown_migrations_are_problems_and_are_left_alone() {
    for place in places() {
        // A file that is not there lacks more than its tables; where there is a server nobody looks at this one.
        fs::write(place.folder().join("jobs.db"), "").unwrap();
        let found = Findings::at(&place);
        assert_eq!(found.code, Some(1));
        assert_eq!(found.check("migrations")["status"], "problem");
        place.run(&["migrate", "--check"]).ended(1, "");
        place.run(&["migrate"]).done();
        Findings::at(&place).says("migrations", "ok", "as this program wants it");
    }
    let database = TestDatabase::create("doctor").unwrap();
    Ran::of(&mut bare(&["migrate", "--database", database.url()])).done();
    psql(database.url(), "INSERT INTO orchestrix.migration (version, name) VALUES (999, 'to come')").unwrap();
    let found = Findings::on(database.url());
    assert_eq!(found.code, Some(1));
    found.says("migrations", "problem", "newer than this program");
}

#[test]
fn what_cannot_be_reached_is_told_apart_and_no_password_is_shown() {
    let mut server = PostgresServer::builder().start().unwrap();
    let port = server.port();
    let refused = Findings::on(&format!("postgres://postgres:hunter2@127.0.0.1:{port}/nowhere"));
    assert_eq!(refused.code, Some(1));
    refused.says("connection", "problem", "lets nobody in");
    server.stop().unwrap();
    let away = Findings::on(&format!("postgres://postgres:hunter2@127.0.0.1:{port}/postgres"));
    assert_eq!(away.code, Some(5));
    away.says("connection", "problem", &format!("PostgreSQL at 127.0.0.1:{port}/postgres cannot be reached"));
    away.check("open-files");
    for found in [refused, away] {
        assert!(!found.stdout.contains("hunter2"), "{}", found.stdout);
    }
    let place = Place::sqlite();
    let found = Findings::at(&place);
    assert_eq!(found.code, Some(5));
    found.says("file", "problem", "cannot be reached");
    assert!(fs::read_dir(place.folder()).unwrap().next().is_none(), "looking made a file");
    Ran::of(&mut bare(&["doctor"])).ended(2, "nothing to look at");
    Ran::of(&mut bare(&["doctor", "--database", "memory:"])).ended(2, "nothing to look at");
}

#[tokio::test]
async fn jobs_that_wait_in_vain_are_found() {
    for place in places() {
        place.dead(&["t"], "broken").await;
        place.enqueue(&["SEND", "--queue", "email"]);
        place.enqueue(&["orchestrix.noop", "--queue", "other"]);
        place.run(&["queues", "pause", "email"]).done();
        place.run(&["queues", "pause", "other"]).done();
        let _worker = Running::start(&place, &[]);
        let found = once_somebody_leads(&place);
        assert_eq!(found.check("migrations")["status"], "ok");
        found.says("paused-queues", "warning", "email (holds 1), other (holds 1)");
        found.says("unserved-jobs", "warning", "takes: SEND in email");
        found.says("dead-jobs", "note", "1 job has failed for good");
        assert!(!found.check("unserved-jobs")["detail"].as_str().unwrap().contains("noop"));
    }
}

#[test]
fn a_pooler_in_between_is_recognised() {
    let database = TestDatabase::create("doctor").unwrap();
    Ran::of(&mut bare(&["migrate", "--database", database.url()])).done();
    Findings::on(database.url()).says("listen", "ok", "processes hear of each other's jobs");
    let pooler = PgBouncer::start(test_postgres().unwrap(), 3).unwrap();
    let found = Findings::on(&pooler.url(database.name()));
    found.says("listen", "warning", "a pooler in transaction mode");
    found.says("migrations", "ok", "");
    found.says("leader", "warning", "no node is there");
}

#[test]
fn a_role_that_may_not_do_its_work_is_told_what_it_lacks() {
    let database = TestDatabase::create("doctor").unwrap();
    Ran::of(&mut bare(&["migrate", "--database", database.url()])).done();
    let role = format!("weak_{}", database.name());
    psql(database.url(), &format!("CREATE ROLE {role} LOGIN")).unwrap();
    let url = database.url().replacen("postgres@", &format!("{role}@"), 1);
    let found = Findings::on(&url);
    assert_eq!(found.code, Some(1));
    found.says("privileges", "problem", "this role lacks");
    found.says("old-transactions", "note", "those of others cannot be seen");
    // One check that may not look does not stop the others.
    found.says("partitions", "warning", "could not be looked at");
    found.check("connections");
    psql(
        database.url(),
        &format!(
            "GRANT USAGE ON SCHEMA orchestrix TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA orchestrix TO {role}; \
             GRANT ALL ON ALL SEQUENCES IN SCHEMA orchestrix TO {role}"
        ),
    )
    .unwrap();
    let found = Findings::on(&url);
    found.says("privileges", "warning", "can work on jobs but not migrate");
    assert_eq!(found.check("partitions")["status"], "ok");
}

#[test]
fn a_file_is_looked_at_without_a_trace() {
    let place = Place::sqlite();
    place.enqueue(&["t"]);
    let file = place.folder().join("jobs.db");
    let before = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().mtime_nsec());
    assert_eq!(Findings::at(&place).code, Some(0));
    assert_eq!((fs::read(&file).unwrap(), fs::metadata(&file).unwrap().mtime_nsec()), before);
    let files: Vec<_> = fs::read_dir(place.folder()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["jobs.db"]);
}

#[test]
fn a_damaged_file_and_one_of_another_program_are_problems() {
    let place = Place::sqlite();
    let file = place.folder().join("jobs.db");
    place.enqueue(&["t"]);
    let size = fs::metadata(&file).unwrap().len();
    let mut damaged = fs::OpenOptions::new().write(true).open(&file).unwrap();
    // The tables that jobs are in, but not the pages that say what tables there are.
    for page in 2..size / 4096 {
        damaged.seek(SeekFrom::Start(page * 4096)).unwrap();
        damaged.write_all(&[0xa5; 64]).unwrap();
    }
    let found = Findings::at(&place);
    assert_eq!(found.code, Some(1));
    found.says("integrity", "problem", "the file is damaged");
    fs::write(&file, "not a database, and long enough to be looked at as one").unwrap();
    let found = Findings::at(&place);
    assert_eq!(found.code, Some(1));
    found.says("integrity", "problem", "not a database");
}

#[test]
fn a_file_that_may_not_be_written_is_a_problem() {
    let place = Place::sqlite();
    place.enqueue(&["t"]);
    // Root may write whatever its permissions say, but not where the disk is mounted for reading only.
    let folder = place.folder().to_str().unwrap();
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"";
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = Command::new("unshare");
    command.args(if root { &["--mount"][..] } else { &["--map-root-user", "--mount"] });
    command.args(["--", "sh", "-c", script, "sh", folder, env!("CARGO_BIN_EXE_orchestrix"), "doctor"]);
    command.args(["--output", "json", "--database", &format!("sqlite:{folder}/jobs.db")]);
    let found = Findings::of(&mut command);
    assert_eq!(found.code, Some(1));
    found.says("file", "problem", "neither the file nor its directory is writable");
}

#[test]
fn a_server_is_looked_at_from_outside() {
    let place = Place::sqlite();
    let server = Server::start(&place);
    let url = format!("http://{}", server.address);
    let ask = || Findings::of(&mut bare(&["doctor", "--output", "json", "--server", &url]));
    let found = eventually("the server leads", || {
        let found = ask();
        (found.check("server-coordinator")["status"] == "ok").then_some(found)
    });
    assert_eq!(found.code, Some(0), "{found:#?}");
    found.says("server", "ok", "is up");
    found.says("server-tls", "ok", "does not leave this machine");
    found.says("server-clock", "ok", "agree");
    found.says("server-key", "ok", "asks for no key");
    found.says("server-persistence", "ok", "ok");
    found.says("server-transport", "ok", "none is configured");
    found.says("server-workers", "warning", "no worker is there");
    let both = Findings::of(&mut place.command(&["doctor", "--output", "json", "--server", &url]));
    assert!(both.check("server")["status"] == "ok" && both.check("file")["status"] == "ok", "{both:#?}");
    drop(server);
    let away = ask();
    assert_eq!(away.code, Some(5));
    away.says("server", "problem", "cannot be reached");
    Ran::of(&mut bare(&["doctor", "--server", "ftp://x"])).ended(2, "--server must begin with http");
}

#[test]
fn a_key_is_shown_to_the_server_and_judged_by_its_answer() {
    let place = Place::sqlite();
    let key = |role: &str, flags: &[&str]| {
        let ran = place.run(&[&["keys", "create", "--role", role], flags].concat()).done();
        ran.stdout.trim_end().to_owned()
    };
    let keys = [key("operator", &["--tenant", "acme"]), key("client", &[]), "hunter2".to_owned(), String::new()];
    let server = Server::of(place.command(&["server", "--listen", "127.0.0.1:0"]));
    let url = format!("http://{}", server.address);
    for (key, code, status, words) in [
        (&keys[0], 0, "ok", "do what operators do"),
        (&keys[1], 0, "note", "not an operator's"),
        (&keys[2], 1, "problem", "does not know this key"),
        (&keys[3], 0, "warning", "none was given"),
    ] {
        let mut command = bare(&["doctor", "--output", "json", "--server", &url]);
        let found = Findings::of(command.env("ORCHESTRIX_API_KEY", key));
        found.says("server-key", status, words);
        assert_eq!(found.code, Some(code), "{found:#?}");
        assert!(key.is_empty() || !found.stdout.contains(key.as_str()), "{found:#?}");
    }
}
