//! A store in memory, for tests, examples and anything that may be lost with its process.
//!
//! One mutex around plain maps: every verb is a short step under the lock, so each is atomic, and the order in which
//! they take it is the order in which they happened. The decisions are all `orchestrix-core`'s; what is left here is
//! to find the jobs that a verb concerns (by indexes, never by looking at every job) and to write down what was
//! decided. Durability is the one promise of a store that this one does not keep.
//!
//! | module | what it owns |
//! |---|---|
//! | `tables` | the maps, and the one way to change a job |
//! | `row` | a job and what only the store knows of it |
//! | `index` | the orders in which jobs are looked for |
//! | `attempt` | what the end of an attempt does to a job |
//! | `settle` | what the end of a job does to those that wait for it |
//! | `coordination` | nodes, and who leads |
//! | the others | one group of verbs each, named as in the trait |

mod attempt;
mod audit;
mod cancel;
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
mod recent;
mod row;
mod schedule;
mod settle;
mod tables;
mod worker;

use std::{
    mem,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use orchestrix_core::{
    Instance, Job, JobId, JobState, JobType, KeyId, LeaseToken, NewJob, NewSchedule, NodeName, OperationId, Priority,
    Queue, ScheduleName, Timestamp, WorkerName,
};

use self::tables::Tables;
use crate::{
    Advance, Agenda, ApiKey, AuditEntry, AuditFilter, Backfill, ClaimRequest, Claimed, Clock, Directive, Enqueued,
    Epoch, Fence, Finish, FinishError, JobFilter, JobSummary, KeyRecord, Lately, Leadership, LeaseStatus, LogEntry,
    LogLine, NewAudit, NewKey, NewOperation, NodeInfo, NodeStatus, Occurrence, Operation, Page, PageRequest, Presence,
    ProgressUpdate, Pruned, Put, QueueDepth, Recent, Result, Retention, Schedule, Store, Swept, SystemClock, Wakeup,
    Wakeups, Within, WorkerInfo, WorkerStatus,
    coordination::check_term,
    housekeeping::{MAX_SWEEP, check_limit},
    wakeup::Waker,
};

/// A [`Store`] that lives and dies with its process. Clones share its jobs.
///
/// ```
/// # use std::sync::Arc;
/// use orchestrix_store::{MemoryStore, Store};
///
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// ```
#[derive(Debug, Clone)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    tables: Arc<Mutex<Tables>>,
    waker: Waker,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store on the machine's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store on a clock of your own.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tables: Arc::default(), waker: Waker::default() }
    }

    // The time is read under the lock, so that time never runs backwards between two verbs; wake-ups are given after
    // it, so that whoever is woken finds the job.
    fn with<R>(&self, verb: impl FnOnce(&mut Tables, Timestamp) -> R) -> R {
        let mut tables = self.tables.lock().expect("no verb panics half-way");
        let answer = verb(&mut tables, self.clock.now());
        let woken = mem::take(&mut tables.woken);
        let timed = mem::take(&mut tables.timed);
        let tally = mem::take(&mut tables.tally);
        drop(tables);
        tally.count();
        if timed {
            self.waker.wake_timers();
        }
        for queue in woken {
            self.waker.wake(Wakeup::Queue(queue));
        }
        answer
    }
}

impl MemoryStore {
    // A step that nobody may ask for is refused as that, whoever asks.
    fn fenced<R>(
        &self,
        fence: Fence,
        limit: usize,
        verb: impl FnOnce(&mut Tables, Timestamp) -> Result<R>,
    ) -> Result<R> {
        check_limit(limit, MAX_SWEEP)?;
        self.with(|tables, now| {
            fence.check(tables.coordination.epoch())?;
            verb(tables, now)
        })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn enqueue(&self, job: NewJob) -> Result<Enqueued> {
        self.with(|tables, now| tables.enqueue(job, now))
    }

    async fn enqueue_many(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        self.with(|tables, now| tables.enqueue_many(jobs, now))
    }

    async fn release_hold(&self, id: JobId) -> Result<JobState> {
        self.with(|tables, now| tables.release_hold(id, now))
    }

    async fn cancel(&self, id: JobId) -> Result<JobState> {
        self.with(|tables, now| tables.cancel(id, now))
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>> {
        self.with(|tables, now| tables.claim(request, now))
    }

    async fn heartbeat(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        self.with(|tables, now| tables.heartbeat(tokens, now))
    }

    async fn finish(&self, items: Vec<Finish>) -> Result<Vec<Result<JobState, FinishError>>> {
        self.with(|tables, now| tables.finish(&items, now))
    }

    async fn progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        self.with(|tables, _| tables.progress(token, update))
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        self.with(|tables, now| tables.append_logs(token, lines, now))
    }

    async fn register_worker(&self, worker: &WorkerInfo) -> Result<Directive> {
        Ok(self.with(|tables, now| tables.workers.register(worker, now)))
    }

    async fn heartbeat_worker(&self, name: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        Ok(self.with(|tables, now| tables.workers.heartbeat(name, &presence, now)))
    }

    async fn remove_worker(&self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool> {
        Ok(self.with(|tables, _| tables.workers.remove(name, instance)))
    }

    async fn retry(&self, id: JobId) -> Result<JobState> {
        self.with(|tables, now| tables.retry(id, now))
    }

    async fn retry_many(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>> {
        self.with(|tables, now| tables.retry_many(filter, page, now))
    }

    async fn reprioritize(&self, id: JobId, priority: Priority) -> Result<JobState> {
        self.with(|tables, _| tables.reprioritize(id, priority))
    }

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

    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool> {
        Ok(self.with(|tables, _| tables.workers.direct(name, directive)))
    }

    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation> {
        self.with(|tables, now| tables.operations.begin(operation, now))
    }

    async fn abort_operation(&self, id: OperationId) -> Result<Operation> {
        self.with(|tables, now| tables.operations.abort(id, now))
    }

    async fn create_key(&self, key: NewKey) -> Result<ApiKey> {
        self.with(|tables, now| tables.api_keys.create(key, now))
    }

    async fn revoke_key(&self, id: &KeyId) -> Result<bool> {
        Ok(self.with(|tables, now| tables.api_keys.revoke(id, now)))
    }

    async fn begin_audit(&self, entry: NewAudit) -> Result<i64> {
        self.with(|tables, now| tables.audit.begin(entry, now))
    }

    async fn end_audit(&self, seq: i64, outcome: &str) -> Result<bool> {
        self.with(|tables, _| tables.audit.end(seq, outcome))
    }

    async fn put_schedule(&self, within: Within<'_>, schedule: NewSchedule) -> Result<Put> {
        self.with(|tables, now| tables.put_schedule(within, schedule, now))
    }

    async fn delete_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<bool> {
        Ok(self.with(|tables, _| tables.schedules.delete(within, name)))
    }

    async fn pause_schedule(&self, within: Within<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool> {
        self.with(|tables, now| tables.schedules.pause(within, name, note, now))
    }

    async fn resume_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<bool> {
        self.with(|tables, now| tables.resume_schedule(within, name, now))
    }

    async fn trigger_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<Enqueued> {
        self.with(|tables, now| tables.trigger_schedule(within, name, now))
    }

    async fn backfill_schedule(&self, within: Within<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize> {
        self.with(|tables, now| tables.backfill_schedule(within, name, range, now))
    }

    async fn promote(&self, fence: Fence, limit: usize) -> Result<Swept> {
        self.fenced(fence, limit, |tables, now| tables.promote(limit, now))
    }

    async fn unblock(&self, fence: Fence, limit: usize) -> Result<Swept> {
        self.fenced(fence, limit, |tables, _| tables.unblock(limit))
    }

    async fn expire(&self, fence: Fence, limit: usize) -> Result<Swept> {
        self.fenced(fence, limit, |tables, now| tables.expire(limit, now))
    }

    async fn reap(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<Swept> {
        self.fenced(fence, limit, |tables, now| tables.reap(limit, crash_loop, now))
    }

    async fn time_out(&self, fence: Fence, limit: usize) -> Result<Swept> {
        self.fenced(fence, limit, |tables, now| tables.time_out(limit, now))
    }

    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        self.fenced(fence, limit, |tables, now| tables.workers.forget(silence, limit, now))
    }

    async fn prune(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned> {
        self.fenced(fence, limit, |tables, now| tables.prune(retention, limit, now))
    }

    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        self.fenced(fence, limit, |tables, now| tables.coordination.forget(silence, limit, now))
    }

    async fn fire(&self, fence: Fence, limit: usize) -> Result<Swept> {
        self.fenced(fence, limit, |tables, now| tables.fire(limit, now))
    }

    async fn advance_operation(&self, fence: Fence, id: OperationId, step: Advance) -> Result<Operation> {
        step.validate()?;
        self.fenced(fence, 1, |tables, now| tables.advance_operation(id, &step, now))
    }

    async fn fold_depths(&self, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        Ok(0)
    }

    async fn agenda(&self) -> Result<Agenda> {
        Ok(self.with(|tables, now| tables.agenda(now)))
    }

    async fn heartbeat_node(&self, node: &NodeInfo) -> Result<()> {
        node.validate()?;
        self.with(|tables, now| tables.coordination.heartbeat(node, now));
        Ok(())
    }

    async fn remove_node(&self, name: &NodeName) -> Result<bool> {
        Ok(self.with(|tables, _| tables.coordination.remove(name)))
    }

    async fn campaign(&self, node: &NodeName, term: Duration, held: Option<Epoch>) -> Result<Leadership> {
        check_term(term)?;
        Ok(self.with(|tables, now| tables.coordination.campaign(node, term, held, now)))
    }

    async fn resign(&self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        Ok(self.with(|tables, now| tables.coordination.resign(node, epoch, now)))
    }

    async fn now(&self) -> Result<Timestamp> {
        Ok(self.with(|_, now| now))
    }

    async fn leader(&self) -> Result<Option<NodeName>> {
        Ok(self.with(|tables, now| tables.coordination.leader(now).cloned()))
    }

    async fn nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
        self.with(|tables, now| tables.coordination.page(page, now))
    }

    async fn summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>> {
        Ok(self.with(|tables, _| tables.summaries(ids)))
    }

    async fn recent(&self, lately: &Lately) -> Result<Recent> {
        self.with(|tables, now| tables.recent(lately, now))
    }

    async fn get(&self, id: JobId) -> Result<Option<Job>> {
        Ok(self.with(|tables, _| tables.get(id)))
    }

    async fn list(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        self.with(|tables, _| tables.list(filter, page))
    }

    async fn logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
        self.with(|tables, _| tables.log_page(id, page))
    }

    async fn depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
        self.with(|tables, now| tables.depths(page, now))
    }

    async fn depth(&self, queue: &Queue) -> Result<Option<QueueDepth>> {
        Ok(self.with(|tables, now| tables.depth(queue, now)))
    }

    async fn lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        self.with(|tables, _| tables.lanes(limit))
    }

    async fn workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>> {
        self.with(|tables, now| tables.workers.page(page, now))
    }

    async fn schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
        Ok(self.with(|tables, _| tables.schedules.find(within, name).cloned()))
    }

    async fn schedules(
        &self,
        within: Within<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>> {
        self.with(|tables, _| tables.schedules.page(within, page))
    }

    async fn occurrences(
        &self,
        within: Within<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>> {
        self.with(|tables, _| tables.schedules.occurrences(within, name, page))
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>> {
        Ok(self.with(|tables, _| tables.operations.find(id)))
    }

    async fn operations(
        &self,
        within: Within<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>> {
        self.with(|tables, _| tables.operations.page(within, page))
    }

    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>> {
        self.with(|tables, _| tables.operations.open(limit))
    }

    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>> {
        Ok(self.with(|tables, now| tables.api_keys.find(id, now)))
    }

    async fn keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
        self.with(|tables, _| tables.api_keys.page(page))
    }

    async fn audit(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        self.with(|tables, _| tables.audit.page(filter, page))
    }

    fn subscribe(&self) -> Wakeups {
        self.waker.subscribe()
    }

    fn timers(&self) -> Wakeups {
        self.waker.timers()
    }

    fn apart(&self, _connections: usize) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.clone()))
    }
}
