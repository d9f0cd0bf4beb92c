//! Orchestrix: work done later, surely, and visibly.
//!
//! A job is recorded in a [`Store`], leased to one worker at a time, tried again when it fails, and kept where a
//! person can see what became of it. This crate is what a Rust program depends on; it owns nothing and hands out what
//! the crates beneath it own.
//!
//! | what you want to do | what you need |
//! |---|---|
//! | describe a job | [`NewJob`], its [`JobType`], [`Queue`], [`Priority`], [`Start`], [`RetryPolicy`] |
//! | hand over data and get results | [`Json`], which comes back exactly as it was given |
//! | make one job wait for another | [`DependsOn`], [`OnDependencyFailure`] |
//! | repeat a request safely | [`IdempotencyKey`] |
//! | record, cancel, claim, finish, look | [`Store`], the one trait behind it all |
//! | keep jobs in one file | [`SqliteStore`] (feature `sqlite`, on by default) |
//! | keep jobs in PostgreSQL | [`PostgresStore`] (feature `postgres`) |
//! | test your jobs | [`MemoryStore`], with [`ManualClock`] if time should stand still |
//! | take jobs and work on them | [`ClaimRequest`], [`Claimed`], [`Finish`], [`Verdict`], [`Wakeups`] |
//! | keep time, take back what dead workers held | [`Coordinator`], in every process that has the database |
//! | see what became of them | [`Job`], [`JobSummary`], [`JobState`], [`JobStatus`], [`AttemptRecord`] |
//! | write a store of your own | [`store`], and its conformance suite |
//!
//! ```
//! use orchestrix::{ClaimRequest, Finish, JobState, JobType, MemoryStore, NewJob, Store, Verdict, WorkerName};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new();
//! let job = store.enqueue(NewJob::new(JobType::new("send-email")?)).await?;
//!
//! let worker = WorkerName::new("worker-1")?;
//! for claimed in store.claim(&ClaimRequest::any(worker, 10)).await? {
//!     // … send the mail …
//!     store.finish(vec![Finish { token: claimed.token, verdict: Verdict::DONE }]).await?;
//! }
//!
//! let summary = store.summary(job.id).await?.expect("it was just recorded");
//! assert_eq!(summary.state, JobState::Completed);
//! # Ok(())
//! # }
//! ```
//!
//! `cargo run --example quickstart` shows delays, retries and dependencies in a few seconds.

pub use orchestrix_coordinator::{Coordinator, CoordinatorOptions, CoordinatorStatus, ServiceStatus};
pub use orchestrix_core as model;
pub use orchestrix_store as store;

#[cfg(feature = "postgres")]
pub use orchestrix_postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use orchestrix_sqlite::{SqliteOptions, SqliteStore};

pub use orchestrix_core::{
    AttemptOutcome, AttemptRecord, DependsOn, FieldError, IdempotencyKey, Invalid, Job, JobId, JobState, JobStatus,
    JobType, Json, LeaseToken, LimitKey, NewJob, NodeName, OnDependencyFailure, Priority, Progress, Queue, Resources,
    RetryPolicy, Start, Tag, Tenant, Timestamp, WorkerName,
};
pub use orchestrix_store::{
    ClaimRequest, Claimed, Clock, Directive, Enqueued, Epoch, Fence, Finish, FinishError, JobFilter, JobSummary,
    LeaseStatus, LogEntry, LogLevel, LogLine, ManualClock, MemoryStore, NodeInfo, NodeStatus, Page, PageRequest,
    ProgressUpdate, QueueDepth, Queues, Result, Store, StoreError, SystemClock, Verdict, Wakeup, Wakeups, WorkerInfo,
    WorkerStatus,
};
