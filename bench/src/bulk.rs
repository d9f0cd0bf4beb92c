//! `bulk`: a thousand jobs a call, on two lanes.

use std::{mem, sync::Arc};

use anyhow::Result;
use orchestrix_core::NewJob;
use orchestrix_store::Store;

use crate::{
    arguments::Scale,
    backend,
    jobs::{job, lots},
    measure::Side,
};

pub(crate) const LANES: usize = 2;
pub(crate) const CALL: usize = 1_000;
pub(crate) const JOBS: usize = 100_000;
/// Calls of each lane before the clock starts.
pub(crate) const WARM: usize = 6;

/// Calls of each lane while it runs.
pub(crate) fn calls(scale: Scale) -> usize {
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
    store: Arc<dyn Store>,
    lots: Vec<Vec<Vec<NewJob>>>,
}

fn batch(n: usize) -> Vec<NewJob> {
    (n * CALL..(n + 1) * CALL).map(job).collect()
}

async fn enqueue_many(store: &Arc<dyn Store>, lots: Vec<Vec<Vec<NewJob>>>) -> Result<u64> {
    let calls = lots.iter().map(Vec::len).sum::<usize>();
    let lanes = lots.into_iter().map(|lot| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for batch in lot {
                store.enqueue_jobs(batch).await?;
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
        drop(backend::open(url).await?);
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<EnqueueManySession> {
        let store = backend::open(url).await?;
        Ok(EnqueueManySession { store, lots: lots(LANES, self.calls, batch) })
    }

    async fn warm(&self, session: &mut EnqueueManySession) -> Result<u64> {
        enqueue_many(&session.store, lots(LANES, WARM, batch)).await
    }

    async fn run(&self, session: &mut EnqueueManySession) -> Result<u64> {
        enqueue_many(&session.store, mem::take(&mut session.lots)).await
    }
}
