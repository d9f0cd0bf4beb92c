//! What a job has gone through, told from what is kept of it.
//!
//! Nothing is written down for this: recording, claiming and finishing jobs is where every write counts. So a timeline holds what the job's
//! row and its attempts tell and no more. What has no time of its own is left out: that its owner was asked to stop, and, before attempts that
//! have ended since, that a back-off was over, or that it was let go or redriven.

use orchestrix_core::{AttemptOutcome, AttemptRecord, Job, JobState, Timestamp, WorkerName};
use serde::{Deserialize, Serialize};

use super::attempt::AttemptView;
#[cfg(feature = "openapi")]
use super::standing::StateWord;

/// What happened to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TransitionEvent {
    /// It was recorded.
    Recorded,
    /// It could be claimed from then on.
    Eligible,
    /// An attempt began.
    Started,
    /// An attempt ended, and perhaps the job with it.
    Ended,
    /// An operator gave it another chance.
    Redriven,
    /// It was let go, unblocked, promoted, held or dispatched: the latest such change.
    Changed,
    /// It was over, and no attempt was under way.
    Finished,
}

impl TransitionEvent {
    /// The word as it is told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Eligible => "eligible",
            Self::Started => "started",
            Self::Ended => "ended",
            Self::Redriven => "redriven",
            Self::Changed => "changed",
            Self::Finished => "finished",
        }
    }
}

/// One thing that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Transition {
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// What.
    pub event: TransitionEvent,
    /// Where that left the job; absent where it is not kept, as that of its recording once other things have happened to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<StateWord>))]
    pub state: Option<JobState>,
    /// Which attempt began or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u16>,
    /// How the attempt ended: `completed`, `failed`, `timed_out`, `lost`, `cancelled`, `released` or `snoozed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub outcome: Option<AttemptOutcome>,
    /// Whose attempt it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub worker_id: Option<WorkerName>,
    /// Why it was cancelled or died, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Transition {
    const fn new(at: Timestamp, event: TransitionEvent, state: Option<JobState>) -> Self {
        Self { at, event, state, attempt: None, outcome: None, worker_id: None, reason: None }
    }

    fn of(attempt: &AttemptView, at: Timestamp, event: TransitionEvent, state: Option<JobState>) -> Self {
        let (number, worker_id) = (Some(attempt.attempt), attempt.worker_id.clone());
        Self { attempt: number, worker_id, ..Self::new(at, event, state) }
    }
}

/// A job's attempts, the oldest first: those that were written down, a first success, which is not, and the one under way.
pub fn attempts(job: &Job) -> Vec<AttemptView> {
    let mut attempts: Vec<AttemptView> = job.attempt_log.iter().cloned().map(AttemptView::from).collect();
    let Some(started_at) = job.started_at else { return attempts };
    let latest = |attempt| AttemptView {
        attempt,
        outcome: None,
        led_to: None,
        worker_id: job.worker.clone(),
        started_at,
        ended_at: None,
        error: None,
    };
    match job.state {
        JobState::Running => attempts.push(latest(job.attempts.saturating_add(1))),
        // The row says all there is to say of it.
        JobState::Completed if attempts.is_empty() => attempts.push(AttemptView {
            outcome: Some(AttemptOutcome::Completed),
            led_to: Some(JobState::Completed),
            ended_at: job.finished_at,
            ..latest(job.attempts)
        }),
        _ => {}
    }
    attempts
}

/// How many attempts came before the first that is kept.
pub fn earlier_attempts(job: &Job) -> u32 {
    let first = job.attempt_log.first().filter(|_| job.attempt_log.len() >= AttemptRecord::KEPT);
    first.map_or(0, |first| u32::try_from(first.lease - 1).unwrap_or(0))
}

/// What a job has gone through, in the order in which it happened.
pub fn transitions(job: &Job) -> Vec<Transition> {
    use TransitionEvent::{Changed, Eligible, Ended, Finished, Recorded, Redriven, Started};
    let attempts = attempts(job);
    // The latest attempt is what the job came to, or will; then its time of eligibility is that of this attempt.
    let decides = attempts.last().is_some_and(|last| match job.state.is_terminal() {
        true => last.ended_at == job.finished_at,
        false => job.state == JobState::Running,
    });
    let mut steps = vec![Transition::new(job.created_at, Recorded, first_state(job, decides))];
    let last_state = |steps: &[Transition]| steps.last().and_then(|step| step.state);
    let is_over = |state: Option<JobState>| state.is_some_and(JobState::is_terminal);
    for (i, attempt) in attempts.iter().enumerate() {
        if decides && i + 1 == attempts.len() {
            let began_to_wait = steps.last().map(|step| step.at);
            match is_over(last_state(&steps)) {
                true => steps.push(Transition::new(job.eligible_at, Redriven, Some(JobState::Pending))),
                false if Some(job.eligible_at) > began_to_wait => {
                    steps.push(Transition::new(job.eligible_at, Eligible, Some(JobState::Pending)));
                }
                false => {}
            }
        }
        steps.push(Transition::of(attempt, attempt.started_at, Started, Some(JobState::Running)));
        if let Some(at) = attempt.ended_at {
            let outcome = attempt.outcome;
            steps.push(Transition { outcome, ..Transition::of(attempt, at, Ended, attempt.led_to) });
        }
    }
    let over_before = is_over(last_state(&steps));
    match job.state {
        JobState::Running => {}
        state if state.is_terminal() => {
            if !decides {
                if over_before {
                    steps.push(Transition::new(job.eligible_at, Redriven, Some(JobState::Pending)));
                }
                steps.push(Transition::new(job.finished_at.unwrap_or(job.updated_at), Finished, Some(state)));
            }
            if let Some(end) = steps.last_mut() {
                end.reason.clone_from(&job.reason);
            }
        }
        state => {
            let told = steps.last().is_some_and(|step| step.state == Some(state) && step.at >= job.updated_at);
            if !told {
                let event = if over_before { Redriven } else { Changed };
                steps.push(Transition::new(job.updated_at, event, Some(state)));
            }
        }
    }
    steps
}

// Where its recording left it, if what happened since leaves no doubt: nothing, or a first attempt that it had to wait for nothing to begin.
fn first_state(job: &Job, decides: bool) -> Option<JobState> {
    let untouched = job.leases == 0 && !job.state.is_terminal() && job.updated_at == job.created_at;
    let at_once = job.leases == 1 && decides && job.eligible_at <= job.created_at;
    match (untouched, at_once) {
        (true, _) => Some(job.state),
        (_, true) => Some(JobState::Pending),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
