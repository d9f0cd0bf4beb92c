//! The [`Store`] traits, which every backend implements.
//!
//! A store is the only source of truth about jobs.
//! It decides with `orchestrix-core` and makes every decision durable before it answers.
//! Clients, workers and servers know these traits and never a backend.
//! A backend proves itself by the suite in `orchestrix-conformance`, which is the specification in the form of tests.
//!
//! What every backend guarantees:
//!
//! - No `Ok` before the commit.
//! - Every write to a leased job carries its [`LeaseToken`](orchestrix_core::LeaseToken), checked on the job's own row
//!   in the statement that writes.
//! - Time is the store's: eligibility, leases and schedules follow its clock, never the caller's.
//! - Every scan, batch and page has a limit. A caller that wants more calls again.
//! - A wake-up is a hint. Losing all of them costs time, never a job.

pub mod audit;
pub mod changes;
pub mod claim;
pub mod clock;
pub mod coordination;
pub mod effects;
pub mod error;
pub mod finish;
pub mod housekeeping;
pub mod inspect;
pub mod job_options;
pub mod key;
pub mod log;
pub mod metrics;
pub mod operation;
pub mod schedule;
pub mod snapshot;
pub mod tenant;
pub mod tenant_scope;
mod traits;
pub mod transition;
pub mod wakeup;
pub mod worker;

pub use audit::{AuditEntry, AuditFilter, NewAuditEntry};
pub use changes::{ChangesPage, ChangesQuery, JobChange, LeaseCursor};
pub use claim::{ClaimRequest, ClaimedJob, LeaseStatus, Queues};
pub use clock::{Clock, ManualClock, SystemClock};
pub use coordination::{Epoch, Fence, Leadership, NodeInfo, NodeStatus, SweepTimes};
pub use effects::CommitEffects;
pub use error::{Result, StoreError};
pub use finish::{FinishError, Outcome, OutcomeReport, ProgressUpdate};
pub use housekeeping::{Pruned, Retention, SweepResult};
pub use inspect::{JobFilter, JobSummary, Page, PageRequest, QueueDepth};
pub use job_options::JobOptions;
pub use key::{ApiKey, KeyDigest, KeyRecord, NewKey};
pub use log::{LogEntry, LogLevel, LogLine};
pub use operation::{BulkAction, NewOperation, Operation, OperationEnd, OperationState, OperationStep};
pub use orchestrix_core::Enqueued;
pub use schedule::{Backfill, Firing, Occurrence, PutResult, Schedule};
pub use snapshot::StoreSnapshot;
pub use tenant::{TenantPatch, TenantSettings};
pub use tenant_scope::{TenantScope, in_scope};
pub use traits::{
    AdminStore, CoordinationStore, JobStore, LeaseStore, QueueStore, ScheduleStore, Store, TenantStore, WorkerStore,
};
pub use transition::{EndedAttempt, Transition};
pub use wakeup::{PollInterval, Wakeup, Wakeups};
pub use worker::{Directive, Presence, WorkerInfo, WorkerStatus};

/// The [`Store`] traits, for code that calls them on a concrete backend: `use orchestrix_store::prelude::*;`.
pub mod prelude {
    pub use crate::{
        AdminStore, CoordinationStore, JobStore, LeaseStore, QueueStore, ScheduleStore, Store, TenantStore, WorkerStore,
    };
}
