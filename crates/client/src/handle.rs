//! One enqueued job.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use orchestrix_core::{Backoff, DependsOn, Job as Record, JobId, JobState, Json};
use orchestrix_store::{Enqueued, JobSummary, Store, StoreError};
use serde::de::DeserializeOwned;

use crate::{ClientError, Job, Result};

/// A handle to an enqueued job.
pub struct JobHandle<J> {
    store: Arc<dyn Store>,
    enqueued: Enqueued,
    kind: PhantomData<fn() -> J>,
}

/// The bounds of the pause between polls in [`JobHandle::wait`]. It starts short, for jobs that finish at once.
const SHORTEST_POLL: Duration = Duration::from_millis(5);
const LONGEST_POLL: Duration = Duration::from_millis(500);

impl<J> JobHandle<J> {
    pub(crate) fn new(store: Arc<dyn Store>, enqueued: Enqueued) -> Self {
        Self { store, enqueued, kind: PhantomData }
    }

    /// The job's id. For a repeated idempotency key, the id of the first job.
    pub fn id(&self) -> JobId {
        self.enqueued.id
    }

    /// Whether the idempotency key existed already, so that nothing was enqueued.
    pub fn is_duplicate(&self) -> bool {
        self.enqueued.duplicate
    }

    /// The job's state when it was enqueued.
    pub fn initial_state(&self) -> JobState {
        self.enqueued.state
    }

    /// The job's current status.
    pub async fn status(&self) -> Result<JobSummary> {
        let id = self.id();
        Ok(self.store.job_summary(id).await?.ok_or(StoreError::JobNotFound(id))?)
    }

    /// Cancels the job and returns its state. A running job is cancelled when its worker stops the handler.
    pub async fn cancel(&self) -> Result<JobState> {
        Ok(self.store.cancel_job(self.id()).await?)
    }

    /// Waits until the job finishes and returns its result. Retries without limit while the database is unavailable:
    /// bound it with `tokio::time::timeout`.
    pub async fn wait(&self) -> Result<J::Output>
    where
        J: Job,
    {
        let mut poll_delay = Backoff::new(SHORTEST_POLL, LONGEST_POLL);
        loop {
            match self.status().await {
                // The database became unavailable, or an operator retried the job: poll again.
                Ok(job) if job.state.is_terminal() => match self.result().await {
                    Err(ClientError::NotFinished(_) | ClientError::Store(StoreError::Unavailable(_))) => {}
                    result => return result,
                },
                Ok(_) | Err(ClientError::Store(StoreError::Unavailable(_))) => {}
                Err(error) => return Err(error),
            }
            let delay = poll_delay.next_jittered(&mut rand::rng());
            tokio::time::sleep(delay).await;
        }
    }

    /// The job's result.
    ///
    /// # Errors
    /// If the job has not finished, failed or was cancelled.
    pub async fn result(&self) -> Result<J::Output>
    where
        J: Job,
    {
        let id = self.id();
        output(self.store.job(id).await?.ok_or(StoreError::JobNotFound(id))?)
    }
}

fn output<T: DeserializeOwned>(job: Record) -> Result<T> {
    let id = job.id;
    let reason = job.reason.unwrap_or_default();
    match job.state {
        JobState::Completed => {
            let result = job.result.unwrap_or_else(Json::null);
            result.to().map_err(|source| ClientError::Output { id, source })
        }
        JobState::Dead => {
            let error = job.attempt_log.into_iter().rev().find_map(|attempt| attempt.error).unwrap_or_default();
            Err(ClientError::Failed { id, reason, error })
        }
        JobState::Cancelled => Err(ClientError::Cancelled { id, reason }),
        _ => Err(ClientError::NotFinished(id)),
    }
}

impl<J> Clone for JobHandle<J> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.store), self.enqueued)
    }
}

impl<J> fmt::Debug for JobHandle<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobHandle").field(&self.enqueued).finish()
    }
}

impl<J> From<&JobHandle<J>> for DependsOn {
    fn from(handle: &JobHandle<J>) -> Self {
        Self::Job(handle.id())
    }
}
