//! The limit of `bulk`: COPY.

use std::mem;

use anyhow::Result;
use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::{Client, Statement};

use crate::{
    arguments::Scale,
    bulk::{CALL, CALLERS, WARM, calls},
    jobs::{inputs_per_caller, payload},
    measure::Workload,
    postgres::server::connect,
};

/// COPY in text format, one transaction per thousand rows, from two connections.
pub(crate) struct Copy {
    calls: usize,
}

pub(crate) fn limit(scale: Scale) -> Copy {
    Copy { calls: calls(scale) }
}

pub(crate) struct CopySession {
    callers: Vec<(Client, Statement)>,
    inputs: Vec<Vec<Bytes>>,
}

// The payloads need no escaping in the text format.
fn text(n: usize) -> Bytes {
    (n * CALL..(n + 1) * CALL).map(|n| format!("default\t{}\n", payload(n))).collect::<String>().into()
}

impl CopySession {
    async fn copy(&mut self, inputs: Vec<Vec<Bytes>>) -> Result<u64> {
        let calls = inputs.iter().map(Vec::len).sum::<usize>();
        let callers = self.callers.drain(..).zip(inputs).map(|((client, copy), input)| {
            tokio::spawn(async move {
                for text in input {
                    let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>(&copy).await?);
                    sink.send(text).await?;
                    sink.finish().await?;
                }
                anyhow::Ok((client, copy))
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            self.callers.push(caller.await??);
        }
        Ok((calls * CALL) as u64)
    }
}

impl Workload for Copy {
    type Session = CopySession;

    async fn prepare(&self, url: &str) -> Result<()> {
        Ok(connect(url).await?.batch_execute(include_str!("sql/queue.sql")).await?)
    }

    async fn open(&self, url: &str) -> Result<CopySession> {
        let mut callers = Vec::new();
        for _ in 0..CALLERS {
            let client = connect(url).await?;
            let copy = client.prepare(include_str!("sql/copy.sql")).await?;
            callers.push((client, copy));
        }
        Ok(CopySession { callers, inputs: inputs_per_caller(CALLERS, self.calls, text) })
    }

    async fn warm(&self, session: &mut CopySession) -> Result<u64> {
        session.copy(inputs_per_caller(CALLERS, WARM, text)).await
    }

    async fn run(&self, session: &mut CopySession) -> Result<u64> {
        let inputs = mem::take(&mut session.inputs);
        session.copy(inputs).await
    }
}
