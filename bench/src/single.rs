//! `single`: many callers, each enqueueing one job at a time.

use std::mem;

use anyhow::Result;
use orchestrix_core::NewJob;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::Store;
use tokio_postgres::{Client, Statement};

use crate::{
    arguments::Scale,
    jobs::{job, lots, payload},
    measure::Side,
    server::connect,
};

const CALLERS: usize = 64;
const JOBS: usize = 40_000;
/// Jobs of each caller before the clock starts.
const WARM: usize = 10;

/// `Store::enqueue` from 64 tasks that share one store.
pub(crate) struct Enqueue {
    each: usize,
}

pub(crate) fn ours(scale: Scale) -> Enqueue {
    Enqueue { each: scale.of(JOBS).div_ceil(CALLERS) }
}

pub(crate) struct EnqueueSession {
    store: PostgresStore,
    lots: Vec<Vec<NewJob>>,
}

async fn enqueue(store: &PostgresStore, lots: Vec<Vec<NewJob>>) -> Result<u64> {
    let jobs = lots.iter().map(Vec::len).sum::<usize>();
    let callers = lots.into_iter().map(|lot| {
        let store = store.clone();
        tokio::spawn(async move {
            for job in lot {
                store.enqueue(job).await?;
            }
            anyhow::Ok(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    Ok(jobs as u64)
}

impl Side for Enqueue {
    type Session = EnqueueSession;

    async fn prepare(&self, url: &str) -> Result<()> {
        drop(PostgresStore::open(PostgresOptions::new(url)).await?);
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<EnqueueSession> {
        let store = PostgresStore::open(PostgresOptions::new(url)).await?;
        Ok(EnqueueSession { store, lots: lots(CALLERS, self.each, job) })
    }

    async fn warm(&self, session: &mut EnqueueSession) -> Result<u64> {
        enqueue(&session.store, lots(CALLERS, WARM, job)).await
    }

    async fn run(&self, session: &mut EnqueueSession) -> Result<u64> {
        enqueue(&session.store, mem::take(&mut session.lots)).await
    }
}

/// An INSERT and a commit per job, from 64 connections.
pub(crate) struct Insert {
    each: usize,
}

pub(crate) fn limit(scale: Scale) -> Insert {
    Insert { each: scale.of(JOBS).div_ceil(CALLERS) }
}

pub(crate) struct InsertSession {
    callers: Vec<(Client, Statement)>,
    lots: Vec<Vec<String>>,
}

impl InsertSession {
    async fn insert(&mut self, lots: Vec<Vec<String>>) -> Result<u64> {
        let jobs = lots.iter().map(Vec::len).sum::<usize>();
        let callers = self.callers.drain(..).zip(lots).map(|((client, insert), lot)| {
            tokio::spawn(async move {
                for payload in lot {
                    client.execute(&insert, &[&payload]).await?;
                }
                anyhow::Ok((client, insert))
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            self.callers.push(caller.await??);
        }
        Ok(jobs as u64)
    }
}

impl Side for Insert {
    type Session = InsertSession;

    async fn prepare(&self, url: &str) -> Result<()> {
        Ok(connect(url).await?.batch_execute(include_str!("sql/queue.sql")).await?)
    }

    async fn open(&self, url: &str) -> Result<InsertSession> {
        let mut callers = Vec::new();
        for _ in 0..CALLERS {
            let client = connect(url).await?;
            let insert = client.prepare(include_str!("sql/insert.sql")).await?;
            callers.push((client, insert));
        }
        Ok(InsertSession { callers, lots: lots(CALLERS, self.each, payload) })
    }

    async fn warm(&self, session: &mut InsertSession) -> Result<u64> {
        session.insert(lots(CALLERS, WARM, payload)).await
    }

    async fn run(&self, session: &mut InsertSession) -> Result<u64> {
        let lots = mem::take(&mut session.lots);
        session.insert(lots).await
    }
}
