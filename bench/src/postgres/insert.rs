//! The limit of `single`: one INSERT and commit per job, from as many connections as there are callers.

use std::mem;

use anyhow::Result;
use tokio_postgres::{Client, Statement};

use crate::{
    arguments::Scale,
    jobs::{inputs_per_caller, payload},
    measure::Workload,
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
    inputs: Vec<Vec<String>>,
}

impl InsertSession {
    async fn insert(&mut self, inputs: Vec<Vec<String>>) -> Result<u64> {
        let jobs = inputs.iter().map(Vec::len).sum::<usize>();
        let callers = self.callers.drain(..).zip(inputs).map(|((client, insert), input)| {
            tokio::spawn(async move {
                for payload in input {
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

impl Workload for Insert {
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
        Ok(InsertSession { callers, inputs: inputs_per_caller(CALLERS, self.each, payload) })
    }

    async fn warm(&self, session: &mut InsertSession) -> Result<u64> {
        session.insert(inputs_per_caller(CALLERS, WARM, payload)).await
    }

    async fn run(&self, session: &mut InsertSession) -> Result<u64> {
        let inputs = mem::take(&mut session.inputs);
        session.insert(inputs).await
    }
}
