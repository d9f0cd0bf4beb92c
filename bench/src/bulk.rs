//! `bulk`: a thousand jobs per call, from two callers.

use std::{mem, sync::Arc};

use anyhow::Result;
use orchestrix_core::NewJob;
use orchestrix_store::Store;

use crate::{
    arguments::Scale,
    backend,
    jobs::{inputs_per_caller, job},
    measure::Workload,
};

pub(crate) const CALLERS: usize = 2;
pub(crate) const CALL: usize = 1_000;
pub(crate) const JOBS: usize = 100_000;
/// Calls of each caller before the clock starts.
pub(crate) const WARM: usize = 6;

/// Calls of each caller while it runs.
pub(crate) fn calls(scale: Scale) -> usize {
    scale.of(JOBS).div_ceil(CALLERS * CALL)
}

/// `enqueue_jobs` from two tasks that share one store.
pub(crate) struct EnqueueMany {
    calls: usize,
}

pub(crate) fn ours(scale: Scale) -> EnqueueMany {
    EnqueueMany { calls: calls(scale) }
}

pub(crate) struct EnqueueManySession {
    store: Arc<dyn Store>,
    inputs: Vec<Vec<Vec<NewJob>>>,
}

fn batch(n: usize) -> Vec<NewJob> {
    (n * CALL..(n + 1) * CALL).map(job).collect()
}

async fn enqueue_many(store: &Arc<dyn Store>, inputs: Vec<Vec<Vec<NewJob>>>) -> Result<u64> {
    let calls = inputs.iter().map(Vec::len).sum::<usize>();
    let callers = inputs.into_iter().map(|input| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for batch in input {
                store.enqueue_jobs(batch).await?;
            }
            anyhow::Ok(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    Ok((calls * CALL) as u64)
}

impl Workload for EnqueueMany {
    type Session = EnqueueManySession;

    async fn prepare(&self, url: &str) -> Result<()> {
        drop(backend::open(url).await?);
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<EnqueueManySession> {
        let store = backend::open(url).await?;
        Ok(EnqueueManySession { store, inputs: inputs_per_caller(CALLERS, self.calls, batch) })
    }

    async fn warm(&self, session: &mut EnqueueManySession) -> Result<u64> {
        enqueue_many(&session.store, inputs_per_caller(CALLERS, WARM, batch)).await
    }

    async fn run(&self, session: &mut EnqueueManySession) -> Result<u64> {
        enqueue_many(&session.store, mem::take(&mut session.inputs)).await
    }
}
