//! Bulk operations: one action on many jobs, executed by the leader in steps.
//!
//! An operation visits the jobs that match its filter, newest first. Its cursor is the last job visited. A step
//! applies only while the operation is running and its cursor has not moved since the step was prepared. Changes to
//! jobs and to the operation commit together. So no step is applied twice, by whatever leader, and none after an
//! abort. Operations take turns: the leader advances the one that has waited longest.

mod action;
mod unreadable;

use std::{fmt, str::FromStr};

use orchestrix_core::{FieldError, JobId, JobState, OperationId, Tenant, Timestamp};

pub use action::BulkAction;
pub use unreadable::Unreadable;

use crate::{JobFilter, PageRequest, StoreError, clock::cut};

/// The state of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationState {
    /// The leader executes it.
    Running,
    /// All jobs were visited.
    Done,
    /// An operator aborted it.
    Aborted,
    /// It could not continue.
    Failed,
}

impl OperationState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Aborted, Self::Failed];

    /// The name that APIs use.
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

/// A request for a bulk operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOperation {
    /// The action.
    pub action: BulkAction,
    /// The jobs that it applies to.
    pub filter: JobFilter,
    /// Whether to count matching jobs without changing them.
    pub dry_run: bool,
    /// The actor that requests it.
    pub actor: String,
    /// The tenant that the actor is bound to.
    pub tenant: Option<Tenant>,
}

impl NewOperation {
    /// The most running operations.
    pub const MAX_OPEN: usize = 100;
    /// The most running operations per tenant, so that no tenant keeps out all others. Actors bound to no tenant share
    /// one such quota.
    pub const MAX_OPEN_EACH: usize = 20;
    /// The greatest length of a stored filter, in bytes.
    pub const MAX_FILTER: usize = 8 * 1024;
    /// The greatest length of an actor, in bytes.
    pub const MAX_ACTOR: usize = 512;

    /// Validates the limits.
    pub fn validate(&self) -> Result<(), FieldError> {
        if !(1..=Self::MAX_ACTOR).contains(&self.actor.len()) || self.actor.contains(char::is_control) {
            let rule = format!("must have 1 to {} bytes and no control characters", Self::MAX_ACTOR);
            return Err(FieldError::new("actor", rule));
        }
        if self.filter.to_json().len() > Self::MAX_FILTER {
            return Err(FieldError::new("filter", format!("must have at most {} bytes", Self::MAX_FILTER)));
        }
        Ok(())
    }

    /// Fails if `all` operations, or `own` operations of the same tenant, are the most that may run.
    pub fn check_open(all: usize, own: usize) -> Result<(), StoreError> {
        if own >= Self::MAX_OPEN_EACH {
            return Err(StoreError::TooManyOperations(own));
        }
        if all >= Self::MAX_OPEN { Err(StoreError::TooManyOperations(all)) } else { Ok(()) }
    }

    /// Begins the operation. It excludes jobs enqueued after `now`, so that it comes to an end.
    pub fn begin(self, id: OperationId, now: Timestamp) -> Operation {
        // Includes jobs enqueued at `now`.
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

/// A bulk operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The id.
    pub id: OperationId,
    /// The action.
    pub action: BulkAction,
    /// The jobs that it applies to.
    pub filter: JobFilter,
    /// Whether it only counts.
    pub dry_run: bool,
    /// The state.
    pub state: OperationState,
    /// The last job visited; `None` before the first.
    pub cursor: Option<JobId>,
    /// The number of jobs that matched so far.
    pub matched: u64,
    /// The number of jobs that were changed.
    pub changed: u64,
    /// The number of jobs that matched but no longer allowed the action.
    pub refused: u64,
    /// When it began.
    pub created_at: Timestamp,
    /// When it was last advanced or aborted.
    pub updated_at: Timestamp,
    /// When it finished.
    pub finished_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
    /// The actor that requested it.
    pub actor: String,
    /// The tenant that the actor is bound to.
    pub tenant: Option<Tenant>,
}

impl Operation {
    /// Whether it is running and its cursor is at `from`, so that a step prepared there applies.
    pub fn is_at(&self, from: Option<JobId>) -> bool {
        self.state == OperationState::Running && self.cursor == from
    }

    /// Whether the action still applies to a job in this state. The job may have changed since it was listed.
    pub fn applies_to(&self, state: JobState) -> bool {
        self.action.applies_to(state) && (self.filter.states.is_empty() || self.filter.states.contains(&state))
    }
}

/// How an operation ends, other than by an abort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationEnd {
    /// All jobs were visited.
    Done,
    /// It cannot continue, for this reason.
    Failed(String),
}

impl OperationEnd {
    /// The state that it leads to.
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

/// One step of an operation. It applies only while the operation is running and its cursor is at `from_cursor`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationStep {
    /// The cursor before the step.
    pub from_cursor: Option<JobId>,
    /// The cursor after the step.
    pub cursor: Option<JobId>,
    /// The matching jobs, newest first. The action is applied to those that still allow it, unless the operation only
    /// counts.
    pub jobs: Vec<JobId>,
    /// Set in the last step.
    pub end: Option<OperationEnd>,
}

impl OperationStep {
    /// The greatest length of the reason of a failure, in bytes.
    pub const MAX_ERROR: usize = 4 * 1024;

    /// The most jobs per step.
    pub const MAX_JOBS: usize = PageRequest::<JobId>::MAX_LIMIT;

    /// Validates the number of jobs and the reason.
    pub fn validate(&self) -> Result<(), FieldError> {
        if self.jobs.len() > Self::MAX_JOBS {
            return Err(FieldError::new("jobs", format!("must be at most {}", Self::MAX_JOBS)));
        }
        let error = self.end.as_ref().and_then(OperationEnd::error);
        if error.is_some_and(|text| text.len() > Self::MAX_ERROR || text.contains('\0')) {
            let rule = format!("must have at most {} bytes and no NUL", Self::MAX_ERROR);
            return Err(FieldError::new("error", rule));
        }
        Ok(())
    }
}
