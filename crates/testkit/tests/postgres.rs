//! A private PostgreSQL starts, survives a crash, and is removed when dropped.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use orchestrix_testkit::{Durability, PostgresInstallation, PostgresServer, TestDatabase, psql};

/// Set for the process that [`nothing_is_left_when_the_owner_is_killed`] starts and kills.
const OWNER: &str = "ORCHESTRIX_TESTKIT_OWNER";

#[test]
fn a_server_answers_until_stopped_and_is_removed_when_dropped() {
    let mut server =
        PostgresServer::builder().durability(Durability::Durable).setting("work_mem", "7MB").start().unwrap();
    let url = server.url("postgres");
    assert_eq!(psql(&url, "SHOW work_mem").unwrap(), "7MB");
    assert_eq!(psql(&url, "SHOW fsync").unwrap(), "on");
    assert_eq!(psql(&url, "SHOW max_connections").unwrap(), "200");
    let directory = directory_of(&url);
    let pid = server.pid().unwrap();
    assert!(is_running(pid));

    server.stop().unwrap();
    assert_eq!(server.pid(), None);
    assert!(!is_running(pid));
    assert!(Path::new(&directory).exists(), "a stopped server can be restarted");

    drop(server);
    assert!(!Path::new(&directory).exists());
}

#[test]
fn committed_data_survives_a_kill_and_a_restart() {
    let mut server = PostgresServer::builder().start().unwrap();
    let (url, port) = (server.url("postgres"), server.port());
    psql(&url, "CREATE TABLE survivors (n int); INSERT INTO survivors VALUES (42)").unwrap();
    // A busy session is the last to notice that the main process is gone.
    let mut busy = busy_session(&url);

    let pid = server.pid().unwrap();
    server.kill().unwrap();
    assert!(!is_running(pid));
    server.restart().unwrap();

    assert!(!busy.wait().unwrap().success());
    assert_eq!(server.port(), port);
    assert_eq!(psql(&url, "SELECT n FROM survivors").unwrap(), "42");
}

#[test]
fn databases_are_separate_and_dropped_even_while_in_use() {
    let one = TestDatabase::create("same hint").unwrap();
    let other = TestDatabase::create("same hint").unwrap();
    psql(one.url(), "CREATE TABLE only_here ()").unwrap();
    psql(other.url(), "CREATE TABLE only_here ()").unwrap();
    let mut busy = busy_session(one.url());

    let count = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", one.name());
    assert_eq!(psql(other.url(), &count).unwrap(), "1");
    drop(one);
    assert_eq!(psql(other.url(), &count).unwrap(), "0");
    assert!(!busy.wait().unwrap().success());
}

#[test]
fn nothing_is_left_when_the_owner_is_killed() {
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", "own_a_server_until_killed", "--ignored", "--nocapture"])
        .env(OWNER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let url = lines.find_map(|line| line.unwrap().split_once("url=").map(|(_, url)| url.to_owned())).unwrap();
    let directory = directory_of(&url);
    let pid: u32 = fs::read_to_string(format!("{directory}/running/pid")).unwrap().trim().parse().unwrap();
    assert!(is_running(pid));

    owner.kill().unwrap();
    owner.wait().unwrap();

    eventually("the server is gone", || !is_running(pid));
    eventually("the directory is gone", || !Path::new(&directory).exists());
}

/// Not a test: the body of the process that the test above kills.
#[test]
#[ignore = "runs only as the process that another test starts and kills"]
fn own_a_server_until_killed() {
    if env::var_os(OWNER).is_none() {
        return;
    }
    let server = PostgresServer::builder().start().unwrap();
    println!("\nurl={}", server.url("postgres"));
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
}

/// Starts a session with a statement that only computes; returns once the statement runs.
fn busy_session(url: &str) -> Child {
    let bin = PostgresInstallation::find().unwrap();
    let child = Command::new(bin.program("psql"))
        .args(["-X", "-d", url, "-c"])
        .arg("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b /* busy */")
        // If the kill misses it, it must not run forever.
        .env("PGOPTIONS", "-c statement_timeout=30s")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the statement runs", || {
        let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%busy */' \
                       AND datname = current_database()";
        psql(url, running).unwrap() == "1"
    });
    child
}

fn directory_of(url: &str) -> String {
    let data = psql(url, "SHOW data_directory").unwrap();
    data.strip_suffix("/data").unwrap().to_owned()
}

fn is_running(pid: u32) -> bool {
    // A zombie is not running; in a container it may never be reaped.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
