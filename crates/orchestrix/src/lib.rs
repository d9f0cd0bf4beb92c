//! Orchestrix: work done later, surely, and visibly.
//!
//! A job is a struct and an async function. It is recorded in a database, leased to one worker at a time, tried again when it
//! fails or its worker dies, and kept where a person can see what became of it.
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
//! // A store on SQLite or PostgreSQL keeps jobs; this one is for tests.
//! let client = Client::new(MemoryStore::new());
//! let worker = Worker::builder(&client).job::<SendEmail>().start()?;
//!
//! let job = client.enqueue(SendEmail { to: "ada@example.com".into() }).await?;
//! assert_eq!(job.wait().await?, "sent to ada@example.com");
//!
//! let _ = worker.shutdown().await; // or `.run().await` above, until SIGTERM
//! # Ok(())
//! # }
//! ```
//!
//! | what you want to do | what you need |
//! |---|---|
//! | describe a kind of job | [`Job`] (derive it), [`Run`] or [`RunBlocking`] |
//! | record jobs and follow them | [`Client`], [`Request`], [`Batch`], [`JobHandle`] |
//! | create them again and again | [`Client::recurring`], [`cron`], [`every`] |
//! | record them in a transaction of your own | `EnqueueIn` (features `postgres`, `sqlx`) |
//! | work on them | [`Worker`], [`Context`], [`JobError`], [`ResultExt`] |
//! | finish one in a transaction of your own | `CompleteIn` (features `postgres`, `sqlx`) |
//! | wrap middleware around handlers | [`WorkerBuilder::layer`], [`Call`] |
//! | run the job types that come with Orchestrix | `builtin` (feature `builtin`) |
//! | test your jobs | [`testing`], [`assert_enqueued!`] |
//! | keep jobs in one file | `SqliteStore` (feature `sqlite`, on by default) |
//! | keep jobs in PostgreSQL | `PostgresStore` (feature `postgres`) |
//! | keep them nowhere | [`MemoryStore`] |
//! | keep time, take back what dead workers held | [`Coordinator`]; every [`Worker`] carries one |
//! | see what became of them | [`JobSummary`], [`JobRecord`], [`JobState`], [`AttemptRecord`] |
//! | work without types | [`NewJob`], [`Json`], [`Store`] |
//! | write a store or a source of your own | [`store`], [`JobSource`], and the conformance suite |
//!
//! The examples: `quickstart`, `email` (retries), `import` (progress and checkpoints), `graph` (dependencies), `orders`
//! (transactions), `service` (a worker inside an axum service). `cargo run --example quickstart` takes a second.

// The first page that people read must work as it stands.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub mod testing;
#[cfg(feature = "postgres")]
mod transaction;

pub use orchestrix_client::{
    Batch, Client, ClientError, Defaults, Job, JobHandle, Recorded, Recurring, Request, Ticket, When, cron, every,
};
pub use orchestrix_coordinator::{Coordinator, CoordinatorOptions, CoordinatorStatus, ServiceStatus};
pub use orchestrix_core as model;
pub use orchestrix_core::{Misfire, NewSchedule, Overlap};
pub use orchestrix_macros::Job;
pub use orchestrix_store as store;
pub use orchestrix_worker::{
    Answer, Call, Completion, Context, Drained, Handlers, JobError, JobResult, JobSource, ResultExt, Run, RunBlocking,
    Stack, StopReason, StoreSource, Worker, WorkerBuilder, WorkerError, WorkerHandle, WorkerStats,
};

#[cfg(feature = "builtin")]
pub use orchestrix_builtin as builtin;
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
