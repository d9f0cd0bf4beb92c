//! A store that does all that it is asked, but for one thing.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::{
    Instance, Job, JobId, JobState, JobType, KeyId, LeaseToken, NewJob, NewSchedule, NodeName, OperationId, Priority,
    Queue, ScheduleName, Timestamp, WorkerName,
};
use orchestrix_store::*;

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slip {
    /// A new priority is answered and not kept.
    Priority,
    /// So is a pause.
    Pause,
    /// A crash loop is one loss longer than asked for.
    CrashLoop,
}

pub(crate) struct Forgetful {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) slip: Slip,
}

// The verbs that are passed on as they are, and those that are written out.
macro_rules! passed_on {
    ($($verb:ident($($name:ident: $type:ty),*) -> $answer:ty;)+ { $($own:tt)+ }) => {
        #[async_trait]
        impl Store for Forgetful {
            $(async fn $verb(&self, $($name: $type),*) -> $answer {
                self.store.$verb($($name),*).await
            })+
            $($own)+
        }
    };
}

passed_on! {
    enqueue(job: NewJob) -> Result<Enqueued>;
    enqueue_many(jobs: Vec<NewJob>) -> Result<Vec<Enqueued>>;
    release_hold(id: JobId) -> Result<JobState>;
    cancel(id: JobId) -> Result<JobState>;
    claim(request: &ClaimRequest) -> Result<Vec<Claimed>>;
    heartbeat(tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>>;
    finish(items: Vec<Finish>) -> Result<Vec<Result<JobState, FinishError>>>;
    progress(token: LeaseToken, update: ProgressUpdate) -> Result<()>;
    append_logs(token: LeaseToken, lines: Vec<LogLine>) -> Result<()>;
    register_worker(worker: &WorkerInfo) -> Result<Directive>;
    heartbeat_worker(name: &WorkerName, presence: Presence) -> Result<Option<Directive>>;
    remove_worker(name: &WorkerName, instance: Option<&Instance>) -> Result<bool>;
    retry(id: JobId) -> Result<JobState>;
    retry_many(filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>>;
    resume_queue(queue: &Queue) -> Result<()>;
    paused_queues() -> Result<Vec<Queue>>;
    promote(fence: Fence, limit: usize) -> Result<Swept>;
    unblock(fence: Fence, limit: usize) -> Result<Swept>;
    expire(fence: Fence, limit: usize) -> Result<Swept>;
    time_out(fence: Fence, limit: usize) -> Result<Swept>;
    forget_workers(fence: Fence, silence: Duration, limit: usize) -> Result<usize>;
    prune(fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned>;
    summaries(ids: &[JobId]) -> Result<Vec<JobSummary>>;
    recent(lately: &Lately) -> Result<Recent>;
    get(id: JobId) -> Result<Option<Job>>;
    list(filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>>;
    logs(id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>>;
    depths(page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>>;
    depth(queue: &Queue) -> Result<Option<QueueDepth>>;
    direct_worker(name: &WorkerName, directive: Directive) -> Result<bool>;
    begin_operation(operation: NewOperation) -> Result<Operation>;
    abort_operation(id: OperationId) -> Result<Operation>;
    advance_operation(fence: Fence, id: OperationId, step: Advance) -> Result<Operation>;
    operation(id: OperationId) -> Result<Option<Operation>>;
    operations(within: Within<'_>, page: &PageRequest<OperationId>) -> Result<Page<Operation, OperationId>>;
    open_operations(limit: usize) -> Result<Vec<Operation>>;
    create_key(key: NewKey) -> Result<ApiKey>;
    revoke_key(id: &KeyId) -> Result<bool>;
    key(id: &KeyId) -> Result<Option<KeyRecord>>;
    keys(page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>>;
    begin_audit(entry: NewAudit) -> Result<i64>;
    end_audit(seq: i64, outcome: &str) -> Result<bool>;
    audit(filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>>;
    lanes(limit: usize) -> Result<Vec<(Queue, JobType)>>;
    workers(page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>>;
    forget_nodes(fence: Fence, silence: Duration, limit: usize) -> Result<usize>;
    fold_depths(limit: usize) -> Result<usize>;
    agenda() -> Result<Agenda>;
    heartbeat_node(node: &NodeInfo) -> Result<()>;
    remove_node(name: &NodeName) -> Result<bool>;
    campaign(node: &NodeName, term: Duration, held: Option<Epoch>) -> Result<Leadership>;
    resign(node: &NodeName, epoch: Epoch) -> Result<bool>;
    now() -> Result<Timestamp>;
    leader() -> Result<Option<NodeName>>;
    nodes(page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>>;
    put_schedule(within: Within<'_>, schedule: NewSchedule) -> Result<Put>;
    delete_schedule(within: Within<'_>, name: &ScheduleName) -> Result<bool>;
    pause_schedule(within: Within<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool>;
    resume_schedule(within: Within<'_>, name: &ScheduleName) -> Result<bool>;
    trigger_schedule(within: Within<'_>, name: &ScheduleName) -> Result<Enqueued>;
    backfill_schedule(within: Within<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize>;
    fire(fence: Fence, limit: usize) -> Result<Swept>;
    schedule(within: Within<'_>, name: &ScheduleName) -> Result<Option<Schedule>>;
    schedules(within: Within<'_>, page: &PageRequest<ScheduleName>) -> Result<Page<Schedule, ScheduleName>>;
    occurrences(within: Within<'_>, name: &ScheduleName, page: &PageRequest<Timestamp>) -> Result<Page<Occurrence, Timestamp>>;
    {
        async fn reprioritize(&self, id: JobId, priority: Priority) -> Result<JobState> {
            let before = self.store.get(id).await?.map(|job| job.priority);
            let kept = if self.slip == Slip::Priority { before.unwrap_or(priority) } else { priority };
            self.store.reprioritize(id, kept).await
        }

        async fn pause_queue(&self, queue: &Queue) -> Result<()> {
            if self.slip == Slip::Pause { Ok(()) } else { self.store.pause_queue(queue).await }
        }

        async fn reap(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<Swept> {
            self.store.reap(fence, limit, crash_loop + u16::from(self.slip == Slip::CrashLoop)).await
        }

        fn subscribe(&self) -> Wakeups {
            self.store.subscribe()
        }

        fn timers(&self) -> Wakeups {
            self.store.timers()
        }

        fn apart(&self, connections: usize) -> Result<Arc<dyn Store>> {
            Ok(Arc::new(Self { store: self.store.apart(connections)?, slip: self.slip }))
        }
    }
}
