//! Orchestrix on PostgreSQL 15 and later.
//!
//! One narrow row stands for every unfinished job and is updated in place; finished jobs move to history, which is
//! partitioned by day and dropped by day. Statements are static text, one file per verb in `queries/`. Every verb is a
//! single statement, or reads first, lets `core` decide, and writes only if nothing has changed since; explicit
//! transactions are left to calls that record several things at once.
//!
//! Nothing is kept on a connection that another call relies on: with [`PostgresOptions::pooled`] the store works behind
//! a pooler in transaction mode.
//!
//! An application on the same database can record and complete jobs in a transaction of its own, with
//! [`PostgresStore::enqueue_in`] and [`PostgresStore::complete_in`]: of `tokio-postgres` or `deadpool-postgres`, and with the
//! feature `sqlx` of that.
//!
//! What is deliberately absent: session locks, temporary tables, triggers on the hot path, `count(*)` over a backlog,
//! NOTIFY in a producer's transaction.

mod act;
mod audit;
mod by_hand;
mod caller;
mod claim;
mod coalesce;
mod coordination;
mod database;
pub mod diagnose;
mod enqueue;
mod error;
mod finish;
mod fire;
mod firing;
mod housekeeping;
mod ids;
mod inspect;
mod key;
mod lanes;
mod ledger;
mod migrate;
mod operate;
mod operation;
mod options;
mod pace;
mod prune;
mod recent;
mod record;
mod row;
mod runner;
mod schedule;
mod settle;
mod statement;
#[cfg(feature = "test-clock")]
pub mod test_clock;
mod wakeup;
mod work;
mod worker;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::{
    Event, Instance, Job, JobId, JobState, JobType, KeyId, LeaseToken, NewJob, NewSchedule, NodeName, OperationId,
    Priority, Queue, ScheduleName, Timestamp, WorkerName, enqueue::check_job,
};
use orchestrix_store::{
    AdminStore, ApiKey, AuditEntry, AuditFilter, Backfill, ChangesPage, ChangesQuery, ClaimRequest, ClaimedJob,
    CoordinationStore, Directive, Enqueued, Epoch, Fence, FinishError, JobFilter, JobStore, JobSummary, KeyRecord,
    Leadership, LeaseStatus, LeaseStore, LogEntry, LogLine, NewAuditEntry, NewKey, NewOperation, NodeInfo, NodeStatus,
    Occurrence, Operation, OperationStep, OutcomeReport, Page, PageRequest, Presence, ProgressUpdate, Pruned,
    PutResult, QueueDepth, QueueStore, Result, Retention, Schedule, ScheduleStore, Store, StoreError, SweepResult,
    SweepTimes, TenantScope, Wakeup, Wakeups, WorkerInfo, WorkerStatus, WorkerStore, operation::Unreadable,
    wakeup::WakeupSender,
};
use tokio::task::AbortHandle;
use tokio_postgres::Row;

pub use caller::CallerTransaction;
pub use ids::IdSource;
pub use migrate::SCHEMA_VERSION;
pub use options::PostgresOptions;
#[cfg(feature = "sqlx")]
pub use sqlx;
pub use {deadpool_postgres, tokio_postgres};

use crate::{
    coalesce::Coalescer,
    database::Database,
    lanes::{Lanes, Place},
    pace::Pace,
    recent::Summaries,
    wakeup::Notifier,
};

/// How many dependents are told at once, and how often, by the call that finished their parents. What is left over is
/// found by [`Store::unblock`].
const TELL_BATCH: usize = 1_000;
const TELL_ROUNDS: usize = 100;

/// A store in a PostgreSQL database.
#[derive(Debug, Clone)]
pub struct PostgresStore(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    database: Database,
    coalescer: Coalescer,
    notifier: Notifier,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) wakeups: WakeupSender,
    listener: std::sync::OnceLock<AbortHandle>,
    pace: Pace,
    unreadable: Unreadable,
    summaries: Summaries,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.get() {
            listener.abort();
        }
        self.database.close();
    }
}

impl PostgresStore {
    /// Connects, waiting for a database that is still coming up, and applies pending migrations unless told not to.
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        let database = Database::new(options.clone())?;
        migrate::wait_until_up(&database).await?;
        if options.migrate {
            migrate::migrate(&database).await?;
        } else {
            Self::check_version(&database).await?;
        }
        let inner = Arc::new(Inner {
            coalescer: Coalescer::new(&database),
            notifier: Notifier::start(database.clone()),
            database,
            lanes: Arc::default(),
            wakeups: WakeupSender::default(),
            listener: std::sync::OnceLock::new(),
            pace: Pace::default(),
            unreadable: Unreadable::default(),
            summaries: Summaries::default(),
        });
        if options.listen {
            let task = tokio::spawn(wakeup::listen(options, Arc::downgrade(&inner)));
            let _ = inner.listener.set(task.abort_handle());
        }
        Ok(Self(inner))
    }

    // Migrated, or checked, by whoever opened `self`; and the connection that listens stays theirs, since what it hears is
    // passed on to the subscribers of both.
    fn opened_apart(&self, connections: usize) -> Result<Self> {
        if let Err(error) = tokio::runtime::Handle::try_current() {
            return Err(StoreError::Backend(Box::new(error)));
        }
        let database = Database::new(PostgresOptions { connections, ..self.database().options.clone() })?;
        Ok(Self(Arc::new(Inner {
            coalescer: Coalescer::new(&database),
            notifier: Notifier::start(database.clone()),
            database,
            lanes: Arc::clone(&self.0.lanes),
            wakeups: self.0.wakeups.clone(),
            listener: std::sync::OnceLock::new(),
            pace: Pace::default(),
            unreadable: Unreadable::default(),
            summaries: Summaries::default(),
        })))
    }

    /// How many migrations the database lacks, without applying any.
    pub async fn pending_migrations(options: PostgresOptions) -> Result<usize> {
        let database = Database::new(options)?;
        migrate::wait_until_up(&database).await?;
        let version = migrate::current_version(&database.connection().await?).await?;
        migrate::refuse_newer(version)?;
        Ok(usize::try_from(SCHEMA_VERSION - version).unwrap_or(0))
    }

    async fn check_version(database: &Database) -> Result<()> {
        let version = migrate::current_version(&database.connection().await?).await?;
        migrate::refuse_newer(version)?;
        if version < SCHEMA_VERSION {
            return Err(StoreError::Schema(format!(
                "the database has schema version {version}, this program needs {SCHEMA_VERSION}: apply the migrations first"
            )));
        }
        Ok(())
    }

    /// Waits until hints about what was recorded so far are on their way to other processes, for a program that ends right
    /// after. Without it they find the work by polling.
    pub async fn flush(&self) {
        self.0.notifier.flush().await;
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.0.pace
    }

    pub(crate) fn unreadable(&self) -> &Unreadable {
        &self.0.unreadable
    }

    pub(crate) fn database(&self) -> &Database {
        &self.0.database
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.0.lanes
    }

    /// Gives a hint here and to other processes.
    pub(crate) fn wake(&self, wakeup: Wakeup) {
        if let Wakeup::Queue(queue) = &wakeup {
            self.0.notifier.tell(queue);
        }
        self.0.wakeups.wake(wakeup);
    }

    /// Gives a hint if a job has become claimable. Its queue, type, rank and time stand in `row` from `column` on.
    pub(crate) fn note_ready(&self, state: JobState, row: &Row, column: usize) {
        if state == JobState::Pending {
            let queue = Queue::trusted(row.get(column));
            let place = Place::before(row.get(column + 2), row.get(column + 3));
            self.lanes().ready(&queue, &JobType::trusted(row.get(column + 1)), place);
            self.wake(Wakeup::Queue(queue));
        } else if state.next(Event::Promote).is_ok() {
            self.wake_timers();
        }
    }

    // Gives a hint that a job began to wait for a time, here and to other processes.
    fn wake_timers(&self) {
        self.0.notifier.tell_timers();
        self.0.wakeups.wake_timers();
    }

    fn note_recorded(&self, jobs: &[(Queue, JobType, Priority)], recorded: &[Enqueued]) {
        let mut told: Option<&Queue> = None;
        if recorded.iter().any(|job| job.state == JobState::Scheduled && !job.duplicate) {
            self.wake_timers();
        }
        for ((queue, job_type, priority), enqueued) in jobs.iter().zip(recorded) {
            if enqueued.state == JobState::Pending && !enqueued.duplicate {
                self.lanes().recorded(queue, job_type, -priority.get());
                if told != Some(queue) {
                    self.wake(Wakeup::Queue(queue.clone()));
                    told = Some(queue);
                }
            }
        }
    }

    /// Tells those who wait for jobs that have just finished, and so on along chains of cancelled ones. The endings are
    /// durable, so a failure here is not the caller's: the sweep finds what is left.
    pub(crate) async fn tell_dependents(&self, fence: Fence, mut parents: Vec<JobId>) {
        for _ in 0..TELL_ROUNDS {
            if parents.is_empty() {
                return;
            }
            match housekeeping::tell(self, fence, TELL_BATCH, Some(&parents)).await {
                Ok(told) if told.edges < TELL_BATCH => parents = told.cancelled,
                Ok(told) => parents.extend(told.cancelled),
                Err(error) => {
                    tracing::warn!(%error, "dependents were not told yet; the sweep will");
                    return;
                }
            }
        }
    }
}

#[async_trait]
impl JobStore for PostgresStore {
    async fn enqueue_job(&self, job: NewJob) -> Result<Enqueued> {
        let parents = check_job(&job)?;
        let key = [(job.queue.clone(), job.job_type.clone(), job.priority)];
        let recorded = if job.depends_on.is_empty() {
            self.0.coalescer.record(job).await?
        } else {
            enqueue::record_one(self, &job, parents).await?
        };
        self.note_recorded(&key, &[recorded]);
        Ok(recorded)
    }

    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let recorded = enqueue::record_all(self, &jobs).await?;
        let keys: Vec<_> = jobs.into_iter().map(|job| (job.queue, job.job_type, job.priority)).collect();
        self.note_recorded(&keys, &recorded);
        Ok(recorded)
    }

    async fn release_held_job(&self, id: JobId) -> Result<JobState> {
        operate::release_hold(self, id).await
    }

    async fn cancel_job(&self, id: JobId) -> Result<JobState> {
        operate::cancel(self, id).await
    }

    async fn retry_job(&self, id: JobId) -> Result<JobState> {
        operate::retry(self, id).await
    }

    async fn retry_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>> {
        operate::retry_many(self, filter, page).await
    }

    async fn reprioritize_job(&self, id: JobId, priority: Priority) -> Result<JobState> {
        operate::reprioritize(self, id, priority).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        inspect::get(self, id).await
    }

    async fn job_summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>> {
        inspect::summaries(self, ids).await
    }

    async fn job_states(&self, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
        inspect::states(self, ids).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        inspect::list(self, filter, page).await
    }

    async fn job_logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
        inspect::logs(self, id, page).await
    }

    async fn logs_after(&self, places: &[(JobId, i64)], limit: usize) -> Result<Vec<((JobId, i64), LogEntry)>> {
        inspect::tails(self, places, limit).await
    }

    async fn recent_changes(&self, query: &ChangesQuery) -> Result<ChangesPage> {
        recent::recent(self, query).await
    }
}

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        claim::claim(self, request).await
    }

    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        claim::heartbeat(self, tokens).await
    }

    async fn finish_attempts(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        finish::finish(self, &items).await
    }

    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        finish::progress(self, token, &update).await
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        finish::append_logs(self, token, &lines).await
    }
}

#[async_trait]
impl WorkerStore for PostgresStore {
    async fn register_worker(&self, worker: &WorkerInfo) -> Result<Directive> {
        worker::register(self, worker).await
    }

    async fn heartbeat_worker(&self, name: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        worker::heartbeat(self, name, &presence).await
    }

    async fn remove_worker(&self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool> {
        worker::remove(self, name, instance).await
    }

    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool> {
        worker::direct(self, name, directive).await
    }

    async fn list_workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>> {
        worker::list(self, page).await
    }
}

#[async_trait]
impl QueueStore for PostgresStore {
    async fn pause_queue(&self, queue: &Queue) -> Result<()> {
        operate::pause_queue(self, queue, true).await
    }

    async fn resume_queue(&self, queue: &Queue) -> Result<()> {
        operate::pause_queue(self, queue, false).await
    }

    async fn paused_queues(&self) -> Result<Vec<Queue>> {
        operate::paused_queues(self).await
    }

    async fn queue_depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
        inspect::depths(self, page).await
    }

    async fn queue_depth(&self, queue: &Queue) -> Result<Option<QueueDepth>> {
        inspect::depth(self, queue).await
    }

    async fn claimable_lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        inspect::lanes(self, limit).await
    }
}

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn put_schedule(&self, scope: TenantScope<'_>, schedule: NewSchedule) -> Result<PutResult> {
        schedule::put(self, scope, schedule).await
    }

    async fn delete_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        schedule::delete(self, scope, name).await
    }

    async fn pause_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool> {
        schedule::pause(self, scope, name, note).await
    }

    async fn resume_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        schedule::resume(self, scope, name).await
    }

    async fn trigger_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued> {
        by_hand::trigger(self, scope, name).await
    }

    async fn backfill_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize> {
        by_hand::backfill(self, scope, name, range).await
    }

    async fn schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
        schedule::find(self, scope, name).await
    }

    async fn list_schedules(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>> {
        schedule::list(self, scope, page).await
    }

    async fn list_occurrences(
        &self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>> {
        ledger::list(self, scope, name, page).await
    }
}

#[async_trait]
impl AdminStore for PostgresStore {
    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation> {
        operation::begin(self, operation).await
    }

    async fn abort_operation(&self, id: OperationId) -> Result<Operation> {
        operation::abort(self, id).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>> {
        operation::find(self, id).await
    }

    async fn list_operations(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>> {
        operation::list(self, scope, page).await
    }

    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>> {
        operation::open(self, limit).await
    }

    async fn create_key(&self, key: NewKey) -> Result<ApiKey> {
        key::create(self, &key).await
    }

    async fn revoke_key(&self, id: &KeyId) -> Result<bool> {
        key::revoke(self, id).await
    }

    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>> {
        key::find(self, id).await
    }

    async fn list_keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
        key::list(self, page).await
    }

    async fn begin_audit_entry(&self, entry: NewAuditEntry) -> Result<i64> {
        audit::begin(self, &entry).await
    }

    async fn finish_audit_entry(&self, seq: i64, outcome: &str) -> Result<bool> {
        audit::end(self, seq, outcome).await
    }

    async fn list_audit_entries(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        audit::list(self, filter, page).await
    }
}

#[async_trait]
impl CoordinationStore for PostgresStore {
    async fn campaign_for_leadership(
        &self,
        node: &NodeName,
        term: Duration,
        held: Option<Epoch>,
    ) -> Result<Leadership> {
        coordination::campaign(self, node, term, held).await
    }

    async fn resign_leadership(&self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        coordination::resign(self, node, epoch).await
    }

    async fn leader(&self) -> Result<Option<NodeName>> {
        coordination::leader(self).await
    }

    async fn heartbeat_node(&self, node: &NodeInfo) -> Result<()> {
        coordination::heartbeat_node(self, node).await
    }

    async fn remove_node(&self, name: &NodeName) -> Result<bool> {
        coordination::remove_node(self, name).await
    }

    async fn list_nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
        coordination::nodes(self, page).await
    }

    async fn promote_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        housekeeping::promote(self, fence, limit).await
    }

    async fn unblock_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        housekeeping::unblock(self, fence, limit).await
    }

    async fn expire_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        housekeeping::expire(self, fence, limit).await
    }

    async fn reap_leases(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<SweepResult> {
        housekeeping::reap(self, fence, limit, crash_loop).await
    }

    async fn time_out_attempts(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        housekeeping::time_out(self, fence, limit).await
    }

    async fn fire_schedules(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        fire::fire(self, fence, limit).await
    }

    async fn advance_operation(&self, fence: Fence, id: OperationId, step: OperationStep) -> Result<Operation> {
        operation::advance(self, fence, id, &step).await
    }

    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        worker::forget(self, fence, silence, limit).await
    }

    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        coordination::forget_nodes(self, fence, silence, limit).await
    }

    async fn prune_history(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned> {
        prune::prune(self, fence, retention, limit).await
    }

    async fn fold_depths(&self, limit: usize) -> Result<usize> {
        inspect::fold(self, limit).await
    }

    async fn next_sweep_times(&self) -> Result<SweepTimes> {
        coordination::agenda(self).await
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn now(&self) -> Result<Timestamp> {
        inspect::now(self).await
    }

    fn job_wakeups(&self) -> Wakeups {
        self.0.wakeups.subscribe()
    }

    fn timer_wakeups(&self) -> Wakeups {
        self.0.wakeups.timers()
    }

    fn dedicated_handle(&self, connections: usize) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.opened_apart(connections)?))
    }
}
