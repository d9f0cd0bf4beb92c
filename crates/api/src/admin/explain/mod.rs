//! Why a job is not running, or what it does instead: told from facts that somebody gathered, by a function that only computes.
//!
//! | module | what it owns |
//! |---|---|
//! | [`facts`] | what has to be known, and for which jobs |
//! | [`code`] | what can be said, in words for programs |
//! | [`reason`] | the same for people, with what it is about |
//!
//! Everything that stands in a job's way is told, what decides first. Facts are read one after the other, so what is told was true at
//! some moment of the question, and not all of it at the same one.

pub mod code;
pub mod facts;
pub mod reason;
#[cfg(test)]
mod tests;

use orchestrix_core::{Job, JobId, JobState, JobStatus};
use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use super::standing::StateWord;
pub use code::ReasonCode;
pub use facts::{Facts, Reach};
pub use reason::ReasonView;

/// Why a job is not running, or what it does instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// Where it stands.
    #[cfg_attr(feature = "openapi", schema(value_type = StateWord))]
    pub state: JobState,
    /// Where it stands, as clients see it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::job::Status))]
    pub status: JobStatus,
    /// All reasons in one sentence for people.
    pub summary: String,
    /// What stands in its way, or became of it: the one that decides first.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub reasons: Vec<ReasonView>,
}

/// Explains where a job stands.
pub fn explain(job: &Job, facts: &Facts) -> Explanation {
    let reasons = match job.state {
        JobState::Created | JobState::Blocked | JobState::Scheduled | JobState::Pending | JobState::Retrying => {
            waits(job, facts)
        }
        JobState::Dispatched | JobState::Running => is_owned(job, facts),
        JobState::Completed | JobState::Dead | JobState::Cancelled => vec![reason::over(job, facts)],
    };
    Explanation { job_id: job.id, state: job.state, status: job.state.status(), summary: sentence(&reasons), reasons }
}

fn waits(job: &Job, facts: &Facts) -> Vec<ReasonView> {
    let mut reasons = Vec::new();
    let expired = facts::is_expired(job, facts.now);
    if expired {
        reasons.push(reason::expires(job));
    }
    if job.state == JobState::Created {
        reasons.push(reason::held(job, facts));
    }
    let told_soon = job.state == JobState::Blocked && facts.unfinished().next().is_none();
    if told_soon || facts.unfinished().next().is_some() {
        reasons.push(reason::blocked(facts));
    }
    let early = job.eligible_at > facts.now;
    match job.state {
        JobState::Retrying => reasons.push(reason::retrying(job, facts.now)),
        JobState::Scheduled => reasons.push(reason::scheduled(job, facts.now)),
        JobState::Created | JobState::Blocked if early => reasons.push(reason::scheduled(job, facts.now)),
        _ => {}
    }
    // A leader has to act: at once, in which case nothing else matters so much, or when the time comes.
    let timed = matches!(job.state, JobState::Scheduled | JobState::Retrying);
    if !facts.leader {
        if expired || told_soon || (timed && !early) {
            reasons.insert(0, reason::no_leader());
        } else if timed {
            reasons.push(reason::no_leader());
        }
    }
    if facts.paused {
        reasons.push(reason::queue_paused(job));
    }
    match facts.reach {
        // Slots come and go: only whoever could take it now need know.
        Some(Reach::Busy) if !reasons.is_empty() || job.state != JobState::Pending => {}
        Some(reach) => reasons.extend(reason::nobody(job, reach)),
        None => {}
    }
    if reasons.is_empty() {
        reasons.push(reason::waiting_turn(job));
    }
    reasons
}

fn is_owned(job: &Job, facts: &Facts) -> Vec<ReasonView> {
    let mut reasons = Vec::new();
    let lost = facts::is_lost(job, facts.now);
    if lost && !facts.leader {
        reasons.push(reason::no_leader());
    }
    if lost {
        reasons.push(reason::lease_expired(job));
    }
    if job.cancel_requested {
        reasons.push(reason::cancel_requested(job));
    }
    reasons.push(reason::owned(job));
    reasons
}

fn sentence(reasons: &[ReasonView]) -> String {
    let messages: Vec<&str> = reasons.iter().map(|reason| reason.message.as_str()).collect();
    let text = messages.join("; ");
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}
