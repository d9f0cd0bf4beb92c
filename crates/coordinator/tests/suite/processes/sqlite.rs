//! Two processes on one SQLite file.

use std::{env, fs, path::PathBuf, time::Duration};

use orchestrix_core::{NewJob, Start};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::prelude::*;
use rusqlite::Connection;

use super::node::Node;
use crate::support::{LIMIT, TERM, job, until};

/// Writes down every job that becomes claimable, and in which epoch.
const AUDIT: &str = "
    CREATE TABLE noted (job BLOB NOT NULL, epoch INTEGER NOT NULL);
    CREATE TRIGGER note AFTER UPDATE OF state ON job WHEN OLD.state = 'scheduled' AND NEW.state = 'pending'
    BEGIN INSERT INTO noted SELECT NEW.id, epoch FROM leader; END";

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_on_a_file_one_leads_and_the_other_when_it_was_killed() {
    const JOBS: i64 = 80;
    let directory = Directory(env::temp_dir().join(format!("orchestrix-nodes-{}", std::process::id())));
    fs::create_dir_all(&directory.0).unwrap();
    let file = directory.0.join("jobs.db");
    let store = SqliteStore::open(SqliteOptions { busy_timeout: LIMIT, ..SqliteOptions::new(&file) }).await.unwrap();
    let connection = Connection::open(&file).unwrap();
    connection.busy_timeout(LIMIT).unwrap();
    connection.execute_batch(AUDIT).unwrap();

    let url = format!("sqlite:{}", file.display());
    let mut nodes = ["a", "b"].map(|name| Node::start(name, &url, TERM));
    let leader = until("one leads", async || nodes.iter().position(|node| node.standing().leading)).await;
    let epoch = nodes[leader].standing().epoch;
    nodes[1 - leader].until("it follows", |now| now.epoch == epoch && !now.leading).await;
    // Due before, while and after nobody leads.
    for n in 1..=JOBS.unsigned_abs() {
        let start = Start::After(Duration::from_millis(50 * n));
        store.enqueue_job(NewJob { start, ..job("later") }).await.unwrap();
    }
    let promoted = || -> i64 { connection.query_row("SELECT count(*) FROM noted", (), |row| row.get(0)).unwrap() };
    until("some are promoted", async || (promoted() > 3).then_some(())).await;
    nodes[leader].kill();
    nodes[1 - leader].until("it leads", |now| now.leading && now.epoch == epoch + 1).await;
    until("all are promoted", async || (promoted() >= JOBS).then_some(())).await;

    let sql = "SELECT count(*), count(DISTINCT job), min(epoch), max(epoch) FROM noted";
    let found: (i64, i64, i64, i64) =
        connection.query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    assert_eq!(found, (JOBS, JOBS, epoch, epoch + 1), "each once, some by either");
}
