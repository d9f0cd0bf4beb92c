//! A store in memory, for tests, examples and work that may be lost with its process.
//!
//! It is one mutex around plain maps. Every call is a short critical section, so each is atomic, and calls take
//! effect in the order in which they take the lock. All decisions are made by `orchestrix-core` and
//! `orchestrix-store`; this crate finds the jobs that a call concerns, by index and never by a full scan, and writes
//! the decisions. It keeps every guarantee of a store except durability.
//!
//! | module | contents |
//! |---|---|
//! | `tables` | the maps, and the one way to change a job |
//! | `row` | a job with its private columns |
//! | `index` | the indexes over jobs |
//! | `attempt` | what the end of an attempt does to a job |
//! | `settle` | what the end of a job does to its dependents |
//! | `coordination` | nodes and leadership |
//! | the others | one group of calls each, named as in the traits |

mod attempt;
mod audit;
mod cancel;
mod changes;
mod claim;
mod coordination;
mod enqueue;
mod finish;
mod housekeeping;
mod index;
mod inspect;
mod key;
mod log;
mod operate;
mod operation;
mod prune;
mod row;
mod schedule;
mod settle;
mod tables;
mod tenant;
mod worker;

use std::{
    mem,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use orchestrix_core::{
    Instance, Job, JobId, JobState, JobType, KeyId, LeaseToken, NewJob, NewSchedule, NodeName, OperationId, Priority,
    Queue, ScheduleName, Tenant, Timestamp, WorkerName,
};

use self::tables::Tables;
use orchestrix_store::{
    AdminStore, ApiKey, AuditEntry, AuditFilter, Backfill, ChangesPage, ChangesQuery, ClaimRequest, ClaimedJob, Clock,
    CoordinationStore, Directive, Enqueued, Epoch, Fence, FinishError, JobFilter, JobStore, JobSummary, KeyRecord,
    Leadership, LeaseStatus, LeaseStore, LogEntry, LogLine, NewAuditEntry, NewKey, NewOperation, NodeInfo, NodeStatus,
    Occurrence, Operation, OperationStep, OutcomeReport, Page, PageRequest, Presence, ProgressUpdate, Pruned,
    PutResult, QueueDepth, QueueStore, Result, Retention, Schedule, ScheduleStore, Store, SweepResult, SweepTimes,
    SystemClock, TenantPatch, TenantScope, TenantSettings, TenantStore, Wakeups, WorkerInfo, WorkerStatus, WorkerStore,
    coordination::check_term,
    housekeeping::{MAX_SWEEP, check_limit},
    wakeup::WakeupSender,
};

/// A [`Store`] in the memory of its process. Clones share their jobs.
///
/// ```
/// # use std::sync::Arc;
/// use orchestrix_memory::MemoryStore;
/// use orchestrix_store::Store;
///
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// ```
#[derive(Debug, Clone)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    tables: Arc<Mutex<Tables>>,
    wakeups: WakeupSender,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store on the system clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store on the given clock, such as a [`ManualClock`](orchestrix_store::ManualClock) in tests.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tables: Arc::default(), wakeups: WakeupSender::default() }
    }

    // Reads the time under the lock, so that time never goes back between two calls. Publishes wake-ups after it, so
    // that a woken worker finds the job.
    fn with<R>(&self, call: impl FnOnce(&mut Tables, Timestamp) -> R) -> R {
        let mut tables = self.tables.lock().expect("no call panics while it holds the lock");
        let answer = call(&mut tables, self.clock.now());
        let effects = mem::take(&mut tables.effects);
        drop(tables);
        effects.publish(&self.wakeups);
        answer
    }
}

impl MemoryStore {
    // An invalid limit is refused before the fence is checked.
    fn fenced<R>(
        &self,
        fence: Fence,
        limit: usize,
        call: impl FnOnce(&mut Tables, Timestamp) -> Result<R>,
    ) -> Result<R> {
        check_limit(limit, MAX_SWEEP)?;
        self.with(|tables, now| {
            fence.check(tables.coordination.epoch())?;
            call(tables, now)
        })
    }
}

#[async_trait]
impl JobStore for MemoryStore {
    async fn enqueue_job(&self, job: NewJob) -> Result<Enqueued> {
        self.with(|tables, now| tables.enqueue(job, now))
    }

    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        self.with(|tables, now| tables.enqueue_many(jobs, now))
    }

    async fn release_held_job(&self, id: JobId) -> Result<JobState> {
        self.with(|tables, now| tables.release_hold(id, now))
    }

    async fn cancel_job(&self, id: JobId) -> Result<JobState> {
        self.with(|tables, now| tables.cancel(id, now))
    }

    async fn retry_job(&self, id: JobId) -> Result<JobState> {
        self.with(|tables, now| tables.retry(id, now))
    }

    async fn retry_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>> {
        self.with(|tables, now| tables.retry_many(filter, page, now))
    }

    async fn reprioritize_job(&self, id: JobId, priority: Priority) -> Result<JobState> {
        self.with(|tables, _| tables.reprioritize(id, priority))
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        Ok(self.with(|tables, _| tables.get(id)))
    }

    async fn job_summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>> {
        Ok(self.with(|tables, _| tables.summaries(ids)))
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        self.with(|tables, _| tables.list(filter, page))
    }

    async fn job_logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
        self.with(|tables, _| tables.log_page(id, page))
    }

    async fn recent_changes(&self, query: &ChangesQuery) -> Result<ChangesPage> {
        self.with(|tables, now| tables.recent_changes(query, now))
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        self.with(|tables, now| tables.claim(request, now))
    }

    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        self.with(|tables, now| tables.heartbeat(tokens, now))
    }

    async fn finish_attempts(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        self.with(|tables, now| tables.finish(&items, now))
    }

    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        self.with(|tables, _| tables.progress(token, update))
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        self.with(|tables, now| tables.append_logs(token, lines, now))
    }
}

#[async_trait]
impl WorkerStore for MemoryStore {
    async fn register_worker(&self, worker: &WorkerInfo) -> Result<Directive> {
        Ok(self.with(|tables, now| tables.workers.register(worker, now)))
    }

    async fn heartbeat_worker(&self, name: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        Ok(self.with(|tables, now| tables.workers.heartbeat(name, &presence, now)))
    }

    async fn remove_worker(&self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool> {
        Ok(self.with(|tables, _| tables.workers.remove(name, instance)))
    }

    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool> {
        Ok(self.with(|tables, _| tables.workers.direct(name, directive)))
    }

    async fn list_workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>> {
        self.with(|tables, now| tables.workers.page(page, now))
    }
}

#[async_trait]
impl QueueStore for MemoryStore {
    async fn pause_queue(&self, queue: &Queue) -> Result<()> {
        self.with(|tables, _| tables.pause_queue(queue));
        Ok(())
    }

    async fn resume_queue(&self, queue: &Queue) -> Result<()> {
        self.with(|tables, _| tables.resume_queue(queue));
        Ok(())
    }

    async fn paused_queues(&self) -> Result<Vec<Queue>> {
        Ok(self.with(|tables, _| tables.paused_queues()))
    }

    async fn queue_depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
        self.with(|tables, now| tables.depths(page, now))
    }

    async fn queue_depth(&self, queue: &Queue) -> Result<Option<QueueDepth>> {
        Ok(self.with(|tables, now| tables.depth(queue, now)))
    }

    async fn claimable_lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        self.with(|tables, _| tables.lanes(limit))
    }
}

#[async_trait]
impl TenantStore for MemoryStore {
    async fn tenant_settings(&self, tenant: &Tenant) -> Result<TenantSettings> {
        Ok(self.with(|tables, _| tables.tenants.settings(tenant)))
    }

    async fn set_tenant(&self, tenant: &Tenant, patch: TenantPatch) -> Result<TenantSettings> {
        Ok(self.with(|tables, _| tables.tenants.set(tenant, patch)))
    }

    async fn list_tenants(&self, page: &PageRequest<Tenant>) -> Result<Page<(Tenant, TenantSettings), Tenant>> {
        self.with(|tables, _| tables.tenants.page(page))
    }
}

#[async_trait]
impl ScheduleStore for MemoryStore {
    async fn put_schedule(&self, scope: TenantScope<'_>, schedule: NewSchedule) -> Result<PutResult> {
        self.with(|tables, now| tables.put_schedule(scope, schedule, now))
    }

    async fn delete_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        Ok(self.with(|tables, _| tables.schedules.delete(scope, name)))
    }

    async fn pause_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool> {
        self.with(|tables, now| tables.schedules.pause(scope, name, note, now))
    }

    async fn resume_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        self.with(|tables, now| tables.resume_schedule(scope, name, now))
    }

    async fn trigger_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued> {
        self.with(|tables, now| tables.trigger_schedule(scope, name, now))
    }

    async fn backfill_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize> {
        self.with(|tables, now| tables.backfill_schedule(scope, name, range, now))
    }

    async fn schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
        Ok(self.with(|tables, _| tables.schedules.find(scope, name).cloned()))
    }

    async fn list_schedules(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>> {
        self.with(|tables, _| tables.schedules.page(scope, page))
    }

    async fn list_occurrences(
        &self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>> {
        self.with(|tables, _| tables.schedules.occurrences(scope, name, page))
    }
}

#[async_trait]
impl AdminStore for MemoryStore {
    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation> {
        self.with(|tables, now| tables.operations.begin(operation, now))
    }

    async fn abort_operation(&self, id: OperationId) -> Result<Operation> {
        self.with(|tables, now| tables.operations.abort(id, now))
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>> {
        Ok(self.with(|tables, _| tables.operations.find(id)))
    }

    async fn list_operations(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>> {
        self.with(|tables, _| tables.operations.page(scope, page))
    }

    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>> {
        self.with(|tables, _| tables.operations.open(limit))
    }

    async fn create_key(&self, key: NewKey) -> Result<ApiKey> {
        self.with(|tables, now| tables.api_keys.create(key, now))
    }

    async fn revoke_key(&self, id: &KeyId) -> Result<bool> {
        Ok(self.with(|tables, now| tables.api_keys.revoke(id, now)))
    }

    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>> {
        Ok(self.with(|tables, now| tables.api_keys.find(id, now)))
    }

    async fn list_keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
        self.with(|tables, _| tables.api_keys.page(page))
    }

    async fn begin_audit_entry(&self, entry: NewAuditEntry) -> Result<i64> {
        self.with(|tables, now| tables.audit.begin(entry, now))
    }

    async fn finish_audit_entry(&self, seq: i64, outcome: &str) -> Result<bool> {
        self.with(|tables, _| tables.audit.end(seq, outcome))
    }

    async fn list_audit_entries(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        self.with(|tables, _| tables.audit.page(filter, page))
    }
}

#[async_trait]
impl CoordinationStore for MemoryStore {
    async fn campaign_for_leadership(
        &self,
        node: &NodeName,
        term: Duration,
        held: Option<Epoch>,
    ) -> Result<Leadership> {
        check_term(term)?;
        Ok(self.with(|tables, now| tables.coordination.campaign(node, term, held, now)))
    }

    async fn resign_leadership(&self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        Ok(self.with(|tables, now| tables.coordination.resign(node, epoch, now)))
    }

    async fn leader(&self) -> Result<Option<NodeName>> {
        Ok(self.with(|tables, now| tables.coordination.leader(now).cloned()))
    }

    async fn heartbeat_node(&self, node: &NodeInfo) -> Result<()> {
        node.validate()?;
        self.with(|tables, now| tables.coordination.heartbeat(node, now));
        Ok(())
    }

    async fn remove_node(&self, name: &NodeName) -> Result<bool> {
        Ok(self.with(|tables, _| tables.coordination.remove(name)))
    }

    async fn list_nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
        self.with(|tables, now| tables.coordination.page(page, now))
    }

    async fn promote_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        self.fenced(fence, limit, |tables, now| tables.promote(limit, now))
    }

    async fn unblock_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        self.fenced(fence, limit, |tables, _| tables.unblock(limit))
    }

    async fn expire_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        self.fenced(fence, limit, |tables, now| tables.expire(limit, now))
    }

    async fn reap_leases(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<SweepResult> {
        self.fenced(fence, limit, |tables, now| tables.reap(limit, crash_loop, now))
    }

    async fn time_out_attempts(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        self.fenced(fence, limit, |tables, now| tables.time_out(limit, now))
    }

    async fn fire_schedules(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        self.fenced(fence, limit, |tables, now| tables.fire(limit, now))
    }

    async fn advance_operation(&self, fence: Fence, id: OperationId, step: OperationStep) -> Result<Operation> {
        step.validate()?;
        self.fenced(fence, 1, |tables, now| tables.advance_operation(id, &step, now))
    }

    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        self.fenced(fence, limit, |tables, now| tables.workers.forget(silence, limit, now))
    }

    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        self.fenced(fence, limit, |tables, now| tables.coordination.forget(silence, limit, now))
    }

    async fn prune_history(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned> {
        self.fenced(fence, limit, |tables, now| tables.prune(retention, limit, now))
    }

    async fn fold_depths(&self, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        Ok(0)
    }

    async fn vacuum_tables(&self) -> Result<usize> {
        Ok(0)
    }

    async fn next_sweep_times(&self) -> Result<SweepTimes> {
        Ok(self.with(|tables, now| tables.next_sweep_times(now)))
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn now(&self) -> Result<Timestamp> {
        Ok(self.with(|_, now| now))
    }

    fn job_wakeups(&self) -> Wakeups {
        self.wakeups.subscribe()
    }

    fn timer_wakeups(&self) -> Wakeups {
        self.wakeups.timers()
    }

    fn dedicated_handle(&self, _connections: usize) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.clone()))
    }
}
