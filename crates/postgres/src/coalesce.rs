//! Single enqueues that come at the same time share a statement.
//!
//! A caller's job joins whatever batch is gathering; it is answered after that batch is committed. While batches are
//! on their way to the disk the next one gathers, so batches grow with the load and a lone caller waits for nobody.

use std::sync::Arc;

use orchestrix_core::NewJob;
use orchestrix_store::{Enqueued, Result, StoreError};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::{
    database::Database,
    enqueue::{record_each, tally},
};

/// The most jobs of one batch.
const MAX_BATCH: usize = 1_000;
/// The most bytes of payload of one batch, past which it takes no further job.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Batches under way at once: one writes while the other waits for the disk.
const IN_FLIGHT: usize = 2;

type Waiting = (NewJob, oneshot::Sender<Result<Enqueued>>);

/// Gathers single jobs into batches.
///
/// Jobs with an idempotency key gather by themselves: whoever is recording the same key in a long transaction must be
/// waited for, and jobs without a key should not have to.
#[derive(Debug, Clone)]
pub(crate) struct Coalescer {
    plain: mpsc::Sender<Waiting>,
    keyed: mpsc::Sender<Waiting>,
}

impl Coalescer {
    /// Starts gathering. Ends when the last handle is dropped.
    pub(crate) fn start(database: Database) -> Self {
        let start = |database: Database| {
            let (sender, receiver) = mpsc::channel(4 * MAX_BATCH);
            tokio::spawn(gather(database, receiver));
            sender
        };
        Self { plain: start(database.clone()), keyed: start(database) }
    }

    /// Records `job` with whatever else is being recorded; answers after the commit.
    pub(crate) async fn record(&self, job: NewJob) -> Result<Enqueued> {
        let stopped = || StoreError::Unavailable("the store has been closed".into());
        let (answer, receiver) = oneshot::channel();
        let batch = if job.idempotency_key.is_some() { &self.keyed } else { &self.plain };
        batch.send((job, answer)).await.map_err(|_| stopped())?;
        receiver.await.map_err(|_| stopped())?
    }
}

async fn gather(database: Database, mut receiver: mpsc::Receiver<Waiting>) {
    let slots = Arc::new(Semaphore::new(IN_FLIGHT));
    while let Some(first) = receiver.recv().await {
        // Everybody who comes while all slots are taken joins this batch.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        // Callers that were answered together come back together: let them all in before the batch leaves.
        tokio::task::yield_now().await;
        let mut bytes = first.0.payload.as_str().len();
        let mut batch = vec![first];
        while batch.len() < MAX_BATCH && bytes < MAX_BYTES {
            let Ok(next) = receiver.try_recv() else { break };
            bytes += next.0.payload.as_str().len();
            batch.push(next);
        }
        let database = database.clone();
        tokio::spawn(async move {
            let (jobs, answers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            let results = record_each(&database, &jobs).await;
            // Here, since whoever asked may have gone away.
            tally(jobs.iter().zip(&results).filter_map(|(job, result)| Some((job, result.as_ref().ok()?)))).count();
            drop(slot);
            for (answer, result) in answers.into_iter().zip(results) {
                // A caller that went away does not need to know; its job is recorded all the same.
                let _ = answer.send(result);
            }
        });
    }
}
