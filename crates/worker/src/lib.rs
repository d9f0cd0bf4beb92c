//! The worker runtime: claims jobs, runs their handlers and reports the outcomes.
//!
//! # How a job moves through a worker
//!
//! 1. **Fetch** (`fetch`). The fetcher claims jobs from a [`JobSource`] when slots are free. It claims after a wake-up,
//!    after the poll interval, or through a long poll if the source supports one. It prefetches a few jobs if the
//!    running ones are short.
//! 2. **Slots** (`slot_pool`). At most `concurrency` jobs run at the same time. Each busy slot is one task on the
//!    application's runtime. Prefetched jobs queue for a slot.
//! 3. **Handler** (`execute`). A slot runs the handler inside its middleware, with a timeout. It turns the handler's
//!    result, a panic, a cancellation or a shutdown into an outcome.
//! 4. **Outcome** (`outcome_reporter`). The reporter sends outcomes in batches. If the source is unavailable it keeps
//!    them and retries with the same lease tokens.
//!
//! **The control thread** (`control_thread`) does everything except step 3: it fetches, reports, extends leases, sends
//! worker heartbeats, runs the coordinator and drains the worker. It has its own Tokio runtime and its own connections,
//! so handlers that block every application thread cannot cost a lease or stall a shutdown.
//!
//! # Modules
//!
//! | module | what it owns |
//! |---|---|
//! | `builder` | configuring and starting a worker |
//! | `worker` | a running worker, its handle and its shared state |
//! | `source` | the [`JobSource`] trait, and the source that reads a store |
//! | `http` | the source that calls a server's HTTP API (feature `http`) |
//! | `fetch` | when to claim jobs, and how many |
//! | `slot_pool` | the slots, and the prefetched jobs that wait for one |
//! | `execute` | one attempt, from a claimed job to its outcome |
//! | `outcome_reporter` | reporting outcomes in batches, across outages of the source |
//! | `control_thread` | the thread that runs everything but handlers |
//! | `drain` | graceful shutdown |
//! | `lease` | the leases that the worker holds, and extending them |
//! | `context` | the handler's view of its job |
//! | `log_buffer`, `log_writer` | buffering and writing a job's log lines and progress |
//! | `handler` | the registry from job type to handler |
//! | `stop_signal` | requesting a handler to stop, with a reason |
//! | `shared_state` | values that all handlers share, looked up by type |
//! | `signal` | SIGTERM and SIGINT |
//! | `options`, `stats` | the worker's settings; its counters |
//! | `job_event` | log events about a job, outside its span |
//! | `catch_panic` | turning a panicking source into an error |
//! | `blocking_pool` | threads for handlers that block |
//! | [`testing`] | helpers for tests of an application's own jobs |
//! | `error` | how a handler fails, and what happens then |
//!
//! # What the runtime does not do
//!
//! It does not decide retries: the store does. It knows no backend. It does not guarantee that a handler runs only
//! once: one worker owns a job at a time, but a worker may die after the handler's work and before it reports the
//! outcome.

mod blocking_pool;
mod builder;
mod catch_panic;
mod context;
mod control_thread;
mod drain;
mod error;
mod execute;
mod fetch;
mod handler;
#[cfg(feature = "http")]
mod http;
mod job_event;
mod lease;
mod log_buffer;
mod log_writer;
mod options;
mod outcome_reporter;
mod shared_state;
mod signal;
mod slot_pool;
mod source;
mod stats;
mod stop_signal;
pub mod testing;
mod worker;

pub use builder::{WorkerBuilder, WorkerError};
pub use context::{Completion, Context};
pub use drain::Drained;
pub use error::{JobError, JobResult, ResultExt};
pub use execute::HandlerService;
pub use handler::{HandlerRegistry, HandlerResult, JobCall, Run, RunBlocking};
#[cfg(feature = "http")]
pub use http::{HttpOptions, HttpSource};
pub use options::{TracePropagator, default_worker_name};
pub use source::{JobSource, StoreSource};
pub use stats::WorkerStats;
pub use stop_signal::StopReason;
pub use worker::{Worker, WorkerHandle};
