//! What can be said of a job, in words for people and codes for programs.

use orchestrix_core::{
    AttemptOutcome, Job, JobId, JobState, JobType, OnDependencyFailure, Queue, Timestamp, WorkerName,
};
use serde::{Deserialize, Serialize};

use super::{
    code::ReasonCode,
    facts::{Facts, Reach},
};
use crate::admin::standing::Standing;

/// Jobs that one reason names; of the others it says how many there are.
pub const MAX_JOBS: usize = 100;
/// How much of an error is told, in characters.
const MAX_ERROR: usize = 200;

/// One thing that stands in a job's way, or became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Reason))]
pub struct ReasonView {
    /// What it is, in a word that never changes its meaning. More words may come: `held`, `blocked`, `scheduled`, `retrying`,
    /// `queue_paused`, `no_worker`, `no_worker_for_queue`, `no_worker_for_type`, `workers_draining`, `no_free_slot`, `no_leader`,
    /// `waiting_turn`, `dispatched`, `running`, `cancel_requested`, `lease_expired`, `completed`, `attempts_exhausted`, `failed`,
    /// `crash_loop`, `cancelled`, `expired`, `dependency_failed`.
    pub code: String,
    /// The same for people.
    pub message: String,
    /// Until when, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub until: Option<Timestamp>,
    /// Since when, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub since: Option<Timestamp>,
    /// The queue it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub queue: Option<Queue>,
    /// The type it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub job_type: Option<JobType>,
    /// The worker it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub worker_id: Option<WorkerName>,
    /// The jobs it is about; 100 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Standing>,
    /// How many more jobs there are.
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
            worker_id: None,
            jobs: Vec::new(),
            more: None,
        }
    }

    fn about<'a>(mut self, jobs: impl Iterator<Item = &'a (JobId, JobState)>) -> Self {
        let mut jobs = jobs.map(|(id, state)| Standing::of(*id, *state));
        self.jobs = jobs.by_ref().take(MAX_JOBS).collect();
        self.more = u32::try_from(jobs.count()).ok().filter(|more| *more > 0);
        self
    }
}

pub(super) fn held(job: &Job, facts: &Facts) -> ReasonView {
    let failed = facts.failed().count();
    if failed > 0 && job.on_dependency_failure == OnDependencyFailure::Hold {
        let message = format!("it is held until somebody releases it, because {} did not complete", jobs(failed));
        return ReasonView::new(ReasonCode::Held, message).about(facts.failed());
    }
    ReasonView::new(ReasonCode::Held, "it is held until somebody releases it")
}

pub(super) fn blocked(facts: &Facts) -> ReasonView {
    let message = match facts.unfinished().count() {
        0 => "the jobs that it waited for are over, and it is about to move on".to_owned(),
        open => format!("it waits for {} to finish", jobs(open)),
    };
    ReasonView::new(ReasonCode::Blocked, message).about(facts.unfinished())
}

pub(super) fn scheduled(job: &Job, now: Timestamp) -> ReasonView {
    let at = job.eligible_at;
    let snoozed = job.attempt_log.last().is_some_and(|attempt| attempt.outcome == AttemptOutcome::Snoozed);
    let message = match (at > now, job.state == JobState::Scheduled && snoozed) {
        (false, _) => format!("its time came at {at}, and it is about to become claimable"),
        (true, true) => format!("its worker put it off until {at}"),
        (true, false) => format!("it is not to start before {at}"),
    };
    ReasonView { until: Some(at), ..ReasonView::new(ReasonCode::Scheduled, message) }
}

pub(super) fn retrying(job: &Job, now: Timestamp) -> ReasonView {
    let at = job.eligible_at;
    let when = if at > now { format!("waits until {at}") } else { format!("has been due since {at}") };
    let next = job.attempts.saturating_add(1);
    let last = last_end(job).map(|last| format!(" because {last}")).unwrap_or_default();
    let message = format!("attempt {next} of {} {when}{last}", job.max_attempts);
    ReasonView { until: Some(at), ..ReasonView::new(ReasonCode::Retrying, message) }
}

pub(super) fn queue_paused(job: &Job) -> ReasonView {
    let message = format!("its queue {} is paused", job.queue);
    ReasonView { queue: Some(job.queue.clone()), ..ReasonView::new(ReasonCode::QueuePaused, message) }
}

/// Why nobody takes it, unless somebody could.
pub(super) fn nobody(job: &Job, reach: Reach) -> Option<ReasonView> {
    let (queue, kind) = (&job.queue, &job.job_type);
    let (code, message) = match reach {
        Reach::Nobody => (ReasonCode::NoWorker, "no worker is alive".to_owned()),
        Reach::OtherQueues => (ReasonCode::NoWorkerForQueue, format!("no live worker takes jobs from queue {queue}")),
        Reach::OtherTypes => (ReasonCode::NoWorkerForType, format!("no live worker of queue {queue} knows {kind}")),
        Reach::Draining => {
            (ReasonCode::WorkersDraining, format!("every live worker that takes {kind} from {queue} is draining"))
        }
        Reach::Busy => (ReasonCode::NoFreeSlot, format!("every worker that takes {kind} from {queue} is busy")),
        Reach::Free => return None,
    };
    let about = ReasonView::new(code, message);
    Some(match reach {
        Reach::Nobody => about,
        Reach::OtherQueues => ReasonView { queue: Some(queue.clone()), ..about },
        _ => ReasonView { queue: Some(queue.clone()), job_type: Some(kind.clone()), ..about },
    })
}

pub(super) fn no_leader() -> ReasonView {
    ReasonView::new(ReasonCode::NoLeader, "no node leads, and it takes a leader to move it on")
}

pub(super) fn waiting_turn(job: &Job) -> ReasonView {
    let message = format!(
        "nothing stands in its way: the next free slot takes it, after jobs over priority {} and those that wait longer",
        job.priority.get()
    );
    ReasonView { since: Some(job.eligible_at), ..ReasonView::new(ReasonCode::WaitingTurn, message) }
}

pub(super) fn owned(job: &Job) -> ReasonView {
    let who = job.worker.as_ref().map_or_else(|| "a worker".to_owned(), |worker| format!("worker {worker}"));
    let since = job.started_at.unwrap_or(job.updated_at);
    let attempt = format!("attempt {} of {}", job.attempts.saturating_add(1), job.max_attempts);
    let (code, message) = match job.state {
        JobState::Dispatched => (ReasonCode::Dispatched, format!("{attempt} was sent to {who} at {since}")),
        _ => (ReasonCode::Running, format!("{who} has been running {attempt} since {since}")),
    };
    ReasonView { since: Some(since), worker_id: job.worker.clone(), ..ReasonView::new(code, message) }
}

pub(super) fn cancel_requested(job: &Job) -> ReasonView {
    let message = "its worker was asked to stop and has not let go of it";
    ReasonView { worker_id: job.worker.clone(), ..ReasonView::new(ReasonCode::CancelRequested, message) }
}

pub(super) fn lease_expired(job: &Job) -> ReasonView {
    let since = job.lease_expires_at;
    let at = since.map(|at| format!(" at {at}")).unwrap_or_default();
    let message = format!("its worker fell silent and its lease ran out{at}: it is about to be taken back");
    ReasonView { since, worker_id: job.worker.clone(), ..ReasonView::new(ReasonCode::LeaseExpired, message) }
}

pub(super) fn expires(job: &Job) -> ReasonView {
    let since = job.expires_at;
    let by = since.map(|at| format!(" by {at}")).unwrap_or_default();
    let message = format!("it did not start{by} and is about to be cancelled");
    ReasonView { since, ..ReasonView::new(ReasonCode::Expired, message) }
}

/// What became of a job that is over.
pub(super) fn over(job: &Job, facts: &Facts) -> ReasonView {
    let at = job.finished_at.unwrap_or(job.updated_at);
    let used = format!("{} of {} attempts", job.attempts, job.max_attempts);
    let last = last_end(job).map(|last| format!(": {last}")).unwrap_or_default();
    let (code, message) = match (job.state, job.reason.as_deref()) {
        (JobState::Dead, Some("attempts_exhausted")) => {
            (ReasonCode::AttemptsExhausted, format!("it died at {at} after {used}{last}"))
        }
        (JobState::Dead, Some("crash_loop")) => {
            let lost = job.losses;
            (ReasonCode::CrashLoop, format!("it died at {at}: {lost} workers in a row were lost while they ran it"))
        }
        (JobState::Dead, _) => (ReasonCode::Failed, format!("it failed for good at {at} after {used}{last}")),
        (JobState::Cancelled, Some("expired")) => {
            (ReasonCode::Expired, format!("it was cancelled at {at}: it had not started in time"))
        }
        (JobState::Cancelled, Some("dependency_failed")) => (
            ReasonCode::DependencyFailed,
            format!("it was cancelled at {at}: a job that it depends on did not complete"),
        ),
        (JobState::Cancelled, _) => (ReasonCode::Cancelled, format!("it was cancelled at {at} on request")),
        _ => (ReasonCode::Completed, format!("it completed at {at}")),
    };
    let reason = ReasonView { since: Some(at), ..ReasonView::new(code, message) };
    if code == ReasonCode::DependencyFailed { reason.about(facts.failed()) } else { reason }
}

fn jobs(count: usize) -> String {
    if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") }
}

/// How the last attempt that cost anything ended, in short.
fn last_end(job: &Job) -> Option<String> {
    let last = job.attempt_log.iter().rev().find(|attempt| attempt.outcome.costs_an_attempt())?;
    let how = match last.outcome {
        AttemptOutcome::TimedOut => "ran out of time",
        AttemptOutcome::Lost => "lost its worker",
        _ => "failed",
    };
    let error = last.error.as_deref().map(short).filter(|error| !error.is_empty());
    Some(format!("attempt {} {how}{}", last.attempt, error.map(|error| format!(": {error}")).unwrap_or_default()))
}

/// The first line of an error that says something, cut.
fn short(error: &str) -> String {
    let line = error.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let cut: String = line.chars().take(MAX_ERROR).collect();
    if cut.len() < line.len() { cut + "…" } else { cut }
}
