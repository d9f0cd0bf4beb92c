//! Steps of a sequence, as plain data.
//!
//! A step refers to jobs and leases by how recently they appeared, never by id. So a sequence means the same on every
//! store, and it stays valid when steps are removed from it.

use std::{fmt, time::Duration};

use orchestrix_core::{JobState, OnDependencyFailure, Overlap};
use orchestrix_store::{Directive, LogLevel};

pub use crate::schedule_spec::{CadenceSpec, ScheduleSpec};

/// One call of a store, or one move of the clock.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Enqueues one job.
    Enqueue(JobSpec),
    /// Enqueues several jobs in one call.
    EnqueueMany(Vec<JobSpec>),
    /// Enqueues this many jobs over very many lanes, in one call.
    EnqueueWide(usize),
    /// Releases a held job.
    ReleaseHeld(JobRef),
    /// Cancels a job or asks its lease owner to stop.
    Cancel(JobRef),
    /// Claims jobs. `None` means any queue or any job type.
    Claim {
        /// The worker.
        worker: &'static str,
        /// The queues to claim from.
        queues: Option<Vec<&'static str>>,
        /// The job types to claim.
        types: Option<Vec<&'static str>>,
        /// The maximum number of jobs.
        limit: usize,
    },
    /// Extends leases.
    ExtendLeases(Vec<TokenRef>),
    /// Reports the outcomes of attempts.
    FinishAttempts(Vec<(TokenRef, OutcomeSpec)>),
    /// Records progress: percent and message.
    Progress(TokenRef, Option<f64>, Option<&'static str>),
    /// Records a checkpoint.
    Checkpoint(TokenRef, &'static str),
    /// Appends lines to a job's log, some with their own time.
    AppendLogs(TokenRef, Vec<(LogLevel, Option<TimeSpec>, &'static str)>),
    /// Registers a worker: name, queues, concurrency, instance, how long it may be silent.
    RegisterWorker(&'static str, Option<Vec<&'static str>>, u32, Option<&'static str>, Option<Duration>),
    /// Sends a worker's heartbeat: name, free slots, whether it drains.
    HeartbeatWorker(&'static str, Option<u32>, bool),
    /// Sets a worker's directive.
    DirectWorker(&'static str, Directive),
    /// Removes a worker.
    RemoveWorker(&'static str),
    /// Redrives a job.
    Retry(JobRef),
    /// Redrives all jobs that match, up to a limit.
    RetryMany(FilterSpec, usize),
    /// Changes the priority of a job.
    Reprioritize(JobRef, i64),
    /// Sets the weight of a tenant, or nothing.
    SetTenant(&'static str, Option<i64>),
    /// Pauses a queue.
    PauseQueue(&'static str),
    /// Resumes a queue.
    ResumeQueue(&'static str),
    /// Promotes due jobs.
    Promote(usize),
    /// Resolves dependents of finished jobs.
    Unblock(usize),
    /// Cancels expired jobs.
    Expire(usize),
    /// Reaps expired leases: limit, and how many losses in a row make a job dead.
    ReapLeases(usize, u16),
    /// Ends attempts past their timeout.
    TimeOutAttempts(usize),
    /// Forgets workers that were silent for this long.
    ForgetWorkers(Duration, usize),
    /// Advances the clock past every retention and prunes all history.
    Prune,
    /// Prunes with unlimited retention, which must delete nothing.
    PruneNothing(usize),
    /// Reads one job.
    Get(JobRef),
    /// Reads the summary of one job.
    Summary(JobRef),
    /// Lists matching jobs in pages of this size.
    List(FilterSpec, usize),
    /// Reads a job's log after a number, in pages of this size.
    Logs(JobRef, Option<i64>, usize),
    /// Reads the depths of all queues.
    Depths,
    /// Lists the paused queues.
    PausedQueues,
    /// Lists lanes with claimable jobs, up to a limit.
    Lanes(usize),
    /// Lists workers in pages of this size.
    Workers(usize),
    /// Campaigns for leadership: node, term, and whether it claims to hold the latest epoch.
    Campaign(&'static str, Duration, bool),
    /// Resigns leadership.
    Resign(&'static str),
    /// Promotes due jobs, fenced by the latest epoch plus an offset.
    PromoteFenced(i64, usize),
    /// Sends a node's heartbeat.
    HeartbeatNode(&'static str),
    /// Removes a node.
    RemoveNode(&'static str),
    /// Forgets nodes that were silent for this long.
    ForgetNodes(Duration, usize),
    /// Reads the leader and the nodes.
    Nodes,
    /// Reads when the next sweeps are due.
    SweepTimes,
    /// Creates or updates a schedule.
    PutSchedule(ScheduleSpec),
    /// Deletes a schedule.
    DeleteSchedule(&'static str),
    /// Pauses a schedule, with an optional note.
    PauseSchedule(&'static str, Option<&'static str>),
    /// Resumes a schedule.
    ResumeSchedule(&'static str),
    /// Triggers a schedule.
    TriggerSchedule(&'static str),
    /// Backfills a range of a schedule, with an optional overlap policy.
    BackfillSchedule(&'static str, TimeSpec, TimeSpec, Option<Overlap>),
    /// Fires due schedules.
    Fire(usize),
    /// Fires due schedules, fenced by the latest epoch plus an offset.
    FireFenced(i64, usize),
    /// Reads one schedule.
    Schedule(&'static str),
    /// Lists schedules in pages of this size.
    Schedules(usize),
    /// Lists a schedule's occurrences in pages of this size.
    Occurrences(&'static str, usize),
    /// Advances every clock.
    Advance(Duration),
}

/// A reference to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobRef {
    /// The n-th newest job, modulo the number of jobs.
    Recent(usize),
    /// A job that does not exist.
    Unknown(u8),
}

/// A reference to a lease token: the n-th newest, modulo their number, possibly forged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRef {
    /// How many leases ago it was granted.
    pub age: usize,
    /// The part that is forged.
    pub forged: Option<Forged>,
}

/// The forged part of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forged {
    /// A wrong secret.
    Secret,
    /// The counter of the next lease.
    Counter,
    /// The id of a job that does not exist.
    Job,
}

/// A time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSpec {
    /// This long after the start of the run.
    After(Duration),
    /// The earliest representable time.
    Min,
    /// The latest representable time.
    Max,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeSpec {
    /// Completed, with a result.
    Complete(Option<&'static str>),
    /// Failed: error, whether it is retryable, and the delay that the worker asks for.
    Fail(&'static str, bool, Option<Duration>),
    /// Snoozed for this long.
    Snooze(Duration),
    /// Released without an attempt being counted.
    Release,
    /// Stopped because a cancellation was requested.
    Cancelled,
    /// Stopped because of its timeout.
    TimedOut,
}

/// A job to enqueue.
#[derive(Clone, PartialEq)]
pub struct JobSpec {
    /// The job type.
    pub job_type: &'static str,
    /// The queue.
    pub queue: &'static str,
    /// The tenant.
    pub tenant: &'static str,
    /// The priority.
    pub priority: i64,
    /// The payload.
    pub payload: Payload,
    /// The idempotency key.
    pub key: Option<&'static str>,
    /// When it becomes eligible.
    pub start: StartSpec,
    /// The maximum number of attempts.
    pub max_attempts: u16,
    /// The timeout of an attempt.
    pub timeout: Option<Duration>,
    /// The lease duration.
    pub lease: Duration,
    /// The first and the longest delay between attempts.
    pub backoff: (Duration, Duration),
    /// Its reference name within the call.
    pub reference: Option<&'static str>,
    /// Existing jobs that it depends on.
    pub parents: Vec<JobRef>,
    /// Jobs of the same call that it depends on, by reference name.
    pub parents_in_call: Vec<&'static str>,
    /// What happens when a parent fails.
    pub on_failure: OnDependencyFailure,
    /// A tag.
    pub tag: Option<&'static str>,
    /// The correlation id.
    pub correlation: Option<&'static str>,
    /// When it expires.
    pub expires: Option<TimeSpec>,
    /// Whether it is held.
    pub hold: bool,
}

impl JobSpec {
    /// A job with every default.
    pub fn new(job_type: &'static str) -> Self {
        Self {
            job_type,
            queue: "a",
            tenant: "default",
            priority: 0,
            payload: Payload::Json("null"),
            key: None,
            start: StartSpec::Now,
            max_attempts: 2,
            timeout: None,
            lease: Duration::from_secs(5),
            backoff: (Duration::from_secs(1), Duration::from_secs(5)),
            reference: None,
            parents: Vec::new(),
            parents_in_call: Vec::new(),
            on_failure: OnDependencyFailure::Cancel,
            tag: None,
            correlation: None,
            expires: None,
            hold: false,
        }
    }
}

// Calls `$with` for every field that differs from its default.
macro_rules! non_default {
    ($job:expr, $with:expr; $($field:ident),+) => {{
        let default = JobSpec::new($job.job_type);
        $(if $job.$field != default.$field {
            $with(stringify!($field), &$job.$field, &|simpler: &mut JobSpec| simpler.$field = default.$field.clone());
        })+
    }};
    ($job:expr, $with:expr) => {
        non_default!($job, $with; queue, tenant, priority, payload, key, start, max_attempts, timeout, lease, backoff,
            reference, parents, parents_in_call, on_failure, tag, correlation, expires, hold)
    };
}

impl fmt::Debug for JobSpec {
    /// Shows the fields that differ from their defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("JobSpec");
        shown.field("job_type", &self.job_type);
        non_default!(self, |name, value: &dyn fmt::Debug, _: &dyn Fn(&mut Self)| {
            shown.field(name, value);
        });
        shown.finish()
    }
}

impl JobSpec {
    /// One variant per field that differs from its default, with that field reset.
    fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        non_default!(self, |_, _: &dyn fmt::Debug, reset: &dyn Fn(&mut Self)| {
            let mut simpler = self.clone();
            reset(&mut simpler);
            all.push(simpler);
        });
        all
    }
}

impl Step {
    /// Simpler variants of this step, for shrinking a failed sequence.
    pub fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Enqueue(job) => job.simpler().into_iter().map(Self::Enqueue).collect(),
            Self::EnqueueMany(jobs) => {
                let mut all: Vec<Self> = fewer(jobs).map(Self::EnqueueMany).collect();
                for (i, job) in jobs.iter().enumerate() {
                    for simpler in job.simpler() {
                        let mut jobs = jobs.clone();
                        jobs[i] = simpler;
                        all.push(Self::EnqueueMany(jobs));
                    }
                }
                all
            }
            Self::EnqueueWide(jobs) if *jobs > 1 => vec![Self::EnqueueWide(jobs / 2), Self::EnqueueWide(jobs - 1)],
            Self::FinishAttempts(items) => fewer(items).map(Self::FinishAttempts).collect(),
            Self::ExtendLeases(tokens) => fewer(tokens).map(Self::ExtendLeases).collect(),
            Self::AppendLogs(token, lines) => fewer(lines).map(|lines| Self::AppendLogs(*token, lines)).collect(),
            _ => Vec::new(),
        }
    }
}

/// One list per item, each without that item.
fn fewer<T: Clone>(items: &[T]) -> impl Iterator<Item = Vec<T>> {
    (0..items.len()).map(|removed| [&items[..removed], &items[removed + 1..]].concat())
}

/// A payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// This JSON.
    Json(&'static str),
    /// Long enough that stores may keep it outside the job's row.
    Long,
}

/// When a job becomes eligible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartSpec {
    /// Immediately.
    Now,
    /// This long after it is enqueued.
    After(Duration),
    /// At a time.
    At(TimeSpec),
}

/// A filter of jobs. Every part that is set must match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FilterSpec {
    /// In any of these states.
    pub states: Vec<JobState>,
    /// In this queue.
    pub queue: Option<&'static str>,
    /// Of this type.
    pub job_type: Option<&'static str>,
    /// Of this tenant.
    pub tenant: Option<&'static str>,
    /// With this tag.
    pub tag: Option<&'static str>,
    /// Containing this text.
    pub text: Option<&'static str>,
    /// Enqueued from this time on.
    pub from: Option<TimeSpec>,
    /// Enqueued before this time.
    pub to: Option<TimeSpec>,
}
