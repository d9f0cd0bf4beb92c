//! A store that forwards every call to another one, with one injected bug.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::{
    Instance, Job, JobId, JobState, JobType, KeyId, LeaseToken, NewJob, NewSchedule, NodeName, OperationId, Priority,
    Queue, ScheduleName, Tenant, Timestamp, WorkerName,
};
use orchestrix_store::*;

/// The injected bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// `reprioritize_job` succeeds without an effect.
    Priority,
    /// `pause_queue` succeeds without an effect.
    Pause,
    /// `reap_leases` allows one loss too many.
    CrashLoop,
    /// `claim_jobs` returns the right jobs in reverse order.
    ClaimOrder,
    /// `claim_jobs` reads few lanes if the request names all queues.
    FewLanes,
    /// `claim_jobs` forgets whose turn it is if the request names queues or types.
    Turns,
}

pub(crate) struct FaultyStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bug: Bug,
}

// Lists the methods that are forwarded unchanged, then contains the others in full.
macro_rules! forward {
    ($trait:ident: $($method:ident($($name:ident: $type:ty),*) -> $output:ty;)+ { $($own:tt)* }) => {
        #[async_trait]
        impl $trait for FaultyStore {
            $(async fn $method(&self, $($name: $type),*) -> $output {
                self.store.$method($($name),*).await
            })+
            $($own)*
        }
    };
}

forward! {
    JobStore:
    enqueue_job(job: NewJob) -> Result<Enqueued>;
    enqueue_jobs(jobs: Vec<NewJob>) -> Result<Vec<Enqueued>>;
    release_held_job(id: JobId) -> Result<JobState>;
    cancel_job(id: JobId) -> Result<JobState>;
    retry_job(id: JobId) -> Result<JobState>;
    retry_jobs(filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>>;
    job(id: JobId) -> Result<Option<Job>>;
    job_summaries(ids: &[JobId]) -> Result<Vec<JobSummary>>;
    list_jobs(filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>>;
    job_logs(id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>>;
    recent_changes(query: &ChangesQuery) -> Result<ChangesPage>;
    {
        async fn reprioritize_job(&self, id: JobId, priority: Priority) -> Result<JobState> {
            let before = self.store.job(id).await?.map(|job| job.priority);
            let written = if self.bug == Bug::Priority { before.unwrap_or(priority) } else { priority };
            self.store.reprioritize_job(id, written).await
        }
    }
}

forward! {
    LeaseStore:
    extend_leases(tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>>;
    finish_attempts(items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>>;
    record_progress(token: LeaseToken, update: ProgressUpdate) -> Result<()>;
    append_logs(token: LeaseToken, lines: Vec<LogLine>) -> Result<()>;
    {
        async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
            let mut request = request.clone();
            if self.bug == Bug::FewLanes && request.queues == Queues::All {
                let lanes = self.store.claimable_lanes(1_000).await?;
                let names: std::collections::BTreeSet<Queue> = lanes.into_iter().map(|(queue, _)| queue).collect();
                request.queues = Queues::Named(names.into_iter().collect());
            }
            if self.bug == Bug::Turns {
                // Claims of other names have other turns.
                let unused = format!("unused{}", rand::random::<u64>());
                if let Queues::Named(names) = &mut request.queues {
                    names.push(Queue::trusted(&unused));
                }
                request.job_types.iter_mut().for_each(|types| types.push(JobType::trusted(&unused)));
            }
            let mut claimed = self.store.claim_jobs(&request).await?;
            if self.bug == Bug::ClaimOrder {
                claimed.reverse();
            }
            Ok(claimed)
        }
    }
}

forward! {
    WorkerStore:
    register_worker(worker: &WorkerInfo) -> Result<Directive>;
    heartbeat_worker(name: &WorkerName, presence: Presence) -> Result<Option<Directive>>;
    remove_worker(name: &WorkerName, instance: Option<&Instance>) -> Result<bool>;
    direct_worker(name: &WorkerName, directive: Directive) -> Result<bool>;
    list_workers(page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>>;
    {}
}

forward! {
    QueueStore:
    resume_queue(queue: &Queue) -> Result<()>;
    paused_queues() -> Result<Vec<Queue>>;
    queue_depths(page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>>;
    queue_depth(queue: &Queue) -> Result<Option<QueueDepth>>;
    claimable_lanes(limit: usize) -> Result<Vec<(Queue, JobType)>>;
    {
        async fn pause_queue(&self, queue: &Queue) -> Result<()> {
            if self.bug == Bug::Pause { Ok(()) } else { self.store.pause_queue(queue).await }
        }
    }
}

forward! {
    ScheduleStore:
    put_schedule(scope: TenantScope<'_>, schedule: NewSchedule) -> Result<PutResult>;
    delete_schedule(scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool>;
    pause_schedule(scope: TenantScope<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool>;
    resume_schedule(scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool>;
    trigger_schedule(scope: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued>;
    backfill_schedule(scope: TenantScope<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize>;
    schedule(scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>>;
    list_schedules(scope: TenantScope<'_>, page: &PageRequest<ScheduleName>) -> Result<Page<Schedule, ScheduleName>>;
    list_occurrences(scope: TenantScope<'_>, name: &ScheduleName, page: &PageRequest<Timestamp>) -> Result<Page<Occurrence, Timestamp>>;
    {}
}

forward! {
    AdminStore:
    begin_operation(operation: NewOperation) -> Result<Operation>;
    abort_operation(id: OperationId) -> Result<Operation>;
    operation(id: OperationId) -> Result<Option<Operation>>;
    list_operations(scope: TenantScope<'_>, page: &PageRequest<OperationId>) -> Result<Page<Operation, OperationId>>;
    open_operations(limit: usize) -> Result<Vec<Operation>>;
    create_key(key: NewKey) -> Result<ApiKey>;
    revoke_key(id: &KeyId) -> Result<bool>;
    key(id: &KeyId) -> Result<Option<KeyRecord>>;
    list_keys(page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>>;
    begin_audit_entry(entry: NewAuditEntry) -> Result<i64>;
    finish_audit_entry(seq: i64, outcome: &str) -> Result<bool>;
    list_audit_entries(filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>>;
    {}
}

forward! {
    TenantStore:
    tenant_settings(tenant: &Tenant) -> Result<TenantSettings>;
    set_tenant(tenant: &Tenant, patch: TenantPatch) -> Result<TenantSettings>;
    list_tenants(page: &PageRequest<Tenant>) -> Result<Page<(Tenant, TenantSettings), Tenant>>;
    {}
}

forward! {
    CoordinationStore:
    campaign_for_leadership(node: &NodeName, term: Duration, held: Option<Epoch>) -> Result<Leadership>;
    resign_leadership(node: &NodeName, epoch: Epoch) -> Result<bool>;
    leader() -> Result<Option<NodeName>>;
    heartbeat_node(node: &NodeInfo) -> Result<()>;
    remove_node(name: &NodeName) -> Result<bool>;
    list_nodes(page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>>;
    promote_jobs(fence: Fence, limit: usize) -> Result<SweepResult>;
    unblock_jobs(fence: Fence, limit: usize) -> Result<SweepResult>;
    expire_jobs(fence: Fence, limit: usize) -> Result<SweepResult>;
    time_out_attempts(fence: Fence, limit: usize) -> Result<SweepResult>;
    fire_schedules(fence: Fence, limit: usize) -> Result<SweepResult>;
    advance_operation(fence: Fence, id: OperationId, step: OperationStep) -> Result<Operation>;
    forget_workers(fence: Fence, silence: Duration, limit: usize) -> Result<usize>;
    forget_nodes(fence: Fence, silence: Duration, limit: usize) -> Result<usize>;
    prune_history(fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned>;
    fold_depths(limit: usize) -> Result<usize>;
    vacuum_tables() -> Result<usize>;
    next_sweep_times() -> Result<SweepTimes>;
    {
        async fn reap_leases(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<SweepResult> {
            self.store.reap_leases(fence, limit, crash_loop + u16::from(self.bug == Bug::CrashLoop)).await
        }
    }
}

forward! {
    Store:
    now() -> Result<Timestamp>;
    {
        fn job_wakeups(&self) -> Wakeups {
            self.store.job_wakeups()
        }

        fn timer_wakeups(&self) -> Wakeups {
            self.store.timer_wakeups()
        }

        fn dedicated_handle(&self, connections: usize) -> Result<Arc<dyn Store>> {
            Ok(Arc::new(Self { store: self.store.dedicated_handle(connections)?, bug: self.bug }))
        }
    }
}
