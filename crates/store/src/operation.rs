//! One action on many jobs, worked off by the leader a step at a time.
//!
//! An operation goes through the jobs that match its filter from the newest to the oldest. How far it has come is in its cursor. A step is
//! taken only while the operation runs and nobody has moved the cursor since the step was prepared, and what it does to jobs and what it
//! counts are one transaction: none is done twice, by whichever leader, and nothing is done once somebody stopped it. Operations take
//! turns: the next step is one of the operation whose last was the longest ago.

mod action;
mod unreadable;

use std::{fmt, str::FromStr};

use orchestrix_core::{FieldError, JobId, JobState, OperationId, Tenant, Timestamp};

pub use action::BulkAction;
pub use unreadable::Unreadable;

use crate::{JobFilter, PageRequest, StoreError, clock::cut};

/// How an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationState {
    /// The leader works on it.
    Running,
    /// It has been through all jobs.
    Done,
    /// Somebody stopped it.
    Aborted,
    /// It could not go on.
    Failed,
}

impl OperationState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Aborted, Self::Failed];

    /// The state as APIs spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for OperationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for OperationState {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| FieldError::new("state", "must be running, done, aborted or failed"))
    }
}

/// What somebody wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOperation {
    /// What to do.
    pub action: BulkAction,
    /// To which jobs.
    pub filter: JobFilter,
    /// Whether to count only.
    pub dry_run: bool,
    /// Who wants it.
    pub actor: String,
    /// The tenant that they are bound to.
    pub tenant: Option<Tenant>,
}

impl NewOperation {
    /// The most operations that may be under way at once.
    pub const MAX_OPEN: usize = 100;
    /// The most of them that may be of one tenant, or of those who are bound to none: nobody keeps all others out.
    pub const MAX_OPEN_EACH: usize = 20;
    /// The longest filter, in bytes as it is kept.
    pub const MAX_FILTER: usize = 8 * 1024;
    /// The longest name of whoever wants it, in bytes.
    pub const MAX_ACTOR: usize = 512;

    /// Checks the limits.
    pub fn validate(&self) -> Result<(), FieldError> {
        if !(1..=Self::MAX_ACTOR).contains(&self.actor.len()) || self.actor.contains(char::is_control) {
            let rule = format!("must have 1 to {} bytes and no control characters", Self::MAX_ACTOR);
            return Err(FieldError::new("actor", rule));
        }
        if self.filter.written().len() > Self::MAX_FILTER {
            return Err(FieldError::new("filter", format!("must have at most {} bytes", Self::MAX_FILTER)));
        }
        Ok(())
    }

    /// Refuses one more where as many are under way as may be, in all or of the same tenant.
    pub fn check_open(all: usize, own: usize) -> Result<(), StoreError> {
        if own >= Self::MAX_OPEN_EACH {
            return Err(StoreError::TooManyOperations(own));
        }
        if all >= Self::MAX_OPEN { Err(StoreError::TooManyOperations(all)) } else { Ok(()) }
    }

    /// What it is once it has begun. Jobs recorded after `now` are none of its: it would never come to an end.
    pub fn begun(self, id: OperationId, now: Timestamp) -> Operation {
        // Up to and with this very moment.
        let end = Timestamp::from_microsecond(now.as_microsecond().saturating_add(1)).unwrap_or(Timestamp::MAX);
        let to = Some(self.filter.to.map_or(end, |to| to.min(end)));
        Operation {
            id,
            action: self.action,
            filter: JobFilter { to, ..self.filter },
            dry_run: self.dry_run,
            state: OperationState::Running,
            cursor: None,
            matched: 0,
            changed: 0,
            refused: 0,
            created_at: cut(now),
            updated_at: cut(now),
            finished_at: None,
            error: None,
            actor: self.actor,
            tenant: self.tenant,
        }
    }
}

/// One action on many jobs, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its identity.
    pub id: OperationId,
    /// What is done.
    pub action: BulkAction,
    /// To which jobs.
    pub filter: JobFilter,
    /// Whether it only counts.
    pub dry_run: bool,
    /// How it stands.
    pub state: OperationState,
    /// The job that it has come to; `None` before the first.
    pub cursor: Option<JobId>,
    /// How many jobs matched so far.
    pub matched: u64,
    /// How many of them were changed.
    pub changed: u64,
    /// How many could not take it any more.
    pub refused: u64,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it last had a turn, or was stopped.
    pub updated_at: Timestamp,
    /// When it was over.
    pub finished_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
    /// Who wanted it.
    pub actor: String,
    /// The tenant that they are bound to.
    pub tenant: Option<Tenant>,
}

impl Operation {
    /// Whether a step that was prepared where `from` is may be taken.
    pub fn stands_at(&self, from: Option<JobId>) -> bool {
        self.state == OperationState::Running && self.cursor == from
    }

    /// Whether a job that is in this state by now takes it: it may have moved since it was listed.
    pub fn takes(&self, state: JobState) -> bool {
        self.action.suits(state) && (self.filter.states.is_empty() || self.filter.states.contains(&state))
    }
}

/// How an operation ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationEnd {
    /// It has been through all jobs.
    Done,
    /// It cannot go on, and why.
    Failed(String),
}

impl OperationEnd {
    /// The state it leads to.
    pub const fn state(&self) -> OperationState {
        match self {
            Self::Done => OperationState::Done,
            Self::Failed(_) => OperationState::Failed,
        }
    }

    /// Why it failed.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Done => None,
            Self::Failed(error) => Some(error),
        }
    }
}

/// One step of an operation. It is taken only while the operation runs and its cursor is where the step begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationStep {
    /// Where the step begins.
    pub from_cursor: Option<JobId>,
    /// Where it ends.
    pub cursor: Option<JobId>,
    /// The jobs that match, newest first. The action is done to those that can take it, unless the operation only counts.
    pub jobs: Vec<JobId>,
    /// Whether it is the last step.
    pub end: Option<OperationEnd>,
}

impl OperationStep {
    /// The longest reason of a failure, in bytes.
    pub const MAX_ERROR: usize = 4 * 1024;

    /// The most jobs of one step.
    pub const MAX_JOBS: usize = PageRequest::<JobId>::MAX_LIMIT;

    /// Checks the reason, and how many jobs there are.
    pub fn validate(&self) -> Result<(), FieldError> {
        if self.jobs.len() > Self::MAX_JOBS {
            return Err(FieldError::new("jobs", format!("must be at most {}", Self::MAX_JOBS)));
        }
        let error = self.end.as_ref().and_then(OperationEnd::error);
        if error.is_some_and(|text| text.len() > Self::MAX_ERROR || text.contains('\0')) {
            let rule = format!("must have at most {} bytes, none of them zero", Self::MAX_ERROR);
            return Err(FieldError::new("error", rule));
        }
        Ok(())
    }
}
