//! Reasons with their messages for people and codes for programs.

use orchestrix_core::{
    AttemptOutcome, Job, JobId, JobState, JobType, OnDependencyFailure, Queue, Tenant, Timestamp, WorkerName,
};
use serde::{Deserialize, Serialize};

use super::{
    code::ReasonCode,
    facts::{Facts, WorkerAvailability},
};
use crate::admin::job_state::JobStateView;
#[cfg(feature = "openapi")]
use crate::schema::TenantWeight;

/// The most jobs that one reason lists. The others are counted.
pub const MAX_JOBS: usize = 100;
/// The longest excerpt of an error, in characters.
const MAX_ERROR: usize = 200;

/// A reason why a job is not running, or how it finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Reason))]
pub struct ReasonView {
    /// The stable code. More codes may be added: `held`, `blocked`, `scheduled`, `retrying`,
    /// `queue_paused`, `no_worker`, `no_worker_for_queue`, `no_worker_for_type`, `workers_draining`, `no_free_slot`,
    /// `no_leader`, `waiting_turn`, `dispatched`, `running`, `cancel_requested`, `lease_expired`, `completed`,
    /// `attempts_exhausted`, `failed`, `crash_loop`, `cancelled`, `expired`, `dependency_failed`.
    pub code: String,
    /// A message for people.
    pub message: String,
    /// Until when the reason applies, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub until: Option<Timestamp>,
    /// Since when the reason applies, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub since: Option<Timestamp>,
    /// The queue that the reason is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub queue: Option<Queue>,
    /// The job type that the reason is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub job_type: Option<JobType>,
    /// The tenant whose turn the job waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub tenant: Option<Tenant>,
    /// The weight of that tenant: its share among the tenants of the same priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TenantWeight>))]
    pub weight: Option<u16>,
    /// The worker that the reason is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub worker_id: Option<WorkerName>,
    /// The jobs that the reason is about. At most 100 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobStateView>,
    /// The number of further jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<u32>,
}

impl ReasonView {
    fn new(code: ReasonCode, message: impl Into<String>) -> Self {
        Self {
            code: code.as_str().to_owned(),
            message: message.into(),
            until: None,
            since: None,
            queue: None,
            job_type: None,
            tenant: None,
            weight: None,
            worker_id: None,
            jobs: Vec::new(),
            more: None,
        }
    }

    fn with_jobs<'a>(mut self, jobs: impl Iterator<Item = &'a (JobId, JobState)>) -> Self {
        let mut jobs = jobs.map(|(id, state)| JobStateView::new(*id, *state));
        self.jobs = jobs.by_ref().take(MAX_JOBS).collect();
        self.more = u32::try_from(jobs.count()).ok().filter(|more| *more > 0);
        self
    }

    fn with_turn(self, job: &Job, facts: &Facts) -> Self {
        Self { tenant: Some(job.tenant.clone()), weight: Some(facts.weight.get()), ..self }
    }
}

pub(super) fn held(job: &Job, facts: &Facts) -> ReasonView {
    let failed = facts.failed().count();
    if failed > 0 && job.on_dependency_failure == OnDependencyFailure::Hold {
        let message = format!("it is held until it is released, because {} did not complete", count_jobs(failed));
        return ReasonView::new(ReasonCode::Held, message).with_jobs(facts.failed());
    }
    ReasonView::new(ReasonCode::Held, "it is held until it is released")
}

pub(super) fn blocked(facts: &Facts) -> ReasonView {
    let message = match facts.unfinished().count() {
        0 => "its dependencies have finished, and it waits for the leader to unblock it".to_owned(),
        open => format!("it waits for {} to finish", count_jobs(open)),
    };
    ReasonView::new(ReasonCode::Blocked, message).with_jobs(facts.unfinished())
}

pub(super) fn scheduled(job: &Job, now: Timestamp) -> ReasonView {
    let at = job.eligible_at;
    let snoozed = job.attempt_log.last().is_some_and(|attempt| attempt.outcome == AttemptOutcome::Snoozed);
    let message = match (at > now, job.state == JobState::Scheduled && snoozed) {
        (false, _) => format!("its start time {at} has passed, and it waits for the leader to promote it"),
        (true, true) => format!("its worker snoozed it until {at}"),
        (true, false) => format!("it cannot start before {at}"),
    };
    ReasonView { until: Some(at), ..ReasonView::new(ReasonCode::Scheduled, message) }
}

pub(super) fn retrying(job: &Job, now: Timestamp) -> ReasonView {
    let at = job.eligible_at;
    let when = if at > now { format!("waits until {at}") } else { format!("has been due since {at}") };
    let next = job.attempts.saturating_add(1);
    let last = last_failure(job).map(|last| format!(" because {last}")).unwrap_or_default();
    let message = format!("attempt {next} of {} {when}{last}", job.max_attempts);
    ReasonView { until: Some(at), ..ReasonView::new(ReasonCode::Retrying, message) }
}

pub(super) fn queue_paused(job: &Job) -> ReasonView {
    let message = format!("its queue {} is paused", job.queue);
    ReasonView { queue: Some(job.queue.clone()), ..ReasonView::new(ReasonCode::QueuePaused, message) }
}

/// Why no worker claims the job. `None` if a worker could.
pub(super) fn no_worker(job: &Job, facts: &Facts, availability: WorkerAvailability) -> Option<ReasonView> {
    let (queue, job_type) = (&job.queue, &job.job_type);
    let (code, message) = match availability {
        WorkerAvailability::NoWorker => (ReasonCode::NoWorker, "no worker is alive".to_owned()),
        WorkerAvailability::NoWorkerForQueue => {
            (ReasonCode::NoWorkerForQueue, format!("no live worker serves queue {queue}"))
        }
        WorkerAvailability::NoWorkerForType => {
            (ReasonCode::NoWorkerForType, format!("no live worker of queue {queue} handles {job_type}"))
        }
        WorkerAvailability::Draining => {
            (ReasonCode::WorkersDraining, format!("every live worker that serves {job_type} in {queue} is draining"))
        }
        WorkerAvailability::Busy => {
            let busy = format!("every worker that serves {job_type} in {queue} is busy");
            (ReasonCode::NoFreeSlot, format!("{busy}: {}", claim_order(job, facts)))
        }
        WorkerAvailability::Available => return None,
    };
    let about = ReasonView::new(code, message);
    let about = match availability {
        WorkerAvailability::NoWorker => return Some(about),
        WorkerAvailability::NoWorkerForQueue => return Some(ReasonView { queue: Some(queue.clone()), ..about }),
        WorkerAvailability::Busy => about.with_turn(job, facts),
        _ => about,
    };
    Some(ReasonView { queue: Some(queue.clone()), job_type: Some(job_type.clone()), ..about })
}

pub(super) fn no_leader() -> ReasonView {
    ReasonView::new(ReasonCode::NoLeader, "there is no leader, which the job needs to proceed")
}

pub(super) fn waiting_turn(job: &Job, facts: &Facts) -> ReasonView {
    let message = format!("it is claimable: {}", claim_order(job, facts));
    let reason = ReasonView::new(ReasonCode::WaitingTurn, message).with_turn(job, facts);
    ReasonView { since: Some(job.eligible_at), ..reason }
}

/// What goes before a claimable job. Its position is unknown: counting the jobs before it would cost a scan.
fn claim_order(job: &Job, facts: &Facts) -> String {
    let (priority, tenant, weight) = (job.priority.get(), &job.tenant, facts.weight.get());
    format!(
        "a free slot runs it after jobs over priority {priority}, jobs of its tenant {tenant} (weight {weight}) \
         that have waited longer, and the turns of other tenants"
    )
}

pub(super) fn leased(job: &Job) -> ReasonView {
    let worker = job.worker.as_ref().map_or_else(|| "a worker".to_owned(), |worker| format!("worker {worker}"));
    let since = job.started_at.unwrap_or(job.updated_at);
    let attempt = format!("attempt {} of {}", job.attempts.saturating_add(1), job.max_attempts);
    let (code, message) = match job.state {
        JobState::Dispatched => (ReasonCode::Dispatched, format!("{attempt} was dispatched to {worker} at {since}")),
        _ => (ReasonCode::Running, format!("{worker} has been running {attempt} since {since}")),
    };
    ReasonView { since: Some(since), worker_id: job.worker.clone(), ..ReasonView::new(code, message) }
}

pub(super) fn cancel_requested(job: &Job) -> ReasonView {
    let message = "a cancellation was requested, and its worker has not stopped yet";
    ReasonView { worker_id: job.worker.clone(), ..ReasonView::new(ReasonCode::CancelRequested, message) }
}

pub(super) fn lease_expired(job: &Job) -> ReasonView {
    let since = job.lease_expires_at;
    let at = since.map(|at| format!(" at {at}")).unwrap_or_default();
    let message =
        format!("its worker stopped sending heartbeats and its lease expired{at}: it waits for the leader to reap it");
    ReasonView { since, worker_id: job.worker.clone(), ..ReasonView::new(ReasonCode::LeaseExpired, message) }
}

pub(super) fn expired(job: &Job) -> ReasonView {
    let since = job.expires_at;
    let by = since.map(|at| format!(" by {at}")).unwrap_or_default();
    let message = format!("it did not start{by}: it waits for the leader to cancel it");
    ReasonView { since, ..ReasonView::new(ReasonCode::Expired, message) }
}

/// How a job finished.
pub(super) fn finished(job: &Job, facts: &Facts) -> ReasonView {
    let at = job.finished_at.unwrap_or(job.updated_at);
    let used = format!("{} of {} attempts", job.attempts, job.max_attempts);
    let last = last_failure(job).map(|last| format!(": {last}")).unwrap_or_default();
    let (code, message) = match (job.state, job.reason.as_deref()) {
        (JobState::Dead, Some("attempts_exhausted")) => {
            (ReasonCode::AttemptsExhausted, format!("it died at {at} after {used}{last}"))
        }
        (JobState::Dead, Some("crash_loop")) => {
            let lost = job.losses;
            (ReasonCode::CrashLoop, format!("it died at {at}: {lost} workers in a row were lost while running it"))
        }
        (JobState::Dead, _) => (ReasonCode::Failed, format!("it failed permanently at {at} after {used}{last}")),
        (JobState::Cancelled, Some("expired")) => {
            (ReasonCode::Expired, format!("it was cancelled at {at}: it did not start before its expiry time"))
        }
        (JobState::Cancelled, Some("dependency_failed")) => {
            (ReasonCode::DependencyFailed, format!("it was cancelled at {at}: a dependency did not complete"))
        }
        (JobState::Cancelled, _) => (ReasonCode::Cancelled, format!("it was cancelled at {at} on request")),
        _ => (ReasonCode::Completed, format!("it completed at {at}")),
    };
    let reason = ReasonView { since: Some(at), ..ReasonView::new(code, message) };
    if code == ReasonCode::DependencyFailed { reason.with_jobs(facts.failed()) } else { reason }
}

fn count_jobs(count: usize) -> String {
    if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") }
}

/// How the last counted attempt ended.
fn last_failure(job: &Job) -> Option<String> {
    let last = job.attempt_log.iter().rev().find(|attempt| attempt.outcome.costs_an_attempt())?;
    let how = match last.outcome {
        AttemptOutcome::TimedOut => "timed out",
        AttemptOutcome::Lost => "lost its worker",
        _ => "failed",
    };
    let error = last.error.as_deref().map(excerpt).filter(|error| !error.is_empty());
    Some(format!("attempt {} {how}{}", last.attempt, error.map(|error| format!(": {error}")).unwrap_or_default()))
}

/// The first non-empty line of an error, truncated.
fn excerpt(error: &str) -> String {
    let line = error.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let cut: String = line.chars().take(MAX_ERROR).collect();
    if cut.len() < line.len() { cut + "…" } else { cut }
}
