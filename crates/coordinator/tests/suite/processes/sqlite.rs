//! Two node processes on one SQLite file.

use std::{env, fs, path::PathBuf, time::Duration};

use orchestrix_core::{NewJob, Start};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::prelude::*;
use rusqlite::Connection;

use super::node::Node;
use crate::support::{TERM, TIMEOUT, job, wait_for};

/// Records every promoted job and its epoch.
const AUDIT: &str = "
    CREATE TABLE promoted_job (job BLOB NOT NULL, epoch INTEGER NOT NULL);
    CREATE TRIGGER record_promotion AFTER UPDATE OF state ON job WHEN OLD.state = 'scheduled' AND NEW.state = 'pending'
    BEGIN INSERT INTO promoted_job SELECT NEW.id, epoch FROM leader; END";

/// A directory that is removed after the test.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_on_one_file_one_leads_and_the_other_takes_over_after_a_kill() {
    const JOBS: i64 = 80;
    let directory = Directory(env::temp_dir().join(format!("orchestrix-nodes-{}", std::process::id())));
    fs::create_dir_all(&directory.0).unwrap();
    let file = directory.0.join("jobs.db");
    let store = SqliteStore::open(SqliteOptions { busy_timeout: TIMEOUT, ..SqliteOptions::new(&file) }).await.unwrap();
    let connection = Connection::open(&file).unwrap();
    connection.busy_timeout(TIMEOUT).unwrap();
    connection.execute_batch(AUDIT).unwrap();

    let url = format!("sqlite:{}", file.display());
    let mut nodes = ["a", "b"].map(|name| Node::start(name, &url, TERM));
    let leader = wait_for("one node leads", async || nodes.iter().position(|node| node.state().leading)).await;
    let epoch = nodes[leader].state().epoch;
    nodes[1 - leader].wait_for("the node follows", |now| now.epoch == epoch && !now.leading).await;
    // Due before, during and after the time without a leader.
    for n in 1..=JOBS.unsigned_abs() {
        let start = Start::After(Duration::from_millis(50 * n));
        store.enqueue_job(NewJob { start, ..job("later") }).await.unwrap();
    }
    let promoted =
        || -> i64 { connection.query_row("SELECT count(*) FROM promoted_job", (), |row| row.get(0)).unwrap() };
    wait_for("some jobs are promoted", async || (promoted() > 3).then_some(())).await;
    nodes[leader].kill();
    nodes[1 - leader].wait_for("the node leads", |now| now.leading && now.epoch == epoch + 1).await;
    wait_for("all jobs are promoted", async || (promoted() >= JOBS).then_some(())).await;

    let sql = "SELECT count(*), count(DISTINCT job), min(epoch), max(epoch) FROM promoted_job";
    let counts: (i64, i64, i64, i64) =
        connection.query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    assert_eq!(counts, (JOBS, JOBS, epoch, epoch + 1), "each job is promoted once, some by each leader");
}
