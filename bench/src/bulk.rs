//! `bulk`: a thousand jobs a call, on two lanes.

use std::mem;

use anyhow::Result;
use bytes::Bytes;
use futures_util::SinkExt;
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

const LANES: usize = 2;
const CALL: usize = 1_000;
const JOBS: usize = 100_000;
/// Calls of each lane before the clock starts.
const WARM: usize = 6;

fn calls(scale: Scale) -> usize {
    scale.of(JOBS).div_ceil(LANES * CALL)
}

/// `Store::enqueue_many` from two tasks that share one store.
pub(crate) struct EnqueueMany {
    calls: usize,
}

pub(crate) fn ours(scale: Scale) -> EnqueueMany {
    EnqueueMany { calls: calls(scale) }
}

pub(crate) struct EnqueueManySession {
    store: PostgresStore,
    lots: Vec<Vec<Vec<NewJob>>>,
}

fn batch(n: usize) -> Vec<NewJob> {
    (n * CALL..(n + 1) * CALL).map(job).collect()
}

async fn enqueue_many(store: &PostgresStore, lots: Vec<Vec<Vec<NewJob>>>) -> Result<u64> {
    let calls = lots.iter().map(Vec::len).sum::<usize>();
    let lanes = lots.into_iter().map(|lot| {
        let store = store.clone();
        tokio::spawn(async move {
            for batch in lot {
                store.enqueue_many(batch).await?;
            }
            anyhow::Ok(())
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await??;
    }
    Ok((calls * CALL) as u64)
}

impl Side for EnqueueMany {
    type Session = EnqueueManySession;

    async fn prepare(&self, url: &str) -> Result<()> {
        drop(PostgresStore::open(PostgresOptions::new(url)).await?);
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<EnqueueManySession> {
        let store = PostgresStore::open(PostgresOptions::new(url)).await?;
        Ok(EnqueueManySession { store, lots: lots(LANES, self.calls, batch) })
    }

    async fn warm(&self, session: &mut EnqueueManySession) -> Result<u64> {
        enqueue_many(&session.store, lots(LANES, WARM, batch)).await
    }

    async fn run(&self, session: &mut EnqueueManySession) -> Result<u64> {
        enqueue_many(&session.store, mem::take(&mut session.lots)).await
    }
}

/// COPY in text format, a transaction per thousand rows, from two connections.
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

// The payloads hold nothing that the text format would have to escape.
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
