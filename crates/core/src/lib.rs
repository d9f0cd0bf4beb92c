//! The decisions of Orchestrix, without effects.
//!
//! This crate defines what a job is, which states it can be in, when a failure is retried and what a lease token is.
//! It does no I/O and has no clock: callers pass in `now` and random sources.
//! So every rule can be tested alone, and every store and node decides the same way.
//!
//! | module | contents |
//! |---|---|
//! | [`id`] | [`JobId`] and [`OperationId`], UUIDs v7 |
//! | [`name`] | validated names: queues, job types, tenants, tags, keys |
//! | [`json`] | [`Json`], kept byte for byte |
//! | [`key`] | API keys: id, role, rate limit |
//! | [`new_job`] | [`NewJob`], a request to enqueue a job, and its limits |
//! | [`enqueue`] | how a call is enqueued: idempotency keys, parents, refusals |
//! | [`fingerprint`] | whether two requests with one idempotency key are the same |
//! | [`job`] | [`Job`], a stored job |
//! | [`state`] | the states, the events, and the one transition function |
//! | [`lifecycle`] | the state together with the attempt budget |
//! | [`attempt`] | how one attempt ended |
//! | [`retry`] | back-off between the attempts of a job |
//! | [`backoff`] | back-off between retries of one call |
//! | [`turn`] | fair shares: how tenants take turns |
//! | [`lease`] | the token that proves ownership of a job |
//! | [`resources`] | what a job needs of its worker |
//! | [`schedule`] | cron expressions, intervals, time zones, and which occurrences fire when |
//! | [`error`] | validation errors, field by field |

pub mod attempt;
pub mod backoff;
pub mod enqueue;
pub mod error;
pub mod fingerprint;
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
pub mod turn;

pub use attempt::{AttemptOutcome, AttemptRecord};
pub use backoff::Backoff;
pub use enqueue::Enqueued;
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
pub use turn::{Turn, Turns, Weight};

/// An instant. Stores keep microseconds and truncate finer digits.
pub type Timestamp = jiff::Timestamp;
