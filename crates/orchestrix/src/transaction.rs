//! Enqueueing and completing jobs in the application's own PostgreSQL transaction.

use std::{any::Any, future::Future};

use orchestrix_client::{Client, ClientError, Job, JobHandle, Request};
use orchestrix_core::{Invalid, NewJob, Queue};
use orchestrix_postgres::{CallerTransaction, PostgresStore};
use orchestrix_store::{Store, StoreError};
use orchestrix_worker::{Context, JobError, JobResult};
use serde::Serialize;

/// Enqueues jobs in the caller's own transaction: the jobs exist if and only if it commits.
///
/// A transaction is `&tokio_postgres::Transaction`, `&deadpool_postgres::Transaction`, or with the feature `sqlx`
/// `&mut sqlx::Transaction`. Workers find the jobs within a second of the commit, or at once after
/// [`notify`](EnqueueIn::notify).
///
/// # Errors
/// The errors of any enqueue, and an error if the client's store is not on PostgreSQL.
pub trait EnqueueIn {
    /// Enqueues one job.
    fn enqueue_in<'t, J: Job>(
        &self,
        tx: impl Into<CallerTransaction<'t>> + Send,
        request: impl Into<Request<J>> + Send,
    ) -> impl Future<Output = Result<JobHandle<J>, ClientError>> + Send;

    /// Enqueues all jobs or none. They may depend on each other. Build them with [`Request::build`].
    fn enqueue_all_in<'t>(
        &self,
        tx: impl Into<CallerTransaction<'t>> + Send,
        jobs: Vec<NewJob>,
    ) -> impl Future<Output = Result<Vec<orchestrix_store::Enqueued>, ClientError>> + Send;

    /// Wakes the workers of these queues. Call it after the commit.
    fn notify(&self, queues: &[Queue]);
}

fn postgres(store: &dyn Store) -> Result<&PostgresStore, StoreError> {
    let store: &dyn Any = store;
    store.downcast_ref().ok_or_else(|| {
        let text = "only a store on PostgreSQL can take part in a PostgreSQL transaction";
        StoreError::Invalid(Invalid::from(orchestrix_core::FieldError::new("database", text)))
    })
}

impl EnqueueIn for Client {
    async fn enqueue_in<'t, J: Job>(
        &self,
        tx: impl Into<CallerTransaction<'t>> + Send,
        request: impl Into<Request<J>> + Send,
    ) -> Result<JobHandle<J>, ClientError> {
        let job = request.into().build()?;
        let enqueued = self.enqueue_all_in(tx, vec![job]).await?;
        let missing = || StoreError::Backend("the store returned no id for the enqueued job".into());
        Ok(self.handle(*enqueued.first().ok_or_else(missing)?))
    }

    async fn enqueue_all_in<'t>(
        &self,
        tx: impl Into<CallerTransaction<'t>> + Send,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<orchestrix_store::Enqueued>, ClientError> {
        let tx = tx.into();
        Ok(postgres(&**self.store())?.enqueue_in(tx, jobs).await?)
    }

    fn notify(&self, queues: &[Queue]) {
        if let Ok(store) = postgres(&**self.store()) {
            store.notify(queues);
        }
    }
}

/// Completes a job in its handler's own transaction, so that the handler's writes and the completion commit together.
///
/// ```no_run
/// use orchestrix::{CompleteIn, Context, JobResult, tokio_postgres::Client};
///
/// async fn pay(ctx: &Context, client: &mut Client, order: i64) -> JobResult {
///     let tx = client.transaction().await?;
///     tx.execute("UPDATE orders SET paid = true WHERE id = $1", &[&order]).await?;
///     ctx.complete_in(&tx, &()).await?; // fails if the lease is lost
///     tx.commit().await?;
///     Ok(())
/// }
/// ```
pub trait CompleteIn {
    /// Completes the job with `output`, which the handler should also return. The job's row is locked until the
    /// transaction ends, so its lease cannot be extended meanwhile: call this last, then commit.
    ///
    /// # Errors
    /// If the lease is lost: roll back. If the worker's store is not on PostgreSQL.
    fn complete_in<'t>(
        &self,
        tx: impl Into<CallerTransaction<'t>> + Send,
        output: &(impl Serialize + Sync),
    ) -> impl Future<Output = JobResult> + Send;
}

impl CompleteIn for Context {
    async fn complete_in<'t>(
        &self,
        tx: impl Into<CallerTransaction<'t>> + Send,
        output: &(impl Serialize + Sync),
    ) -> JobResult {
        let tx = tx.into();
        let store = self.store().ok_or_else(|| JobError::new("this worker has no direct access to a database"))?;
        let store = postgres(&**store)?;
        let completion = self.completing(output)?;
        Ok(store.complete_in(tx, completion.token, completion.result).await?)
    }
}
