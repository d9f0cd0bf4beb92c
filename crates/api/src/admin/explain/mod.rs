//! Explains why a job is not running, or how it finished: a pure function of facts that the caller gathers.
//!
//! | module | contents |
//! |---|---|
//! | [`facts`] | the facts that an explanation needs, and which jobs need them |
//! | [`code`] | the stable codes of the reasons |
//! | [`reason`] | the reasons with their messages |
//!
//! An explanation lists every obstacle, the decisive one first. The caller reads the facts one after the other, so each
//! was true at some moment during the request, not all at the same moment.

pub mod code;
pub mod facts;
pub mod reason;
#[cfg(test)]
mod tests;

use orchestrix_core::{Job, JobId, JobState, JobStatus};
use serde::{Deserialize, Serialize};

pub use code::ReasonCode;
pub use facts::{Facts, WorkerAvailability};
pub use reason::ReasonView;

/// Why a job is not running, or what it does instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// The state.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::JobState))]
    pub state: JobState,
    /// The status that clients see.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::JobStatus))]
    pub status: JobStatus,
    /// All reasons in one sentence.
    pub summary: String,
    /// The reasons, the decisive one first.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub reasons: Vec<ReasonView>,
}

/// Explains the state of a job.
pub fn explain(job: &Job, facts: &Facts) -> Explanation {
    let reasons = match job.state {
        JobState::Created | JobState::Blocked | JobState::Scheduled | JobState::Pending | JobState::Retrying => {
            why_waiting(job, facts)
        }
        JobState::Dispatched | JobState::Running => why_leased(job, facts),
        JobState::Completed | JobState::Dead | JobState::Cancelled => vec![reason::finished(job, facts)],
    };
    Explanation { job_id: job.id, state: job.state, status: job.state.status(), summary: sentence(&reasons), reasons }
}

fn why_waiting(job: &Job, facts: &Facts) -> Vec<ReasonView> {
    let mut reasons = Vec::new();
    let expired = facts::is_expired(job, facts.now);
    if expired {
        reasons.push(reason::expired(job));
    }
    if job.state == JobState::Created {
        reasons.push(reason::held(job, facts));
    }
    let unblocks_soon = job.state == JobState::Blocked && facts.unfinished().next().is_none();
    if unblocks_soon || facts.unfinished().next().is_some() {
        reasons.push(reason::blocked(facts));
    }
    let early = job.eligible_at > facts.now;
    match job.state {
        JobState::Retrying => reasons.push(reason::retrying(job, facts.now)),
        JobState::Scheduled => reasons.push(reason::scheduled(job, facts.now)),
        JobState::Created | JobState::Blocked if early => reasons.push(reason::scheduled(job, facts.now)),
        _ => {}
    }
    // Without a leader, a job that is due now cannot proceed at all: the missing leader is then the decisive reason.
    let timed = matches!(job.state, JobState::Scheduled | JobState::Retrying);
    if !facts.leader {
        if expired || unblocks_soon || (timed && !early) {
            reasons.insert(0, reason::no_leader());
        } else if timed {
            reasons.push(reason::no_leader());
        }
    }
    if facts.paused {
        reasons.push(reason::queue_paused(job));
    }
    match facts.availability {
        // Busy workers matter only to a job that is claimable now: slots become free at any time.
        Some(WorkerAvailability::Busy) if !reasons.is_empty() || job.state != JobState::Pending => {}
        Some(availability) => reasons.extend(reason::no_worker(job, facts, availability)),
        None => {}
    }
    if reasons.is_empty() {
        reasons.push(reason::waiting_turn(job, facts));
    }
    reasons
}

fn why_leased(job: &Job, facts: &Facts) -> Vec<ReasonView> {
    let mut reasons = Vec::new();
    let expired = facts::is_lease_expired(job, facts.now);
    if expired && !facts.leader {
        reasons.push(reason::no_leader());
    }
    if expired {
        reasons.push(reason::lease_expired(job));
    }
    if job.cancel_requested {
        reasons.push(reason::cancel_requested(job));
    }
    reasons.push(reason::leased(job));
    reasons
}

fn sentence(reasons: &[ReasonView]) -> String {
    let messages: Vec<&str> = reasons.iter().map(|reason| reason.message.as_str()).collect();
    let text = messages.join("; ");
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}
