//! One recorded job.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use orchestrix_core::{DependsOn, Job as Record, JobId, JobState, Json};
use orchestrix_store::{Enqueued, JobSummary, Store, StoreError};
use rand::RngExt;
use serde::de::DeserializeOwned;

use crate::{ClientError, Job, Result};

/// A job that is durably recorded.
pub struct JobHandle<J> {
    store: Arc<dyn Store>,
    enqueued: Enqueued,
    kind: PhantomData<fn() -> J>,
}

/// The pauses between looks at a job that is waited for: short at first, for jobs that are done at once.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(500);

impl<J> JobHandle<J> {
    pub(crate) fn new(store: Arc<dyn Store>, enqueued: Enqueued) -> Self {
        Self { store, enqueued, kind: PhantomData }
    }

    /// Its id; under an idempotency key, the id of the first.
    pub fn id(&self) -> JobId {
        self.enqueued.id
    }

    /// Whether its idempotency key was known and nothing new was recorded.
    pub fn is_duplicate(&self) -> bool {
        self.enqueued.duplicate
    }

    /// Where it stood when it was recorded.
    pub fn recorded_as(&self) -> JobState {
        self.enqueued.state
    }

    /// Where it stands now.
    pub async fn status(&self) -> Result<JobSummary> {
        let id = self.id();
        Ok(self.store.job_summary(id).await?.ok_or(StoreError::JobNotFound(id))?)
    }

    /// Cancels it: at once if it waits, when its worker lets go if it runs. Answers where it stands.
    pub async fn cancel(&self) -> Result<JobState> {
        Ok(self.store.cancel_job(self.id()).await?)
    }

    /// Waits until it is over, however long that takes, through any absence of the database; then gives what it
    /// left behind. Bound it with `tokio::time::timeout`.
    pub async fn wait(&self) -> Result<J::Output>
    where
        J: Job,
    {
        let mut pause = SHORTEST;
        loop {
            match self.status().await {
                // Gone away or retried by an operator since: look again.
                Ok(job) if job.state.is_terminal() => match self.result().await {
                    Err(ClientError::NotFinished(_) | ClientError::Store(StoreError::Unavailable(_))) => {}
                    result => return result,
                },
                Ok(_) | Err(ClientError::Store(StoreError::Unavailable(_))) => {}
                Err(error) => return Err(error),
            }
            let jittered = pause.mul_f64(rand::rng().random_range(0.75..=1.0));
            tokio::time::sleep(jittered).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// What it left behind, if it is over.
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
