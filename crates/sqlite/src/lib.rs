//! Orchestrix on SQLite: one file, no server, the same promises.
//!
//! [`SqliteStore`] keeps jobs in one file in write-ahead mode with `synchronous = FULL`: what was acknowledged survives
//! the loss of power. One thread writes, with as many operations to a commit as have come in meanwhile; readers look at
//! what is committed and never wait for it. Several processes may share the file: they take turns in writing, hear of
//! each other's jobs by polling, and never own the same job.
//!
//! | module | what it owns |
//! |---|---|
//! | `database` | opening the file, the readers, and the way to the writer |
//! | `writer` | the writing thread: group commit, a savepoint per operation |
//! | `session` | one transaction: its statements, the books it keeps, whom it will wake |
//! | `settle` | the end of attempts and jobs, and what it does to those that wait |
//! | `lanes` | the order of claims, one over all queues and types |
//! | `coordination` | who leads, who is there, what is next |
//! | `diagnose` | a look at a file by somebody who wants to know what is wrong with it |
//! | `schedule`, `ledger`, `fire` | schedules, what became of their times, and the jobs they come to |
//! | the others | one group of verbs each, named as in the trait; `queries/` holds one file per statement |

mod audit;
mod claim;
mod coordination;
mod database;
pub mod diagnose;
mod enqueue;
mod error;
mod finish;
mod fire;
mod housekeeping;
mod inspect;
mod key;
mod lanes;
mod ledger;
mod migrate;
mod operate;
mod operation;
mod options;
mod prune;
mod recent;
mod record;
mod row;
mod schedule;
mod session;
mod settle;
mod statement;
mod worker;
mod writer;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::{
    Instance, Job, JobId, JobState, JobType, KeyId, LeaseToken, NewJob, NewSchedule, NodeName, OperationId, Priority,
    Queue, ScheduleName, Timestamp, WorkerName,
};
use orchestrix_store::{
    Advance, Agenda, ApiKey, AuditEntry, AuditFilter, Backfill, BulkAction, ClaimRequest, Claimed, Directive, Enqueued,
    Epoch, Fence, Finish, FinishError, JobFilter, JobSummary, KeyRecord, Lately, Leadership, LeaseStatus, LogEntry,
    LogLine, NewAudit, NewKey, NewOperation, NodeInfo, NodeStatus, Occurrence, Operation, Page, PageRequest, Presence,
    ProgressUpdate, Pruned, Put, QueueDepth, Recent, Result, Retention, Schedule, Store, StoreError, Swept, Wakeups,
    Within, WorkerInfo, WorkerStatus,
    audit::check_outcome,
    claim::check_tokens,
    coordination::check_term,
    housekeeping::{MAX_SWEEP, check_limit},
    inspect::MAX_LANES,
    operation::Unreadable,
    schedule::check_put,
    wakeup::Waker,
};

use crate::{database::Database, session::Transaction};
pub use crate::{migrate::SCHEMA_VERSION, options::SqliteOptions};

/// A [`Store`] in one SQLite file. Clones share its connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("orchestrix-doc-{}.db", std::process::id()));
/// use orchestrix_sqlite::{SqliteOptions, SqliteStore};
///
/// let store = SqliteStore::open(SqliteOptions::new(&path)).await?;
/// // …
/// store.close().await;
/// # std::fs::remove_file(path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: Database,
    waker: Waker,
    unreadable: Unreadable,
}

impl SqliteStore {
    /// Opens the file; makes and migrates it where that is needed.
    pub async fn open(options: SqliteOptions) -> Result<Self> {
        let waker = Waker::default();
        let database = Database::open(options, waker.clone()).await?;
        Ok(Self(Arc::new(Inner { database, waker, unreadable: Unreadable::default() })))
    }

    // None that this program cannot read keeps others from being seen.
    fn readable(&self, found: Vec<operation::Found>) -> Vec<Operation> {
        let warn = |id, error: &StoreError| {
            if self.0.unreadable.is_new(id) {
                tracing::warn!(operation = %id, %error, "left out: this program cannot read it");
            }
        };
        found.into_iter().filter_map(|(id, read)| read.inspect_err(|error| warn(id, error)).ok()).collect()
    }

    /// Ends what is under way and closes the file, so that all of it is in one: a store that is merely dropped does so in its
    /// own time, which the end of the process may cut short. Nothing that was answered is lost either way. Clones can do
    /// nothing more.
    pub async fn close(self) {
        self.database().close().await;
    }

    fn database(&self) -> &Database {
        &self.0.database
    }

    async fn fenced<T: Send + 'static>(
        &self,
        fence: Fence,
        work: impl FnOnce(&mut Transaction<'_>) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.database()
            .write(move |transaction| {
                transaction.check(fence)?;
                work(transaction)
            })
            .await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn enqueue(&self, job: NewJob) -> Result<Enqueued> {
        let call = enqueue::check_one(job)?;
        let recorded = self.database().write(move |transaction| transaction.enqueue(&call)).await?;
        recorded.first().copied().ok_or_else(|| StoreError::Backend("a job was not recorded".into()))
    }

    async fn enqueue_many(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let call = enqueue::check_many(jobs)?;
        self.database().write(move |transaction| transaction.enqueue(&call)).await
    }

    async fn release_hold(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.release_hold(id)).await
    }

    async fn cancel(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.cancel(id)).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>> {
        request.validate()?;
        let request = request.clone();
        self.database().write(move |transaction| transaction.claim(&request)).await
    }

    async fn heartbeat(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        check_tokens(tokens)?;
        let tokens = tokens.to_vec();
        self.database().write(move |transaction| transaction.heartbeat(&tokens)).await
    }

    async fn finish(&self, items: Vec<Finish>) -> Result<Vec<Result<JobState, FinishError>>> {
        Finish::validate(&items)?;
        self.database().write(move |transaction| transaction.finish(&items)).await
    }

    async fn progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        update.validate()?;
        self.database().write(move |transaction| transaction.progress(token, &update)).await
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        LogLine::validate(&lines)?;
        self.database().write(move |transaction| transaction.append_logs(token, &lines)).await
    }

    async fn register_worker(&self, worker: &WorkerInfo) -> Result<Directive> {
        let worker = worker.clone();
        self.database().write(move |transaction| transaction.register_worker(&worker)).await
    }

    async fn heartbeat_worker(&self, name: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        let name = name.clone();
        self.database().write(move |transaction| transaction.heartbeat_worker(&name, &presence)).await
    }

    async fn remove_worker(&self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool> {
        let (name, instance) = (name.clone(), instance.cloned());
        self.database().write(move |transaction| transaction.remove_worker(&name, instance.as_ref())).await
    }

    async fn retry(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.retry(id)).await
    }

    // Looked for outside the writer, since what matches may lie behind many that do not.
    async fn retry_many(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>> {
        page.validate()?;
        let Some(filter) = BulkAction::Retry.narrow(filter) else { return Ok(Page::empty()) };
        let Page { items, next } = self.list(&filter, page).await?;
        if items.is_empty() {
            return Ok(Page { items: Vec::new(), next });
        }
        let ids: Vec<JobId> = items.into_iter().map(|job| job.id).collect();
        let items = self.database().write(move |transaction| transaction.retry_some(&ids)).await?;
        Ok(Page { items, next })
    }

    async fn reprioritize(&self, id: JobId, priority: Priority) -> Result<JobState> {
        self.database().write(move |transaction| transaction.reprioritize(id, priority)).await
    }

    async fn pause_queue(&self, queue: &Queue) -> Result<()> {
        let queue = queue.clone();
        self.database().write(move |transaction| transaction.pause_queue(&queue)).await
    }

    async fn resume_queue(&self, queue: &Queue) -> Result<()> {
        let queue = queue.clone();
        self.database().write(move |transaction| transaction.resume_queue(&queue)).await
    }

    async fn paused_queues(&self) -> Result<Vec<Queue>> {
        self.database().read(|session| operate::paused_queues(&session)).await
    }

    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool> {
        let name = name.clone();
        self.database().write(move |transaction| transaction.direct_worker(&name, directive)).await
    }

    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation> {
        operation.validate()?;
        self.database().write(move |transaction| transaction.begin_operation(operation)).await
    }

    async fn abort_operation(&self, id: OperationId) -> Result<Operation> {
        self.database().write(move |transaction| transaction.abort_operation(id)).await
    }

    async fn create_key(&self, key: NewKey) -> Result<ApiKey> {
        key.validate()?;
        self.database().write(move |transaction| transaction.create_key(key)).await
    }

    async fn revoke_key(&self, id: &KeyId) -> Result<bool> {
        let id = id.clone();
        self.database().write(move |transaction| transaction.revoke_key(&id)).await
    }

    async fn begin_audit(&self, entry: NewAudit) -> Result<i64> {
        entry.validate()?;
        self.database().write(move |transaction| transaction.begin_audit(&entry)).await
    }

    async fn end_audit(&self, seq: i64, outcome: &str) -> Result<bool> {
        check_outcome(outcome)?;
        let outcome = outcome.to_owned();
        self.database().write(move |transaction| transaction.end_audit(seq, &outcome)).await
    }

    async fn put_schedule(&self, within: Within<'_>, schedule: NewSchedule) -> Result<Put> {
        check_put(within, &schedule)?;
        let within = within.cloned();
        self.database().write(move |transaction| transaction.put_schedule(within.as_ref(), schedule)).await
    }

    async fn delete_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<bool> {
        loop {
            let (within, name) = (within.cloned(), name.clone());
            let delete = move |transaction: &mut Transaction<'_>| transaction.delete_schedule(within.as_ref(), &name);
            if let Some(there) = self.database().write(delete).await? {
                return Ok(there);
            }
        }
    }

    async fn pause_schedule(&self, within: Within<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool> {
        let (within, name) = (within.cloned(), name.clone());
        self.database().write(move |transaction| transaction.pause_schedule(within.as_ref(), &name, note)).await
    }

    async fn resume_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<bool> {
        let (within, name) = (within.cloned(), name.clone());
        self.database().write(move |transaction| transaction.resume_schedule(within.as_ref(), &name)).await
    }

    async fn trigger_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<Enqueued> {
        let (within, name) = (within.cloned(), name.clone());
        self.database().write(move |transaction| transaction.trigger_schedule(within.as_ref(), &name)).await
    }

    async fn backfill_schedule(&self, within: Within<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize> {
        let (within, name, range) = (within.cloned(), name.clone(), range.clone());
        self.database().write(move |transaction| transaction.backfill_schedule(within.as_ref(), &name, &range)).await
    }

    async fn promote(&self, fence: Fence, limit: usize) -> Result<Swept> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.promote(limit)).await
    }

    async fn unblock(&self, fence: Fence, limit: usize) -> Result<Swept> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.unblock(limit)).await
    }

    async fn expire(&self, fence: Fence, limit: usize) -> Result<Swept> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.expire(limit)).await
    }

    async fn reap(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<Swept> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.reap(limit, crash_loop)).await
    }

    async fn time_out(&self, fence: Fence, limit: usize) -> Result<Swept> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.time_out(limit)).await
    }

    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.forget_workers(silence, limit)).await
    }

    async fn prune(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned> {
        check_limit(limit, MAX_SWEEP)?;
        let retention = *retention;
        self.fenced(fence, move |transaction| transaction.prune(&retention, limit)).await
    }

    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.forget_nodes(silence, limit)).await
    }

    async fn fire(&self, fence: Fence, limit: usize) -> Result<Swept> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.fire(limit)).await
    }

    async fn advance_operation(&self, fence: Fence, id: OperationId, step: Advance) -> Result<Operation> {
        step.validate()?;
        self.fenced(fence, move |transaction| transaction.advance_operation(id, &step)).await
    }

    async fn fold_depths(&self, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        Ok(0)
    }

    async fn agenda(&self) -> Result<Agenda> {
        self.database().read(|session| coordination::agenda(&session)).await
    }

    async fn heartbeat_node(&self, node: &NodeInfo) -> Result<()> {
        node.validate()?;
        let node = node.clone();
        self.database().write(move |transaction| transaction.heartbeat_node(&node)).await
    }

    async fn remove_node(&self, name: &NodeName) -> Result<bool> {
        let name = name.clone();
        self.database().write(move |transaction| transaction.remove_node(&name)).await
    }

    async fn campaign(&self, node: &NodeName, term: Duration, held: Option<Epoch>) -> Result<Leadership> {
        check_term(term)?;
        let node = node.clone();
        self.database().write(move |transaction| transaction.campaign(&node, term, held)).await
    }

    async fn resign(&self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        let node = node.clone();
        self.database().write(move |transaction| transaction.resign(&node, epoch)).await
    }

    async fn now(&self) -> Result<Timestamp> {
        self.database().read(|session| Ok(session.now)).await
    }

    async fn leader(&self) -> Result<Option<NodeName>> {
        self.database().read(|session| coordination::leader(&session)).await
    }

    async fn nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| coordination::nodes(&session, &page)).await
    }

    async fn summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>> {
        let ids = ids.to_vec();
        self.database().read(move |session| inspect::summaries(&session, &ids)).await
    }

    async fn states(&self, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
        let ids = ids.to_vec();
        self.database().read(move |session| inspect::states(&session, &ids)).await
    }

    async fn recent(&self, lately: &Lately) -> Result<Recent> {
        lately.validate()?;
        let lately = *lately;
        self.database().read(move |session| recent::recent(&session, &lately)).await
    }

    async fn get(&self, id: JobId) -> Result<Option<Job>> {
        self.database().read(move |session| inspect::get(&session, id)).await
    }

    async fn list(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        page.validate()?;
        let (filter, page) = (filter.clone(), page.clone());
        self.database().read(move |session| inspect::list(&session, &filter, &page)).await
    }

    async fn logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| inspect::logs(&session, id, &page)).await
    }

    async fn depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| inspect::depths(&session, &page)).await
    }

    async fn depth(&self, queue: &Queue) -> Result<Option<QueueDepth>> {
        let queue = queue.clone();
        self.database().read(move |session| inspect::depth(&session, &queue)).await
    }

    async fn lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        check_limit(limit, MAX_LANES)?;
        self.database().read(move |session| lanes::list(&session, limit)).await
    }

    async fn workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| worker::list(&session, &page)).await
    }

    async fn schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
        let (within, name) = (within.cloned(), name.clone());
        self.database().read(move |session| schedule::find(&session, within.as_ref(), &name)).await
    }

    async fn schedules(
        &self,
        within: Within<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>> {
        page.validate()?;
        let (within, page) = (within.cloned(), page.clone());
        self.database().read(move |session| schedule::list(&session, within.as_ref(), &page)).await
    }

    async fn occurrences(
        &self,
        within: Within<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>> {
        page.validate()?;
        let (within, name, page) = (within.cloned(), name.clone(), page.clone());
        self.database().read(move |session| ledger::list(&session, within.as_ref(), &name, &page)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>> {
        self.database().read(move |session| operation::find(&session, id)).await
    }

    async fn operations(
        &self,
        within: Within<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>> {
        page.validate()?;
        let (within, page) = (within.cloned(), page.clone());
        let (found, next) =
            self.database().read(move |session| operation::list(&session, within.as_ref(), &page)).await?;
        Ok(Page { items: self.readable(found), next })
    }

    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>> {
        check_limit(limit, NewOperation::MAX_OPEN)?;
        let found = self.database().read(|session| operation::open(&session)).await?;
        let mut open = self.readable(found);
        open.truncate(limit);
        Ok(open)
    }

    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>> {
        let id = id.clone();
        self.database().read(move |session| key::find(&session, &id)).await
    }

    async fn keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| key::list(&session, &page)).await
    }

    async fn audit(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        page.validate()?;
        let (filter, page) = (filter.clone(), page.clone());
        self.database().read(move |session| audit::list(&session, &filter, &page)).await
    }

    fn subscribe(&self) -> Wakeups {
        self.0.waker.subscribe()
    }

    fn timers(&self) -> Wakeups {
        self.0.waker.timers()
    }

    // The thread that writes has no runtime, and reads run on that of whoever asks: there is nothing to be made apart.
    fn apart(&self, _connections: usize) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.clone()))
    }
}
