//! The limit of `single` and `bulk`: inserts into a plain table from one connection, with a fixed number per commit.

use std::mem;

use anyhow::Result;
use rusqlite::Connection;
use uuid::Uuid;

use crate::{arguments::Scale, bulk, jobs::payload, measure::Workload, sqlite::files::connect};

/// Inserts with a fixed number of rows per transaction.
pub(crate) struct Insert {
    jobs: usize,
    warm: usize,
    per_commit: usize,
}

/// One commit per job. Each waits for the disk, so a few thousand suffice for the rate.
pub(crate) fn one_by_one(scale: Scale) -> Insert {
    Insert { jobs: scale.of(10_000), warm: 100, per_commit: 1 }
}

/// One commit per thousand jobs.
pub(crate) fn batched(scale: Scale) -> Insert {
    let calls = |each: usize| bulk::CALLERS * each * bulk::CALL;
    Insert { jobs: calls(bulk::calls(scale)), warm: calls(bulk::WARM), per_commit: bulk::CALL }
}

pub(crate) struct Session {
    connection: Connection,
    warm: Vec<(Uuid, String)>,
    run: Vec<(Uuid, String)>,
}

/// The rows, created before the clock starts.
pub(crate) fn rows(count: usize) -> Vec<(Uuid, String)> {
    (0..count).map(|n| (Uuid::now_v7(), payload(n))).collect()
}

/// Inserts rows in the order of their ids.
pub(crate) fn insert(connection: &Connection, rows: &[(Uuid, String)], per_commit: usize) -> Result<u64> {
    for batch in rows.chunks(per_commit) {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
        let mut insert = connection.prepare_cached(include_str!("sql/insert.sql"))?;
        for (id, payload) in batch {
            insert.execute((id, payload))?;
        }
        connection.prepare_cached("COMMIT")?.execute(())?;
    }
    Ok(rows.len() as u64)
}

impl Workload for Insert {
    type Session = Session;

    async fn prepare(&self, url: &str) -> Result<()> {
        Ok(connect(url)?.execute_batch(include_str!("sql/queue.sql"))?)
    }

    async fn open(&self, url: &str) -> Result<Session> {
        // In this order, so that the ids ascend.
        Ok(Session { connection: connect(url)?, warm: rows(self.warm), run: rows(self.jobs) })
    }

    async fn warm(&self, session: &mut Session) -> Result<u64> {
        insert(&session.connection, &mem::take(&mut session.warm), self.per_commit)
    }

    async fn run(&self, session: &mut Session) -> Result<u64> {
        insert(&session.connection, &mem::take(&mut session.run), self.per_commit)
    }
}
