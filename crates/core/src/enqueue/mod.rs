//! Enqueue decisions: what a call may ask for, and what a store writes for it.
//!
//! A store only looks up and writes. Everything else is decided here, in this order:
//!
//! 1. [`check_job`] or [`check_jobs`] validates a call before any I/O and resolves its references to [`Parents`].
//! 2. The store looks up the idempotency keys of the call.
//! 3. [`Call::resolve_keys`] separates duplicates from new jobs and refuses a reused key.
//! 4. The store looks up [`KeyPlan::existing_parents`] and locks those that are unfinished.
//! 5. [`KeyPlan::resolve_parents`] refuses unknown parents and returns the [`EnqueuePlan`] that the store writes.
//!
//! Keys come before parents: a repeated request returns its first job even after the jobs that it depended on were
//! pruned. A call without keys and parents ([`is_plain`]) has nothing to resolve and is written as it is.

mod check;
mod graph;
mod plan;

pub use check::{CallShape, MAX_CALL_BYTES, check_job, check_jobs, is_plain};
pub use graph::Parents;
pub use plan::{
    Call, Dependency, EnqueuePlan, Enqueued, KeyPlan, KeyReused, KnownKey, KnownParent, Links, ParentState, PlannedJob,
    PlannedNewJob,
};
