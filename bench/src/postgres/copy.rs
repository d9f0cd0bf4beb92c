//! The limit of `bulk`: COPY.

use std::mem;

use anyhow::Result;
use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::{Client, Statement};

use crate::{
    arguments::Scale,
    bulk::{CALL, LANES, WARM, calls},
    jobs::{lots, payload},
    measure::Side,
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
    lanes: Vec<(Client, Statement)>,
    lots: Vec<Vec<Bytes>>,
}

// The payloads need no escaping in the text format.
fn text(n: usize) -> Bytes {
    (n * CALL..(n + 1) * CALL).map(|n| format!("default\t{}\n", payload(n))).collect::<String>().into()
}

impl CopySession {
    async fn copy(&mut self, lots: Vec<Vec<Bytes>>) -> Result<u64> {
        let calls = lots.iter().map(Vec::len).sum::<usize>();
        let lanes = self.lanes.drain(..).zip(lots).map(|((client, copy), lot)| {
            tokio::spawn(async move {
                for text in lot {
                    let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>(&copy).await?);
                    sink.send(text).await?;
                    sink.finish().await?;
                }
                anyhow::Ok((client, copy))
            })
        });
        for lane in lanes.collect::<Vec<_>>() {
            self.lanes.push(lane.await??);
        }
        Ok((calls * CALL) as u64)
    }
}

impl Side for Copy {
    type Session = CopySession;

    async fn prepare(&self, url: &str) -> Result<()> {
        Ok(connect(url).await?.batch_execute(include_str!("sql/queue.sql")).await?)
    }

    async fn open(&self, url: &str) -> Result<CopySession> {
        let mut lanes = Vec::new();
        for _ in 0..LANES {
            let client = connect(url).await?;
            let copy = client.prepare(include_str!("sql/copy.sql")).await?;
            lanes.push((client, copy));
        }
        Ok(CopySession { lanes, lots: lots(LANES, self.calls, text) })
    }

    async fn warm(&self, session: &mut CopySession) -> Result<u64> {
        session.copy(lots(LANES, WARM, text)).await
    }

    async fn run(&self, session: &mut CopySession) -> Result<u64> {
        let lots = mem::take(&mut session.lots);
        session.copy(lots).await
    }
}
