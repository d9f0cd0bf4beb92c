//! The history of a job, derived from its row and its stored attempts.
//!
//! Nothing is written for this: enqueueing, claiming and finishing jobs are the hot path, and every extra write costs.
//! So a timeline omits changes whose time is not stored: a cancellation request, and, before attempts that have ended
//! since, the end of a backoff, a release or a redrive.

use orchestrix_core::{AttemptOutcome, AttemptRecord, Job, JobState, Timestamp, WorkerName};
use serde::{Deserialize, Serialize};

use super::attempt::AttemptView;

/// The kind of a timeline event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TimelineEventKind {
    /// The job was enqueued.
    Recorded,
    /// The job became claimable.
    Eligible,
    /// An attempt started.
    Started,
    /// An attempt ended, and possibly the job with it.
    Ended,
    /// An operator redrove the job.
    Redriven,
    /// The job was released, unblocked, promoted, held or dispatched: the latest such change.
    Changed,
    /// The job finished while no attempt was running.
    Finished,
}

impl TimelineEventKind {
    /// The kind as the API spells it.
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

/// An event in the history of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TimelineEvent {
    /// When the event happened.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// The kind of event.
    pub event: TimelineEventKind,
    /// The state of the job after the event. Absent if it is not stored, such as the first state of a job that has
    /// changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::JobState>))]
    pub state: Option<JobState>,
    /// The attempt that started or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u16>,
    /// The outcome of the attempt: `completed`, `failed`, `timed_out`, `lost`, `cancelled`, `released` or `snoozed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub outcome: Option<AttemptOutcome>,
    /// The worker that ran the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub worker_id: Option<WorkerName>,
    /// The reason why the job was cancelled or died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl TimelineEvent {
    const fn new(at: Timestamp, event: TimelineEventKind, state: Option<JobState>) -> Self {
        Self { at, event, state, attempt: None, outcome: None, worker_id: None, reason: None }
    }

    fn of_attempt(attempt: &AttemptView, at: Timestamp, event: TimelineEventKind, state: Option<JobState>) -> Self {
        let (number, worker_id) = (Some(attempt.attempt), attempt.worker_id.clone());
        Self { attempt: number, worker_id, ..Self::new(at, event, state) }
    }
}

/// Returns a job's attempts, oldest first: the stored ones, a successful first attempt, which is not stored, and the
/// running one.
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
        // A successful first attempt is described by the job's row alone.
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

/// Returns the number of attempts before the first stored one.
pub fn earlier_attempts(job: &Job) -> u32 {
    let first = job.attempt_log.first().filter(|_| job.attempt_log.len() >= AttemptRecord::KEPT);
    first.map_or(0, |first| u32::try_from(first.lease - 1).unwrap_or(0))
}

/// Returns the history of a job in chronological order.
pub fn timeline(job: &Job) -> Vec<TimelineEvent> {
    use TimelineEventKind::{Changed, Eligible, Ended, Finished, Recorded, Redriven, Started};
    let attempts = attempts(job);
    // If the latest attempt is running or finished the job, `eligible_at` belongs to that attempt.
    let last_attempt_is_current = attempts.last().is_some_and(|last| match job.state.is_terminal() {
        true => last.ended_at == job.finished_at,
        false => job.state == JobState::Running,
    });
    let mut events = vec![TimelineEvent::new(job.created_at, Recorded, first_state(job, last_attempt_is_current))];
    let last_state = |events: &[TimelineEvent]| events.last().and_then(|event| event.state);
    let is_terminal = |state: Option<JobState>| state.is_some_and(JobState::is_terminal);
    for (i, attempt) in attempts.iter().enumerate() {
        if last_attempt_is_current && i + 1 == attempts.len() {
            let waiting_since = events.last().map(|event| event.at);
            match is_terminal(last_state(&events)) {
                true => events.push(TimelineEvent::new(job.eligible_at, Redriven, Some(JobState::Pending))),
                false if Some(job.eligible_at) > waiting_since => {
                    events.push(TimelineEvent::new(job.eligible_at, Eligible, Some(JobState::Pending)));
                }
                false => {}
            }
        }
        events.push(TimelineEvent::of_attempt(attempt, attempt.started_at, Started, Some(JobState::Running)));
        if let Some(at) = attempt.ended_at {
            let outcome = attempt.outcome;
            events.push(TimelineEvent { outcome, ..TimelineEvent::of_attempt(attempt, at, Ended, attempt.led_to) });
        }
    }
    let was_finished = is_terminal(last_state(&events));
    match job.state {
        JobState::Running => {}
        state if state.is_terminal() => {
            if !last_attempt_is_current {
                if was_finished {
                    events.push(TimelineEvent::new(job.eligible_at, Redriven, Some(JobState::Pending)));
                }
                events.push(TimelineEvent::new(job.finished_at.unwrap_or(job.updated_at), Finished, Some(state)));
            }
            if let Some(end) = events.last_mut() {
                end.reason.clone_from(&job.reason);
            }
        }
        state => {
            let is_recorded =
                events.last().is_some_and(|event| event.state == Some(state) && event.at >= job.updated_at);
            if !is_recorded {
                let kind = if was_finished { Redriven } else { Changed };
                events.push(TimelineEvent::new(job.updated_at, kind, Some(state)));
            }
        }
    }
    events
}

// The state in which the job was enqueued, if it is certain: either the job has not changed since, or its only attempt
// started without waiting.
fn first_state(job: &Job, last_attempt_is_current: bool) -> Option<JobState> {
    let unchanged = job.leases == 0 && !job.state.is_terminal() && job.updated_at == job.created_at;
    let ran_at_once = job.leases == 1 && last_attempt_is_current && job.eligible_at <= job.created_at;
    match (unchanged, ran_at_once) {
        (true, _) => Some(job.state),
        (_, true) => Some(JobState::Pending),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
