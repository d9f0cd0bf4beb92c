//! The limit of `drain`: the least work that claims and keeps jobs in the same order.

use std::{hint::black_box, mem};

use anyhow::{Result, ensure};
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::{
    arguments::Scale,
    backend::Backend,
    drain::{CLAIMERS, Claimer, JOBS, drain_all, warm},
    measure::Workload,
    postgres::server::connect,
};

const BATCH: usize = Backend::Postgres.batch();

/// The bare statements: claim, read the payload, move to history.
pub(crate) struct BareDrain {
    jobs: usize,
}

pub(crate) fn limit(scale: Scale) -> BareDrain {
    BareDrain { jobs: scale.of(JOBS) }
}

pub(crate) struct BareClaimer {
    client: Client,
    claim: Statement,
    complete: Statement,
}

impl BareClaimer {
    async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        // The tables were never analyzed: without these settings the limit would depend on the planner's guesses.
        client
            .batch_execute(
                "SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off",
            )
            .await?;
        let claim = client.prepare(include_str!("sql/bare_claim.sql")).await?;
        let complete = client.prepare(include_str!("sql/bare_complete.sql")).await?;
        Ok(Self { client, claim, complete })
    }
}

impl Claimer for BareClaimer {
    async fn work(&mut self, batch: usize) -> Result<usize> {
        let secret = Uuid::now_v7();
        let rows = self.client.query(&self.claim, &[&"default", &(batch as i64), &secret]).await?;
        let mut ids: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        black_box(rows.iter().map(|row| row.get::<_, &str>(4).len()).sum::<usize>());
        if ids.is_empty() {
            return Ok(0);
        }
        ids.sort_unstable();
        let moved = self.client.query(&self.complete, &[&ids, &secret]).await?;
        ensure!(moved.len() == ids.len(), "{} of {} completions were applied", moved.len(), ids.len());
        Ok(ids.len())
    }
}

impl Workload for BareDrain {
    type Session = Vec<BareClaimer>;

    async fn prepare(&self, url: &str) -> Result<()> {
        let client = connect(url).await?;
        client.batch_execute(include_str!("sql/bare_schema.sql")).await?;
        // As for the store: one transaction per few thousand, so that ids and rows have the same layout.
        let fill = client.prepare(include_str!("sql/bare_fill.sql")).await?;
        let total = warm(BATCH) + self.jobs;
        for begin in (0..total).step_by(5_000) {
            client.execute(&fill, &[&((total - begin).min(5_000) as i64)]).await?;
        }
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<Vec<BareClaimer>> {
        let mut claimers = Vec::new();
        for _ in 0..CLAIMERS {
            claimers.push(BareClaimer::connect(url).await?);
        }
        Ok(claimers)
    }

    async fn warm(&self, claimers: &mut Vec<BareClaimer>) -> Result<u64> {
        *claimers = drain_all(mem::take(claimers), BATCH, warm(BATCH)).await?;
        Ok(warm(BATCH) as u64)
    }

    async fn run(&self, claimers: &mut Vec<BareClaimer>) -> Result<u64> {
        *claimers = drain_all(mem::take(claimers), BATCH, self.jobs).await?;
        Ok(self.jobs as u64)
    }
}
