//! The limit of `drain`: the bare statements on one connection, with one commit per claim and one per completion. A
//! second connection would only wait for the first.

use std::hint::black_box;

use anyhow::{Result, ensure};
use rusqlite::Connection;
use uuid::Uuid;

use crate::{
    arguments::Scale,
    backend::Backend,
    drain::{JOBS, warm},
    measure::Workload,
    sqlite::{
        files::connect,
        insert::{insert, rows},
    },
};

const BATCH: usize = Backend::Sqlite.batch();

/// Claims and completes in the plain table; finished rows stay in place.
pub(crate) struct BareDrain {
    jobs: usize,
}

pub(crate) fn limit(scale: Scale) -> BareDrain {
    BareDrain { jobs: scale.of(JOBS) }
}

fn drain(connection: &Connection, jobs: usize) -> Result<u64> {
    let mut done = 0;
    while done < jobs {
        let token = Uuid::now_v7();
        let ids = claim(connection, token, BATCH.min(jobs - done))?;
        ensure!(!ids.is_empty(), "claims return nothing although jobs are left");
        complete(connection, token, &ids)?;
        done += ids.len();
    }
    Ok(jobs as u64)
}

// A single UPDATE … RETURNING takes as long.
fn claim(connection: &Connection, token: Uuid, batch: usize) -> Result<Vec<Uuid>> {
    let mut ids = Vec::with_capacity(batch);
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
    let mut claimable = connection.prepare_cached(include_str!("sql/claimable.sql"))?;
    let mut rows = claimable.query([batch as i64])?;
    while let Some(row) = rows.next()? {
        ids.push(row.get(0)?);
        black_box(row.get::<_, String>(1)?);
    }
    let mut claim = connection.prepare_cached(include_str!("sql/claim.sql"))?;
    for id in &ids {
        claim.execute((id, token))?;
    }
    connection.prepare_cached("COMMIT")?.execute(())?;
    Ok(ids)
}

fn complete(connection: &Connection, token: Uuid, ids: &[Uuid]) -> Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
    let mut complete = connection.prepare_cached(include_str!("sql/complete.sql"))?;
    for (n, id) in ids.iter().enumerate() {
        ensure!(complete.execute((id, token, n as i64))? == 1, "a completion was not applied");
    }
    connection.prepare_cached("COMMIT")?.execute(())?;
    Ok(())
}

impl Workload for BareDrain {
    type Session = Connection;

    async fn prepare(&self, url: &str) -> Result<()> {
        let connection = connect(url)?;
        connection.execute_batch(include_str!("sql/queue.sql"))?;
        // As for the store: one transaction per few thousand.
        insert(&connection, &rows(warm(BATCH) + self.jobs), 5_000)?;
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<Connection> {
        connect(url)
    }

    async fn warm(&self, connection: &mut Connection) -> Result<u64> {
        drain(connection, warm(BATCH))
    }

    async fn run(&self, connection: &mut Connection) -> Result<u64> {
        drain(connection, self.jobs)
    }
}
