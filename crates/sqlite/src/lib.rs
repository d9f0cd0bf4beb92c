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
    AdminStore, ApiKey, AuditEntry, AuditFilter, Backfill, BulkAction, ChangesPage, ChangesQuery, ClaimRequest,
    ClaimedJob, CoordinationStore, Directive, Enqueued, Epoch, Fence, FinishError, JobFilter, JobStore, JobSummary,
    KeyRecord, Leadership, LeaseStatus, LeaseStore, LogEntry, LogLine, NewAuditEntry, NewKey, NewOperation, NodeInfo,
    NodeStatus, Occurrence, Operation, OperationStep, OutcomeReport, Page, PageRequest, Presence, ProgressUpdate,
    Pruned, PutResult, QueueDepth, QueueStore, Result, Retention, Schedule, ScheduleStore, Store, StoreError,
    SweepResult, SweepTimes, TenantScope, Wakeups, WorkerInfo, WorkerStatus, WorkerStore,
    audit::check_outcome,
    claim::check_tokens,
    coordination::check_term,
    housekeeping::{MAX_SWEEP, check_limit},
    inspect::MAX_LANES,
    operation::Unreadable,
    schedule::check_put,
    wakeup::WakeupSender,
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
    wakeups: WakeupSender,
    unreadable: Unreadable,
}

impl SqliteStore {
    /// Opens the file; makes and migrates it where that is needed.
    pub async fn open(options: SqliteOptions) -> Result<Self> {
        let wakeups = WakeupSender::default();
        let database = Database::open(options, wakeups.clone()).await?;
        Ok(Self(Arc::new(Inner { database, wakeups, unreadable: Unreadable::default() })))
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
impl JobStore for SqliteStore {
    async fn enqueue_job(&self, job: NewJob) -> Result<Enqueued> {
        let call = enqueue::check_one(job)?;
        let recorded = self.database().write(move |transaction| transaction.enqueue(&call)).await?;
        recorded.first().copied().ok_or_else(|| StoreError::Backend("a job was not recorded".into()))
    }

    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let call = enqueue::check_many(jobs)?;
        self.database().write(move |transaction| transaction.enqueue(&call)).await
    }

    async fn release_held_job(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.release_hold(id)).await
    }

    async fn cancel_job(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.cancel(id)).await
    }

    async fn retry_job(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.retry(id)).await
    }

    // Looked for outside the writer, since what matches may lie behind many that do not.
    async fn retry_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>> {
        page.validate()?;
        let Some(filter) = BulkAction::Retry.narrow(filter) else { return Ok(Page::empty()) };
        let Page { items, next } = self.list_jobs(&filter, page).await?;
        if items.is_empty() {
            return Ok(Page { items: Vec::new(), next });
        }
        let ids: Vec<JobId> = items.into_iter().map(|job| job.id).collect();
        let items = self.database().write(move |transaction| transaction.retry_some(&ids)).await?;
        Ok(Page { items, next })
    }

    async fn reprioritize_job(&self, id: JobId, priority: Priority) -> Result<JobState> {
        self.database().write(move |transaction| transaction.reprioritize(id, priority)).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        self.database().read(move |session| inspect::get(&session, id)).await
    }

    async fn job_summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>> {
        let ids = ids.to_vec();
        self.database().read(move |session| inspect::summaries(&session, &ids)).await
    }

    async fn job_states(&self, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
        let ids = ids.to_vec();
        self.database().read(move |session| inspect::states(&session, &ids)).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        page.validate()?;
        let (filter, page) = (filter.clone(), page.clone());
        self.database().read(move |session| inspect::list(&session, &filter, &page)).await
    }

    async fn job_logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| inspect::logs(&session, id, &page)).await
    }

    async fn recent_changes(&self, query: &ChangesQuery) -> Result<ChangesPage> {
        query.validate()?;
        let query = *query;
        self.database().read(move |session| recent::recent(&session, &query)).await
    }
}

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        request.validate()?;
        let request = request.clone();
        self.database().write(move |transaction| transaction.claim(&request)).await
    }

    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        check_tokens(tokens)?;
        let tokens = tokens.to_vec();
        self.database().write(move |transaction| transaction.heartbeat(&tokens)).await
    }

    async fn finish_attempts(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        OutcomeReport::validate(&items)?;
        self.database().write(move |transaction| transaction.finish(&items)).await
    }

    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        update.validate()?;
        self.database().write(move |transaction| transaction.progress(token, &update)).await
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        LogLine::validate(&lines)?;
        self.database().write(move |transaction| transaction.append_logs(token, &lines)).await
    }
}

#[async_trait]
impl WorkerStore for SqliteStore {
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

    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool> {
        let name = name.clone();
        self.database().write(move |transaction| transaction.direct_worker(&name, directive)).await
    }

    async fn list_workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| worker::list(&session, &page)).await
    }
}

#[async_trait]
impl QueueStore for SqliteStore {
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

    async fn queue_depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| inspect::depths(&session, &page)).await
    }

    async fn queue_depth(&self, queue: &Queue) -> Result<Option<QueueDepth>> {
        let queue = queue.clone();
        self.database().read(move |session| inspect::depth(&session, &queue)).await
    }

    async fn claimable_lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        check_limit(limit, MAX_LANES)?;
        self.database().read(move |session| lanes::list(&session, limit)).await
    }
}

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn put_schedule(&self, scope: TenantScope<'_>, schedule: NewSchedule) -> Result<PutResult> {
        check_put(scope, &schedule)?;
        let scope = scope.cloned();
        self.database().write(move |transaction| transaction.put_schedule(scope.as_ref(), schedule)).await
    }

    async fn delete_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        loop {
            let (scope, name) = (scope.cloned(), name.clone());
            let delete = move |transaction: &mut Transaction<'_>| transaction.delete_schedule(scope.as_ref(), &name);
            if let Some(there) = self.database().write(delete).await? {
                return Ok(there);
            }
        }
    }

    async fn pause_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool> {
        let (scope, name) = (scope.cloned(), name.clone());
        self.database().write(move |transaction| transaction.pause_schedule(scope.as_ref(), &name, note)).await
    }

    async fn resume_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        let (scope, name) = (scope.cloned(), name.clone());
        self.database().write(move |transaction| transaction.resume_schedule(scope.as_ref(), &name)).await
    }

    async fn trigger_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued> {
        let (scope, name) = (scope.cloned(), name.clone());
        self.database().write(move |transaction| transaction.trigger_schedule(scope.as_ref(), &name)).await
    }

    async fn backfill_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize> {
        let (scope, name, range) = (scope.cloned(), name.clone(), range.clone());
        self.database().write(move |transaction| transaction.backfill_schedule(scope.as_ref(), &name, &range)).await
    }

    async fn schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
        let (scope, name) = (scope.cloned(), name.clone());
        self.database().read(move |session| schedule::find(&session, scope.as_ref(), &name)).await
    }

    async fn list_schedules(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>> {
        page.validate()?;
        let (scope, page) = (scope.cloned(), page.clone());
        self.database().read(move |session| schedule::list(&session, scope.as_ref(), &page)).await
    }

    async fn list_occurrences(
        &self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>> {
        page.validate()?;
        let (scope, name, page) = (scope.cloned(), name.clone(), page.clone());
        self.database().read(move |session| ledger::list(&session, scope.as_ref(), &name, &page)).await
    }
}

#[async_trait]
impl AdminStore for SqliteStore {
    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation> {
        operation.validate()?;
        self.database().write(move |transaction| transaction.begin_operation(operation)).await
    }

    async fn abort_operation(&self, id: OperationId) -> Result<Operation> {
        self.database().write(move |transaction| transaction.abort_operation(id)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>> {
        self.database().read(move |session| operation::find(&session, id)).await
    }

    async fn list_operations(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>> {
        page.validate()?;
        let (scope, page) = (scope.cloned(), page.clone());
        let (found, next) =
            self.database().read(move |session| operation::list(&session, scope.as_ref(), &page)).await?;
        Ok(Page { items: self.readable(found), next })
    }

    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>> {
        check_limit(limit, NewOperation::MAX_OPEN)?;
        let found = self.database().read(|session| operation::open(&session)).await?;
        let mut open = self.readable(found);
        open.truncate(limit);
        Ok(open)
    }

    async fn create_key(&self, key: NewKey) -> Result<ApiKey> {
        key.validate()?;
        self.database().write(move |transaction| transaction.create_key(key)).await
    }

    async fn revoke_key(&self, id: &KeyId) -> Result<bool> {
        let id = id.clone();
        self.database().write(move |transaction| transaction.revoke_key(&id)).await
    }

    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>> {
        let id = id.clone();
        self.database().read(move |session| key::find(&session, &id)).await
    }

    async fn list_keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| key::list(&session, &page)).await
    }

    async fn begin_audit_entry(&self, entry: NewAuditEntry) -> Result<i64> {
        entry.validate()?;
        self.database().write(move |transaction| transaction.begin_audit(&entry)).await
    }

    async fn finish_audit_entry(&self, seq: i64, outcome: &str) -> Result<bool> {
        check_outcome(outcome)?;
        let outcome = outcome.to_owned();
        self.database().write(move |transaction| transaction.end_audit(seq, &outcome)).await
    }

    async fn list_audit_entries(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        page.validate()?;
        let (filter, page) = (filter.clone(), page.clone());
        self.database().read(move |session| audit::list(&session, &filter, &page)).await
    }
}

#[async_trait]
impl CoordinationStore for SqliteStore {
    async fn campaign_for_leadership(
        &self,
        node: &NodeName,
        term: Duration,
        held: Option<Epoch>,
    ) -> Result<Leadership> {
        check_term(term)?;
        let node = node.clone();
        self.database().write(move |transaction| transaction.campaign(&node, term, held)).await
    }

    async fn resign_leadership(&self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        let node = node.clone();
        self.database().write(move |transaction| transaction.resign(&node, epoch)).await
    }

    async fn leader(&self) -> Result<Option<NodeName>> {
        self.database().read(|session| coordination::leader(&session)).await
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

    async fn list_nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| coordination::nodes(&session, &page)).await
    }

    async fn promote_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.promote(limit)).await
    }

    async fn unblock_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.unblock(limit)).await
    }

    async fn expire_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.expire(limit)).await
    }

    async fn reap_leases(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.reap(limit, crash_loop)).await
    }

    async fn time_out_attempts(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.time_out(limit)).await
    }

    async fn fire_schedules(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.fire(limit)).await
    }

    async fn advance_operation(&self, fence: Fence, id: OperationId, step: OperationStep) -> Result<Operation> {
        step.validate()?;
        self.fenced(fence, move |transaction| transaction.advance_operation(id, &step)).await
    }

    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.forget_workers(silence, limit)).await
    }

    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.forget_nodes(silence, limit)).await
    }

    async fn prune_history(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned> {
        check_limit(limit, MAX_SWEEP)?;
        let retention = *retention;
        self.fenced(fence, move |transaction| transaction.prune(&retention, limit)).await
    }

    async fn fold_depths(&self, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        Ok(0)
    }

    async fn next_sweep_times(&self) -> Result<SweepTimes> {
        self.database().read(|session| coordination::agenda(&session)).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn now(&self) -> Result<Timestamp> {
        self.database().read(|session| Ok(session.now)).await
    }

    fn job_wakeups(&self) -> Wakeups {
        self.0.wakeups.subscribe()
    }

    fn timer_wakeups(&self) -> Wakeups {
        self.0.wakeups.timers()
    }

    // The thread that writes has no runtime, and reads run on that of whoever asks: there is nothing to be made apart.
    fn dedicated_handle(&self, _connections: usize) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.clone()))
    }
}
