//! `single`: many callers, each enqueueing one job at a time.

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

pub(crate) const CALLERS: usize = 64;
pub(crate) const JOBS: usize = 40_000;
/// Jobs of each caller before the clock starts.
pub(crate) const WARM: usize = 10;

/// `enqueue_job` from 64 tasks that share one store.
pub(crate) struct Enqueue {
    each: usize,
}

pub(crate) fn ours(scale: Scale) -> Enqueue {
    of(scale.of(JOBS))
}

/// The same with this number of jobs in total.
pub(crate) fn of(jobs: usize) -> Enqueue {
    Enqueue { each: jobs.div_ceil(CALLERS) }
}

pub(crate) struct EnqueueSession {
    store: Arc<dyn Store>,
    inputs: Vec<Vec<NewJob>>,
}

async fn enqueue(store: &Arc<dyn Store>, inputs: Vec<Vec<NewJob>>) -> Result<u64> {
    let jobs = inputs.iter().map(Vec::len).sum::<usize>();
    let callers = inputs.into_iter().map(|input| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for job in input {
                store.enqueue_job(job).await?;
            }
            anyhow::Ok(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    Ok(jobs as u64)
}

impl Workload for Enqueue {
    type Session = EnqueueSession;

    async fn prepare(&self, url: &str) -> Result<()> {
        drop(backend::open(url).await?);
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<EnqueueSession> {
        let store = backend::open(url).await?;
        Ok(EnqueueSession { store, inputs: inputs_per_caller(CALLERS, self.each, job) })
    }

    async fn warm(&self, session: &mut EnqueueSession) -> Result<u64> {
        enqueue(&session.store, inputs_per_caller(CALLERS, WARM, job)).await
    }

    async fn run(&self, session: &mut EnqueueSession) -> Result<u64> {
        enqueue(&session.store, mem::take(&mut session.inputs)).await
    }
}
