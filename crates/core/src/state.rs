//! The states of a job and the one function that moves between them.
//!
//! [`JobState::next`] is the only source of truth: the guarded writes of the stores, their CHECK constraints, the
//! tests and the diagram in the docs all follow it. Its match is exhaustive, so a new state or event does not compile
//! until every pair has been decided.
//!
//! # A job's life
//!
//! ```text
//!  created ──Release──▶ blocked ──Unblock──▶ scheduled ──Promote──▶ pending ──Claim──▶ running ──Complete──▶ completed
//!     ▲                    │                     ▲                    ▲ │ ▲              │
//!     └───────Hold─────────┘                     │                    │ │ └───Requeue────┤
//!                                                └──────Snooze────────┼─┼────────────────┤
//!                                                                     │ │                ├──Die──────────▶ dead
//!                                     retrying ──Promote──────────────┘ │                ├──ConfirmCancel▶ cancelled
//!                                        ▲                              │                │
//!                                        └──────────BackOff─────────────┼────────────────┘
//!                                                                       └──Dispatch──▶ dispatched ──Start──▶ running
//!
//!  created, blocked, scheduled, pending, retrying ──Cancel──▶ cancelled
//!  created, blocked, scheduled, pending           ──Expire──▶ cancelled
//!  dead, cancelled                                ──Redrive─▶ pending
//! ```
//!
//! - **Waiting**: a new job starts in the first state that applies: `created` if it is held, `blocked` while parents
//!   are unfinished, `scheduled` before its time, otherwise `pending`. `Release` and `Unblock` skip states the same
//!   way; [`Readiness`] says which.
//! - **Leased**: `running` (and `dispatched`, for jobs handed to a broker) jobs are owned by the worker that holds the
//!   lease token. A `dispatched` job takes every outcome that a `running` one takes, since its start message may be
//!   lost.
//! - **Cancel**: a waiting job is cancelled at once. A leased job only gets a request, and keeps its state until its
//!   owner ends the attempt.
//! - **Finished**: `completed` is final. `dead` and `cancelled` jobs can be redriven.
//!
//! Which event the end of an attempt becomes depends on the attempt budget: see [`lifecycle`](crate::lifecycle).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::FieldError;

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Held until an operator or client releases it.
    Created,
    /// Waits for its parents.
    Blocked,
    /// Waits for its time.
    Scheduled,
    /// Can be claimed now.
    Pending,
    /// Leased and handed to a broker, not yet started.
    Dispatched,
    /// Leased to a worker that runs it.
    Running,
    /// Waits for its back-off to end.
    Retrying,
    /// Succeeded. Final.
    Completed,
    /// Failed for good. Kept for an operator to inspect or redrive.
    Dead,
    /// Cancelled on request, by expiry, or because a parent failed.
    Cancelled,
}

/// An event that changes the state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Its hold is released.
    Release(Readiness),
    /// Its last unfinished parent has finished.
    Unblock(Readiness),
    /// A parent failed and the job's policy is to hold it for an operator.
    Hold,
    /// Its time, or the end of its back-off, has come.
    Promote,
    /// The leader leased it and published it to a broker.
    Dispatch,
    /// A worker claimed it.
    Claim,
    /// The worker that it was dispatched to started it.
    Start,
    /// Its owner completed it.
    Complete,
    /// The attempt failed and will be retried after a back-off.
    BackOff,
    /// The lease was lost or released without an outcome: the job can be claimed again at once.
    Requeue,
    /// Its owner asked for it to run again later.
    Snooze,
    /// The attempt failed and will not be retried.
    Die,
    /// A client or operator cancels it. A leased job only gets a request.
    Cancel,
    /// The owner of a job with a cancel request ended its attempt.
    ConfirmCancel,
    /// It did not start before it expired.
    Expire,
    /// An operator retries a dead or cancelled job.
    Redrive,
}

/// What a released or unblocked job still waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// Its parents.
    Blocked,
    /// Its time.
    Early,
    /// Nothing.
    Ready,
}

impl Readiness {
    /// Parents come before time: a blocked job is decided again when its parents have finished.
    pub const fn of(blocked: bool, early: bool) -> Self {
        match (blocked, early) {
            (true, _) => Self::Blocked,
            (false, true) => Self::Early,
            (false, false) => Self::Ready,
        }
    }

    /// The state of a job that waits for this.
    pub const fn state(self) -> JobState {
        match self {
            Self::Blocked => JobState::Blocked,
            Self::Early => JobState::Scheduled,
            Self::Ready => JobState::Pending,
        }
    }
}

/// An event that the state of the job does not allow. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a {from} job does not allow {event:?}")]
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

    /// The state that `event` leads to, or an error if the state does not allow it.
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
            // A worker's start message may be lost; its outcome still counts.
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

    /// Whether the job has finished. Only a redrive leaves `dead` and `cancelled`; nothing leaves `completed`.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Dead | Self::Cancelled)
    }

    /// The name that stores and the admin API use.
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

    /// The status that clients see.
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

/// The state of a job as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobStatus {
    /// Not started, or waiting to start again.
    Pending,
    /// A worker runs it.
    Running,
    /// Succeeded.
    Completed,
    /// Failed for good.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl JobStatus {
    /// The name that APIs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether the job has finished.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
