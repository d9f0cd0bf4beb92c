//! The states of a job and the one function that moves between them.
//!
//! Everything else follows [`JobState::next`]: the guarded writes of the stores, their CHECK constraints, the tests
//! and the diagram in the docs. The match is exhaustive on purpose: a new state or event does not compile until
//! every pair has been thought about.
//!
//! ```text
//!  created ──Release──▶ blocked ──Unblock──▶ scheduled ──Promote──▶ pending ──Claim──▶ running ──Complete──▶ completed
//!     ▲                    │                     ▲  (each may skip     ▲ │ ▲              │
//!     └───────Hold─────────┘                     │   what it need not  │ └─┼─Dispatch──▶ dispatched ──Start──▶ running
//!                                                │   wait for)         │   │              │
//!                                                └──Snooze── running   │   └──Requeue─────┤
//!                                                                 retrying ◀──BackOff─────┤──Die──▶ dead
//!                                                                                         └──ConfirmCancel──▶ cancelled
//!  any waiting state ──Cancel/Expire──▶ cancelled          dead, cancelled ──Redrive──▶ pending
//! ```

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::FieldError;

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Recorded, held back until released.
    Created,
    /// Waits for other jobs.
    Blocked,
    /// Waits for a time.
    Scheduled,
    /// May be claimed now.
    Pending,
    /// Leased, not yet started.
    Dispatched,
    /// Its owner works on it.
    Running,
    /// Waits out its back-off.
    Retrying,
    /// Done. Final.
    Completed,
    /// Failed for good, kept for a person.
    Dead,
    /// Given up on request, by expiry, or because a dependency failed.
    Cancelled,
}

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Its hold is let go.
    Release(Readiness),
    /// The last job it waited for has finished.
    Unblock(Readiness),
    /// A dependency failed and the job is to wait for a person.
    Hold,
    /// Its time has come.
    Promote,
    /// The leader leased it and sent it to a broker.
    Dispatch,
    /// A worker took it.
    Claim,
    /// The worker it was dispatched to began.
    Start,
    /// Its owner finished it.
    Complete,
    /// The attempt failed and the next one waits.
    BackOff,
    /// The lease ended without an outcome (lost or handed back): at once claimable again.
    Requeue,
    /// Its owner asked to be given it again later.
    Snooze,
    /// The attempt failed and there will be no other.
    Die,
    /// Somebody wants it cancelled. An owned job only gets a request.
    Cancel,
    /// The owner of a job with a cancel request let go of it.
    ConfirmCancel,
    /// It did not start in time.
    Expire,
    /// An operator gives a finished job another chance.
    Redrive,
}

/// What a job that is let go must still wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// Other jobs.
    Blocked,
    /// Its time.
    Early,
    /// Nothing.
    Ready,
}

impl Readiness {
    /// Other jobs come before the clock: a blocked job is looked at again when they are done.
    pub const fn of(blocked: bool, early: bool) -> Self {
        match (blocked, early) {
            (true, _) => Self::Blocked,
            (false, true) => Self::Early,
            (false, false) => Self::Ready,
        }
    }

    /// The state of a job that waits for just this.
    pub const fn state(self) -> JobState {
        match self {
            Self::Blocked => JobState::Blocked,
            Self::Early => JobState::Scheduled,
            Self::Ready => JobState::Pending,
        }
    }
}

/// An event that its state does not allow. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a job that is {from} does not take {event:?}")]
pub struct IllegalTransition {
    /// The state the job is in.
    pub from: JobState,
    /// The event that was refused.
    pub event: Event,
}

impl JobState {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 10] = [
        Self::Created,
        Self::Blocked,
        Self::Scheduled,
        Self::Pending,
        Self::Dispatched,
        Self::Running,
        Self::Retrying,
        Self::Completed,
        Self::Dead,
        Self::Cancelled,
    ];

    /// The state that `event` leads to.
    pub const fn next(self, event: Event) -> Result<Self, IllegalTransition> {
        use JobState::*;
        let next = match (self, event) {
            (Created, Event::Release(readiness)) => readiness.state(),
            (Blocked, Event::Unblock(readiness @ (Readiness::Early | Readiness::Ready))) => readiness.state(),
            (Blocked, Event::Hold) => Created,
            (Scheduled | Retrying, Event::Promote) => Pending,
            (Pending, Event::Dispatch) => Dispatched,
            (Pending, Event::Claim) => Running,
            (Dispatched, Event::Start) => Running,
            // A worker's "started" may be lost on the way; its outcome still counts.
            (Dispatched | Running, Event::Complete) => Completed,
            (Dispatched | Running, Event::BackOff) => Retrying,
            (Dispatched | Running, Event::Requeue) => Pending,
            (Dispatched | Running, Event::Snooze) => Scheduled,
            (Dispatched | Running, Event::Die) => Dead,
            (Dispatched | Running, Event::ConfirmCancel) => Cancelled,
            (Dispatched | Running, Event::Cancel) => self,
            (Created | Blocked | Scheduled | Pending | Retrying, Event::Cancel) => Cancelled,
            (Cancelled, Event::Cancel) => Cancelled,
            (Created | Blocked | Scheduled | Pending, Event::Expire) => Cancelled,
            (Dead | Cancelled, Event::Redrive) => Pending,
            (
                Created | Blocked | Scheduled | Pending | Dispatched | Running | Retrying | Completed | Dead
                | Cancelled,
                _,
            ) => {
                return Err(IllegalTransition { from: self, event });
            }
        };
        Ok(next)
    }

    /// Whether a worker owns the job.
    pub const fn is_leased(self) -> bool {
        matches!(self, Self::Dispatched | Self::Running)
    }

    /// Whether the job is over, unless an operator redrives it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Dead | Self::Cancelled)
    }

    /// The state as stores and the admin API spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Blocked => "blocked",
            Self::Scheduled => "scheduled",
            Self::Pending => "pending",
            Self::Dispatched => "dispatched",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Completed => "completed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// The word that clients see.
    pub const fn status(self) -> JobStatus {
        match self {
            Self::Created | Self::Blocked | Self::Scheduled | Self::Pending | Self::Dispatched | Self::Retrying => {
                JobStatus::Pending
            }
            Self::Running => JobStatus::Running,
            Self::Completed => JobStatus::Completed,
            Self::Dead => JobStatus::Failed,
            Self::Cancelled => JobStatus::Cancelled,
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for JobState {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            FieldError::new("state", format!("must be one of {}", Self::ALL.map(Self::as_str).join(", ")))
        })
    }
}

/// The five words a client sees of a job's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobStatus {
    /// Not begun, or waiting to begin again.
    Pending,
    /// Being worked on.
    Running,
    /// Done.
    Completed,
    /// Failed for good.
    Failed,
    /// Given up.
    Cancelled,
}

impl JobStatus {
    /// The status as APIs spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether nothing more happens by itself.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
