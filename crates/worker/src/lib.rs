//! The runtime that works on jobs.
//!
//! A [`Worker`] leases jobs from a [`JobSource`], runs the handlers of the types it knows, keeps the leases while they run and
//! tells how they ended. Everything else here is about what may go wrong meanwhile: handlers that fail, panic, hang, block
//! their thread or are cancelled; a source that goes away; a process that is told to end.
//!
//! One way through: `fetch` → `floor` (slots) → `execute` → `complete`. Only `execute` is on the application's runtime; the rest is on
//! the thread of `keeper`.
//!
//! | module | what it owns |
//! |---|---|
//! | `builder` | putting a worker together |
//! | `worker` | a running worker and how it ends |
//! | `source` | where jobs come from |
//! | `http` | jobs from a server, over its HTTP API (feature `http`) |
//! | `fetch` | when to ask for jobs, and for how many |
//! | `floor` | the slots, and the jobs that wait for one |
//! | `execute` | one attempt, from a leased job to an outcome |
//! | `complete` | telling outcomes, many at a time, through any absence of the source |
//! | `keeper` | the thread that does all of this but the handlers' own work, and also shows the worker, and leads |
//! | `drain` | winding down |
//! | `lease` | the leases that are held |
//! | `context` | what a handler knows and can say |
//! | `notes`, `report` | lines and progress, gathered and written |
//! | `handler` | from a type to a function |
//! | `guard` | panics of a source are errors |
//! | `blocking` | threads for handlers that block |
//! | [`testing`] | for tests of an application's own jobs |
//! | `error` | how a handler fails, and what should happen then |
//!
//! What is deliberately absent: retries (the store decides them), knowledge of any backend, and the promise to run a handler
//! only once. A job is owned by one worker at a time, but a worker may die after its work and before its word.

mod blocking;
mod builder;
mod complete;
mod context;
mod drain;
mod error;
mod execute;
mod fetch;
mod floor;
mod guard;
mod handler;
#[cfg(feature = "http")]
mod http;
mod keeper;
mod lease;
mod line;
mod notes;
mod options;
mod report;
mod signal;
mod source;
mod state;
mod stats;
mod stop;
pub mod testing;
mod worker;

pub use builder::{WorkerBuilder, WorkerError};
pub use context::{Completion, Context};
pub use drain::Drained;
pub use error::{JobError, JobResult, ResultExt};
pub use execute::Stack;
pub use handler::{Answer, Call, Handlers, Run, RunBlocking};
#[cfg(feature = "http")]
pub use http::{HttpOptions, HttpSource};
pub use options::{TraceTie, fresh_name};
pub use source::{JobSource, StoreSource};
pub use stats::WorkerStats;
pub use stop::StopReason;
pub use worker::{Worker, WorkerHandle};
