//! Orchestrix: a durable job queue with workers, schedules and a coordinator, on SQLite or PostgreSQL.
//!
//! A job is a struct and an async function. The client enqueues it in a database, one worker at a time owns it through
//! a lease, and it is retried if it fails or its worker dies. Operators can see every attempt and its outcome.
//!
//! ```
//! use orchestrix::{Client, Context, Job, JobResult, MemoryStore, Run, Worker};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Job)]
//! #[job(queue = "mail", max_attempts = 5, timeout = "30s", output = String)]
//! struct SendEmail {
//!     to: String,
//! }
//!
//! impl Run for SendEmail {
//!     async fn run(self, ctx: Context) -> JobResult<String> {
//!         ctx.info(format_args!("attempt {}", ctx.attempt()));
//!         Ok(format!("sent to {}", self.to))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In memory, for tests. `SqliteStore` and `PostgresStore` are durable.
//! let client = Client::new(MemoryStore::new());
//! let worker = Worker::builder(&client).job::<SendEmail>().start()?;
//!
//! let job = client.enqueue(SendEmail { to: "ada@example.com".into() }).await?;
//! assert_eq!(job.wait().await?, "sent to ada@example.com");
//!
//! let _ = worker.shutdown().await; // `.run().await` instead of `.start()` runs until SIGTERM
//! # Ok(())
//! # }
//! ```
//!
//! # Where to find what
//!
//! | task | items |
//! |---|---|
//! | define a job type | [`Job`] (derive it), [`Run`] or [`RunBlocking`] |
//! | enqueue jobs and wait for results | [`Client`], [`Request`], [`Batch`], [`JobHandle`] |
//! | run jobs on a schedule | [`Client::recurring`], [`cron`], [`every`] |
//! | enqueue jobs in your own transaction | `EnqueueIn` (features `postgres`, `sqlx`) |
//! | run jobs | [`Worker`], [`Context`], [`JobError`], [`ResultExt`] |
//! | complete a job in your own transaction | `CompleteIn` (features `postgres`, `sqlx`) |
//! | add middleware to handlers | [`WorkerBuilder::layer`], [`JobCall`] |
//! | run the job types that come with Orchestrix | `builtin` (feature `builtin`) |
//! | test your jobs | [`testing`], [`assert_enqueued!`] |
//! | store jobs in a file | `SqliteStore` (feature `sqlite`, on by default) |
//! | store jobs in PostgreSQL | `PostgresStore` (feature `postgres`) |
//! | store jobs in memory | [`MemoryStore`] |
//! | promote, schedule and reap jobs | [`Coordinator`]; every [`Worker`] runs one |
//! | inspect jobs | [`JobSummary`], [`JobRecord`], [`JobState`], [`AttemptRecord`] |
//! | enqueue and read jobs without Rust types | [`NewJob`], [`Json`], [`Store`] |
//! | write your own store or job source | [`store`], [`JobSource`], and the conformance suite |
//!
//! # Examples
//!
//! `quickstart`, `email` (retries), `import` (progress and checkpoints), `graph` (dependencies), `orders`
//! (transactions) and `service` (a worker inside an axum service). `cargo run --example quickstart` takes a second.

// Compiles and runs the examples of the README.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub mod testing;
#[cfg(feature = "postgres")]
mod transaction;

#[cfg(feature = "builtin")]
pub use orchestrix_builtin as builtin;
pub use orchestrix_client::{
    Batch, BatchEntry, Client, ClientError, Defaults, EnqueuedBatch, Job, JobHandle, Recurring, Request,
    ScheduleTiming, cron, every,
};
pub use orchestrix_coordinator::{Coordinator, CoordinatorOptions, CoordinatorStatus, ServiceStatus};
pub use orchestrix_core as model;
pub use orchestrix_core::{Misfire, NewSchedule, Overlap};
pub use orchestrix_macros::Job;
pub use orchestrix_store as store;
pub use orchestrix_worker::{
    Completion, Context, Drained, HandlerRegistry, HandlerResult, HandlerService, JobCall, JobError, JobResult,
    JobSource, ResultExt, Run, RunBlocking, StopReason, StoreSource, Worker, WorkerBuilder, WorkerError, WorkerHandle,
    WorkerStats,
};

#[cfg(feature = "sqlx")]
pub use orchestrix_postgres::sqlx;
#[cfg(feature = "postgres")]
pub use orchestrix_postgres::{CallerTransaction, PostgresOptions, PostgresStore, tokio_postgres};
#[cfg(feature = "sqlite")]
pub use orchestrix_sqlite::{SqliteOptions, SqliteStore};
#[cfg(feature = "postgres")]
pub use transaction::{CompleteIn, EnqueueIn};

pub use orchestrix_core::{
    AttemptOutcome, AttemptRecord, DependsOn, FieldError, IdempotencyKey, Instance, Invalid, Job as JobRecord, JobId,
    JobState, JobStatus, JobType, Json, LeaseToken, LimitKey, NewJob, NodeName, OnDependencyFailure, Priority,
    Progress, Queue, Resources, RetryPolicy, ScheduleName, Start, Tag, Tenant, Timestamp, WorkerName,
};
pub use orchestrix_memory::MemoryStore;
pub use orchestrix_store::{
    AdminStore, ClaimRequest, ClaimedJob, Clock, CoordinationStore, Directive, Enqueued, Epoch, Fence, FinishError,
    JobFilter, JobStore, JobSummary, LeaseStatus, LeaseStore, LogEntry, LogLevel, LogLine, ManualClock, NodeInfo,
    NodeStatus, Outcome, OutcomeReport, Page, PageRequest, Presence, ProgressUpdate, QueueDepth, QueueStore, Queues,
    Result, ScheduleStore, Store, StoreError, SystemClock, Wakeup, Wakeups, WorkerInfo, WorkerStatus, WorkerStore,
};
pub use orchestrix_store::{Occurrence, PutResult, Schedule};
