//! The decisions of Orchestrix, free of effects.
//!
//! This crate knows what a job is, which states it may take, when a failure is retried and what a lease token
//! looks like. It does no IO, has no clock and draws no randomness of its own: `now` and random sources are
//! passed in, so every rule here can be tested by itself and every store decides alike.
//!
//! | module | what it owns |
//! |---|---|
//! | [`id`] | [`JobId`] and [`OperationId`], UUIDs v7 |
//! | [`name`] | validated names: queues, job types, tenants, tags, keys |
//! | [`json`] | JSON kept exactly as it was given |
//! | [`key`] | API keys: who holds one, what it allows |
//! | [`new_job`] | [`NewJob`], a request to run something, and its limits |
//! | [`job`] | [`Job`], a job as it stands |
//! | [`state`] | the states, the events, and the one transition function |
//! | [`lifecycle`] | state together with the attempt budget |
//! | [`attempt`] | how one attempt ended |
//! | [`retry`] | back-off between attempts |
//! | [`backoff`] | back-off between retries of one call |
//! | [`lease`] | the token that proves ownership |
//! | [`graph`] | dependencies among the jobs of one call |
//! | [`schedule`] | cron expressions, intervals, time zones, and what is fired when |
//! | [`error`] | what is wrong with a request, field by field |

pub mod attempt;
pub mod backoff;
pub mod error;
pub mod fingerprint;
pub mod graph;
pub mod id;
pub mod job;
pub mod json;
pub mod key;
pub mod lease;
pub mod lifecycle;
pub mod name;
pub mod new_job;
pub mod resources;
pub mod retry;
pub mod schedule;
pub mod state;

pub use attempt::{AttemptOutcome, AttemptRecord};
pub use backoff::Backoff;
pub use error::{FieldError, Invalid};
pub use fingerprint::Fingerprint;
pub use id::{JobId, JobIds, OperationId};
pub use job::{Job, Progress};
pub use json::Json;
pub use key::{KeyId, RateLimit, Role};
pub use lease::LeaseToken;
pub use lifecycle::{Failure, Lifecycle};
pub use name::{IdempotencyKey, Instance, JobType, LimitKey, NodeName, Queue, Tag, Tenant, WorkerName};
pub use new_job::{DependsOn, NewJob, OnDependencyFailure, Priority, Start};
pub use resources::Resources;
pub use retry::RetryPolicy;
pub use schedule::{Cadence, Cron, Misfire, NewSchedule, Overlap, ScheduleName, ZoneName, tzdb_version};
pub use state::{Event, IllegalTransition, JobState, JobStatus, Readiness};

/// An instant. Stores keep microseconds; finer digits are cut off when a job is recorded.
pub type Timestamp = jiff::Timestamp;
