//! The limit of `single`: one INSERT and commit per job, from as many connections as there are callers.

use std::mem;

use anyhow::Result;
use tokio_postgres::{Client, Statement};

use crate::{
    arguments::Scale,
    jobs::{lots, payload},
    measure::Side,
    postgres::server::connect,
    single::{CALLERS, JOBS, WARM},
};

/// One INSERT and commit per job, from 64 connections.
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
