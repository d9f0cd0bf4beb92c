//! Jobs in a PostgreSQL transaction of the application's own.

use std::{any::Any, future::Future};

use orchestrix_client::{Client, ClientError, Job, JobHandle, Request};
use orchestrix_core::{Invalid, NewJob, Queue};
use orchestrix_postgres::{CallerTransaction, PostgresStore};
use orchestrix_store::{Store, StoreError};
use orchestrix_worker::{Context, JobError, JobResult};
use serde::Serialize;

/// Recording jobs in a transaction of the caller's own: they are there if and only if it commits.
///
/// A transaction is `&tokio_postgres::Transaction`, `&deadpool_postgres::Transaction`, or with the feature `sqlx` a
/// `&mut sqlx::Transaction`. The jobs are found within a second of the commit, or at once after
/// [`notify`](EnqueueIn::notify).
///
/// # Errors
/// Besides those of any enqueue: if the client is not on PostgreSQL.
pub trait EnqueueIn {
    /// Records one job.
    fn enqueue_in<'t, J: Job>(
        &self,
        tx: impl Into<CallerTransaction<'t>> + Send,
        request: impl Into<Request<J>> + Send,
    ) -> impl Future<Output = Result<JobHandle<J>, ClientError>> + Send;

    /// Records several jobs, all or none; they may wait for each other. Build them with [`Request::build`].
    fn enqueue_all_in<'t>(
        &self,
        tx: impl Into<CallerTransaction<'t>> + Send,
        jobs: Vec<NewJob>,
    ) -> impl Future<Output = Result<Vec<orchestrix_store::Enqueued>, ClientError>> + Send;

    /// After the commit: tells workers to look at once.
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
        let recorded = self.enqueue_all_in(tx, vec![job]).await?;
        let recorded = recorded.first().ok_or_else(|| StoreError::Backend("the job was not recorded".into()))?;
        Ok(self.recorded(*recorded))
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

/// Completing a job in a transaction of its handler's own: what the handler wrote and the end of the job are one.
///
/// ```no_run
/// use orchestrix::{CompleteIn, Context, JobResult, tokio_postgres::Client};
///
/// async fn pay(ctx: &Context, client: &mut Client, order: i64) -> JobResult {
///     let tx = client.transaction().await?;
///     tx.execute("UPDATE orders SET paid = true WHERE id = $1", &[&order]).await?;
///     ctx.complete_in(&tx, &()).await?; // refused if another worker owns the job by now
///     tx.commit().await?;
///     Ok(())
/// }
/// ```
pub trait CompleteIn {
    /// Completes the job with `output`, which should also be what the handler returns. From here on its lease is not
    /// renewed, and its row is locked until the transaction ends: call it last, then commit.
    ///
    /// # Errors
    /// If the lease is lost, in which case roll back; and if the worker is not in touch with PostgreSQL.
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
        let store = self.store().ok_or_else(|| JobError::new("this worker is not in touch with a database"))?;
        let store = postgres(&**store)?;
        let completion = self.completing(output)?;
        Ok(store.complete_in(tx, completion.token, completion.result).await?)
    }
}
