//! Job types that come with Orchestrix. `orchestrix worker` and `orchestrix dev` register all of them; an application
//! registers them on its own worker with [`register`].
//!
//! | module | job type |
//! |---|---|
//! | `noop` | `orchestrix.noop`: does nothing |
//! | `echo` | `orchestrix.echo`: returns its payload as its result |
//! | `sleep` | `orchestrix.sleep`: waits |
//! | `fail` | `orchestrix.fail`: fails as its payload says |
//! | `http` | `orchestrix.http`: sends an HTTP request |
//! | `command` | `orchestrix.command`: runs a program |
//!
//! ```
//! use orchestrix_builtin::BuiltinOptions;
//! use orchestrix_client::Client;
//! use orchestrix_memory::MemoryStore;
//! use orchestrix_worker::Worker;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(MemoryStore::new());
//! let options = BuiltinOptions { allowed_commands: ["date".into()].into(), ..BuiltinOptions::default() };
//! let worker = orchestrix_builtin::register(Worker::builder(&client), &options).start()?;
//! # let _ = worker.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Security
//!
//! A client that may enqueue a job decides what the worker does with the worker's own rights. Therefore
//! `orchestrix.http` reaches only public addresses and `orchestrix.command` runs no program, unless [`BuiltinOptions`]
//! allows more.
//!
//! A payload that does not fit the job type is a fatal error that names the field: a retry would not help.

mod command;
mod echo;
mod fail;
mod http;
mod noop;
mod payload;
mod sleep;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use orchestrix_worker::WorkerBuilder;

/// What the built-in job types may do. The default allows no program and no private address.
#[derive(Debug, Clone)]
pub struct BuiltinOptions {
    /// The programs that `orchestrix.command` may run, spelled exactly as in the payload.
    pub allowed_commands: BTreeSet<String>,
    /// How long a program may take to exit after SIGTERM before it is killed. Must be shorter than the time that the
    /// worker gives a cancelled handler. Default: 2 seconds.
    pub kill_after: Duration,
    /// Whether `orchestrix.http` may reach addresses that are not public, such as 127.0.0.1 or 10.0.0.0/8.
    pub allow_private_http: bool,
}

impl Default for BuiltinOptions {
    fn default() -> Self {
        Self { allowed_commands: BTreeSet::new(), kill_after: Duration::from_secs(2), allow_private_http: false }
    }
}

/// The error of an attempt whose handler stopped because its context was cancelled.
pub(crate) const INTERRUPTED: &str = "interrupted: the job was cancelled or timed out, or the worker is shutting down";

/// The job types that [`register`] adds to a worker.
pub const JOB_TYPES: [&str; 6] = [noop::TYPE, echo::TYPE, sleep::TYPE, fail::TYPE, http::TYPE, command::TYPE];

/// Adds a handler for each of the [`JOB_TYPES`] to a worker.
pub fn register(builder: WorkerBuilder, options: &BuiltinOptions) -> WorkerBuilder {
    let client = Arc::new(http::GuardedClient::new(options.allow_private_http));
    let allowlist = Arc::new(command::Allowlist::new(options));
    builder
        .raw_handler(noop::TYPE, noop::run)
        .raw_handler(echo::TYPE, echo::run)
        .raw_handler(sleep::TYPE, sleep::run)
        .raw_handler(fail::TYPE, fail::run)
        .raw_handler(http::TYPE, move |call| http::run(call, Arc::clone(&client)))
        .raw_handler(command::TYPE, move |call| command::run(call, Arc::clone(&allowlist)))
}
