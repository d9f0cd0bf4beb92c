//! The `Store`: where jobs live, in the domain's verbs.
//!
//! A store is the only truth about jobs. It decides with `orchestrix-core` and makes every decision durable before
//! it answers. Whoever needs jobs kept knows this trait and never a backend; whoever writes a backend runs the
//! `conformance` suite (a feature), which is the specification in the form of tests.
//!
//! What every backend keeps:
//!
//! - No `Ok` before the commit.
//! - Every write to a leased job carries its [`LeaseToken`], checked on the job's own row in the write itself.
//! - Time is the store's: eligibility, leases and schedules follow its clock, never the caller's.
//! - Every scan, batch and page has a limit; a caller that wants more calls again.
//! - A wake-up is a hint. Losing all of them costs time, never a job.

pub mod audit;
pub mod claim;
pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod coordination;
pub mod ending;
pub mod enqueue;
pub mod error;
pub mod finish;
pub mod housekeeping;
pub mod inspect;
pub mod key;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod operation;
pub mod options;
pub mod recent;
pub mod schedule;
pub mod standing;
pub mod wakeup;
pub mod within;
pub mod worker;

use std::{any::Any, sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::{
    Instance, Job, JobId, JobState, JobType, KeyId, LeaseToken, NewJob, NewSchedule, NodeName, OperationId, Priority,
    Queue, ScheduleName, Timestamp, WorkerName,
};

pub use audit::{AuditEntry, AuditFilter, NewAudit};
pub use claim::{ClaimRequest, Claimed, LeaseStatus, Queues};
pub use clock::{Clock, ManualClock, SystemClock};
pub use coordination::{Agenda, Epoch, Fence, Leadership, NodeInfo, NodeStatus};
pub use ending::{AttemptEnd, Decided};
pub use enqueue::Enqueued;
pub use error::{Result, StoreError};
pub use finish::{Finish, FinishError, ProgressUpdate, Verdict};
pub use housekeeping::{Pruned, Retention, Swept};
pub use inspect::{JobFilter, JobSummary, Page, PageRequest, QueueDepth};
pub use key::{ApiKey, KeyDigest, KeyRecord, NewKey};
pub use log::{LogEntry, LogLevel, LogLine};
pub use memory::MemoryStore;
pub use operation::{Advance, BulkAction, NewOperation, Operation, OperationEnd, OperationState};
pub use options::Options;
pub use recent::{Glimpse, Lately, Recent};
pub use schedule::{Backfill, Firing, Occurrence, Put, Schedule};
pub use standing::Standing;
pub use wakeup::{Polling, Wakeup, Wakeups};
pub use within::{Within, is_within};
pub use worker::{Directive, Presence, WorkerInfo, WorkerStatus};

/// Durable storage of jobs. See the [crate documentation](crate) for what every implementation keeps.
///
/// A `&dyn Store` is also a `&dyn Any`, for whoever offers more on a backend that it knows.
#[async_trait]
pub trait Store: Any + Send + Sync {
    // ---- producers ----

    /// Records one job. Concurrent calls may share a transaction; each is answered after the commit, and a job that
    /// is refused fails alone.
    async fn enqueue(&self, job: NewJob) -> Result<Enqueued>;

    /// Records all of `jobs` or none. They may depend on each other by [`NewJob::reference`].
    async fn enqueue_many(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>>;

    /// Lets a held job go.
    async fn release_hold(&self, id: JobId) -> Result<JobState>;

    /// Cancels a waiting job at once; asks the owner of a running one to stop, which its heartbeat reports.
    /// Cancelling a cancelled job again is fine.
    async fn cancel(&self, id: JobId) -> Result<JobState>;

    // ---- workers ----

    /// Leases up to [`ClaimRequest::limit`] jobs to a worker: highest priority first, then the longest eligible.
    async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claimed>>;

    /// Extends leases, each by its job's own duration from now. Answers in the order of `tokens`.
    async fn heartbeat(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>>;

    /// Ends up to [`Finish::MAX_ITEMS`] attempts, each by itself: one refused item leaves the others standing. Answers
    /// in the order of `items`.
    /// Repeating an outcome that was accepted is answered as it was the first time.
    async fn finish(&self, items: Vec<Finish>) -> Result<Vec<Result<JobState, FinishError>>>;

    /// Records how far a running job has come, and what its next attempt should get back.
    async fn progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()>;

    /// Adds lines to the log of a running job.
    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()>;

    /// Makes a worker known, or what it says of itself now; answers what it should do. A fresh start runs: another
    /// [instance](WorkerInfo::instance) than the one that is known or, of a worker that names none, one after a silence that made it count
    /// as dead. Anything else is said again by the same worker, and leaves what it was told, its free slots and since when it works.
    async fn register_worker(&self, worker: &WorkerInfo) -> Result<Directive>;

    /// Shows that a worker lives; answers what it should do, or `None` if it is not registered, or counted as dead.
    async fn heartbeat_worker(&self, name: &WorkerName, presence: Presence) -> Result<Option<Directive>>;

    /// Forgets a worker, unless another start of it than this one has taken the name. Its leases run out by themselves.
    async fn remove_worker(&self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool>;

    // ---- operators ----

    /// Gives a dead or cancelled job another chance, with at least one attempt left.
    async fn retry(&self, id: JobId) -> Result<JobState>;

    /// Retries dead and cancelled jobs that match: those of one page of their [`list`](Store::list), newest first. A page may hold none and
    /// still have a next one. Whoever goes on from page to page retries every job once, whatever becomes of it meanwhile.
    async fn retry_many(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>>;

    /// Changes how urgent an unfinished job is.
    async fn reprioritize(&self, id: JobId, priority: Priority) -> Result<JobState>;

    /// Stops claims from a queue. What runs goes on.
    async fn pause_queue(&self, queue: &Queue) -> Result<()>;

    /// Lets claims go on.
    async fn resume_queue(&self, queue: &Queue) -> Result<()>;

    /// The queues that are paused.
    async fn paused_queues(&self) -> Result<Vec<Queue>>;

    /// Says what a worker should do, which its next heartbeat answers; whether it is known. A fresh start of it runs.
    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool>;

    // ---- operations on many jobs ----

    /// Begins an operation, on jobs recorded until now. At most [`NewOperation::MAX_OPEN`] are under way at once, of one tenant at most
    /// [`NewOperation::MAX_OPEN_EACH`]; those who are bound to none count as one.
    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation>;

    /// Stops an operation that runs; answers how it stands. A step under way is waited for, and nothing is done after the answer.
    async fn abort_operation(&self, id: OperationId) -> Result<Operation>;

    // ---- keys ----

    /// Makes a key known.
    async fn create_key(&self, key: NewKey) -> Result<ApiKey>;

    /// Takes a key back; whether there is one. It stays known, and keeps the time it was first taken back.
    async fn revoke_key(&self, id: &KeyId) -> Result<bool>;

    // ---- the audit ----

    /// Records what somebody is about to do; answers with its number.
    async fn begin_audit(&self, entry: NewAudit) -> Result<i64>;

    /// Records how it went; whether that was still open.
    async fn end_audit(&self, seq: i64, outcome: &str) -> Result<bool>;

    // ---- schedules ----

    /// Sets a schedule up, or changes it. The same again changes nothing. One with other times counts them from now on, and what had
    /// passed of the old ones is one line of the ledger; any other edit leaves its times alone. Its ledger stays. A schedule that this
    /// program cannot read is replaced.
    ///
    /// Names are everybody's: one belongs to the tenant that took it first, until it is deleted; whoever puts it for another is refused.
    /// Within a tenant, what is put must be that tenant's, and a name that is another's is answered by [`StoreError::ScheduleNotFound`].
    async fn put_schedule(&self, within: Within<'_>, schedule: NewSchedule) -> Result<Put>;

    /// Forgets a schedule and its ledger; its jobs stay. Whether there was one.
    async fn delete_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<bool>;

    /// Stops a schedule, with a note for people; whether it ran.
    async fn pause_schedule(&self, within: Within<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool>;

    /// Lets a schedule go on from now; whether it was paused. What passed meanwhile is one line of the ledger.
    async fn resume_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<bool>;

    /// Creates one job of a schedule now, whatever else runs and whether or not it is paused.
    async fn trigger_schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<Enqueued>;

    /// Creates jobs for nominal times of a past range that did not fire; answers how many. All or nothing. Times that the schedule
    /// itself will still deal with are left to it.
    async fn backfill_schedule(&self, within: Within<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize>;

    // ---- housekeeping, in bounded steps, in the name of whoever leads ----

    /// Makes up to `limit` scheduled and retrying jobs whose time has come pending.
    async fn promote(&self, fence: Fence, limit: usize) -> Result<Swept>;

    /// Moves on up to `limit` jobs that wait for jobs which have finished. `finish` and `cancel` do this for what they
    /// touched; this finds what a crash left.
    async fn unblock(&self, fence: Fence, limit: usize) -> Result<Swept>;

    /// Cancels up to `limit` jobs that did not start in time.
    async fn expire(&self, fence: Fence, limit: usize) -> Result<Swept>;

    /// Takes back up to `limit` leases that ran out; `crash_loop` losses in a row kill a job.
    async fn reap(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<Swept>;

    /// Ends up to `limit` attempts that ran over their job's timeout.
    async fn time_out(&self, fence: Fence, limit: usize) -> Result<Swept>;

    /// Forgets up to `limit` workers that have been silent for `silence`, and for as long as they may be by their own word.
    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize>;

    /// Forgets finished jobs and logs past their retention, up to about `limit` rows (whole partitions count as one
    /// row where the backend has them).
    async fn prune(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned>;

    /// Forgets up to `limit` nodes that have been silent for `silence`.
    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize>;

    /// Fires up to `limit` schedules that are due, each with its jobs, its lines of the ledger and its next time in one
    /// transaction; and computes next times anew that an older time-zone database gave. One that cannot be fired is put off, and keeps
    /// no other waiting.
    async fn fire(&self, fence: Fence, limit: usize) -> Result<Swept>;

    /// Takes a step of an operation, if it runs and stands where the step begins; answers how it stands now. What is done to jobs and what is
    /// counted of it last together or not at all. Where somebody else has locked a job, the step may end before that one.
    async fn advance_operation(&self, fence: Fence, id: OperationId, step: Advance) -> Result<Operation>;

    /// Folds up to `limit` changes of depth that were appended; answers how many. Stores that count in place have none.
    /// Safe for anybody at any time.
    async fn fold_depths(&self, limit: usize) -> Result<usize>;

    /// How long until each of these sweeps has something to do.
    async fn agenda(&self) -> Result<Agenda>;

    // ---- coordinators ----

    /// Shows that a node lives; makes it known the first time.
    async fn heartbeat_node(&self, node: &NodeInfo) -> Result<()>;

    /// Forgets a node that stops.
    async fn remove_node(&self, name: &NodeName) -> Result<bool>;

    /// Stands for leadership, for a term from now by the store's clock. A term that still runs is renewed for whoever
    /// holds it, which is the node that says its epoch in `held`; one that is over begins a new epoch for whoever asks first.
    async fn campaign(&self, node: &NodeName, term: Duration, held: Option<Epoch>) -> Result<Leadership>;

    /// Ends one's own term, so that another can lead at once; whether it was one's own.
    async fn resign(&self, node: &NodeName, epoch: Epoch) -> Result<bool>;

    // ---- readers ----

    /// The store's own time, by which leases end and jobs fall due.
    async fn now(&self) -> Result<Timestamp>;

    /// Who leads: the node whose term runs; `None` if nobody's does.
    async fn leader(&self) -> Result<Option<NodeName>>;

    /// Nodes by name.
    async fn nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>>;

    /// Several jobs, without payload, result and history, in any order; those that are not known are left out.
    async fn summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>>;

    /// One of them.
    async fn summary(&self, id: JobId) -> Result<Option<JobSummary>> {
        Ok(self.summaries(&[id]).await?.pop())
    }

    /// Where several jobs stand, in any order; those that are not known are left out.
    async fn states(&self, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
        Ok(self.summaries(ids).await?.into_iter().map(|job| (job.id, job.state)).collect())
    }

    /// What happened lately, for whoever follows all jobs or those of a queue: jobs that are leased, a page at a time, and those that were
    /// recorded or ended since then, as they stand at one moment, in any order, each at least once. At most so many of each kind; whether
    /// there were more is told. The cost grows with what is shown, not with the backlog or with what is kept.
    ///
    /// A leased job that ends in a transaction which took longer than the look reaches back is shown as leased until its commit, and then no
    /// longer shown: whoever follows looks it up by its id. Only a cancel ends a job that is not leased, and for it one may reach back further.
    /// A job counts as recorded at the time in its id, which is its maker's.
    async fn recent(&self, lately: &Lately) -> Result<Recent>;

    /// All that is known of one job.
    async fn get(&self, id: JobId) -> Result<Option<Job>>;

    /// Jobs that match, newest first. A page may hold fewer than asked, even none, and still have a next one: the
    /// rows looked at for one page are bounded too.
    async fn list(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>>;

    /// Lines of a job's log, oldest first.
    async fn logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>>;

    /// Lines of several jobs' logs, each from behind a place of its own, oldest first, at most so many for each place; none of a job that is
    /// not there.
    async fn tails(&self, places: &[(JobId, i64)], limit: usize) -> Result<Vec<((JobId, i64), LogEntry)>> {
        let mut lines = Vec::new();
        for place @ (id, after) in places {
            match self.logs(*id, &PageRequest::after(*after, limit)).await {
                Ok(page) => lines.extend(page.items.into_iter().map(|line| (*place, line))),
                Err(StoreError::JobNotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(lines)
    }

    /// How many jobs each queue holds by state, and how long its oldest claimable job has waited: queues that hold any or are paused,
    /// by name. A page may hold fewer than asked and still have a next one. The cost grows with the page, not with the backlog nor with
    /// the number of queues.
    async fn depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>>;

    /// The same of one queue; `None` if it holds nothing and is not paused.
    async fn depth(&self, queue: &Queue) -> Result<Option<QueueDepth>>;

    /// Which types of jobs can be claimed (are pending) in which queues, paused ones too: at most `limit` lanes, by queue and
    /// then type. The cost grows with the lanes, not with the backlog.
    async fn lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>>;

    /// Workers by name.
    async fn workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>>;

    /// One schedule.
    async fn schedule(&self, within: Within<'_>, name: &ScheduleName) -> Result<Option<Schedule>>;

    /// Schedules by name. One that this program cannot read is left out, with a warning.
    async fn schedules(
        &self,
        within: Within<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>>;

    /// Lines of a schedule's ledger, newest nominal time first.
    async fn occurrences(
        &self,
        within: Within<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>>;

    /// One operation.
    async fn operation(&self, id: OperationId) -> Result<Option<Operation>>;

    /// Operations, newest first. One that this program cannot read is left out, with a warning.
    async fn operations(
        &self,
        within: Within<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>>;

    /// Up to `limit` operations that run, the one first whose last turn is the longest ago. One that this program cannot read is left
    /// out, with a warning.
    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>>;

    /// One key, with what is needed to check who shows it.
    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>>;

    /// Keys by id.
    async fn keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>>;

    /// Entries of the audit that match, newest first. A page may hold fewer than asked, even none, and still have a next one: the
    /// rows looked at for one page are bounded too.
    async fn audit(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>>;

    /// Hints that jobs became claimable, from this process and where possible from others.
    fn subscribe(&self) -> Wakeups;

    /// Hints that a job began to wait for a time, for whoever keeps the [`agenda`](Store::agenda).
    fn timers(&self) -> Wakeups;

    /// The same jobs through up to `connections` connections of their own, for a thread with its own tokio runtime: what is
    /// asked of it goes on while the runtime that this store was opened on is blocked. Called on the runtime that will use it.
    /// Wake-ups given through either reach the subscribers of both.
    fn apart(&self, connections: usize) -> Result<Arc<dyn Store>>;
}
