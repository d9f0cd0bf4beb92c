//! Enqueueing jobs and waiting for their results.
//!
//! A job is a serde type that implements [`Job`], usually by `#[derive(Job)]`. A [`Client`] enqueues jobs one by one,
//! many at once or as a dependency graph, and returns a [`JobHandle`] for each. A [`Request`] sets the options of one
//! job, such as a delay or an idempotency key.
//!
//! | module | what it owns |
//! |---|---|
//! | `job` | the [`Job`] trait and the default options of a job type |
//! | `request` | the options of one job |
//! | `client` | enqueueing |
//! | `batch` | several jobs that may depend on each other, all or nothing |
//! | `handle` | one enqueued job: status, wait, result, cancel |
//! | `recurring` | schedules |
//! | `error` | the client's errors |
//! | `http` | an HTTP client of a server's API (feature `http`) |
//!
//! The client knows no backend: it works on the `Store` trait.

mod batch;
mod client;
mod error;
mod handle;
#[cfg(feature = "http")]
pub mod http;
mod job;
mod recurring;
mod request;

pub use batch::{Batch, BatchEntry, EnqueuedBatch};
pub use client::Client;
pub use error::{ClientError, Result};
pub use handle::JobHandle;
pub use job::{Defaults, Job};
pub use recurring::{Recurring, ScheduleTiming, cron, every};
pub use request::Request;
