//! The job types that every worker of this command knows.
//!
//! | module | job type |
//! |---|---|
//! | `noop` | `orchestrix.noop`: does nothing |
//! | `echo` | `orchestrix.echo`: its result is its payload |
//! | `sleep` | `orchestrix.sleep`: waits |
//! | `fail` | `orchestrix.fail`: fails as it is told |
//! | `http` | `orchestrix.http`: sends a request |
//! | `command` | `orchestrix.command`: runs a program |
//!
//! Whoever may record a job decides what a worker does with its own rights. So requests reach only public addresses, and no
//! program is run, unless whoever starts the worker says otherwise. A payload that does not fit is fatal and named: trying
//! again would not mend it.

mod command;
mod echo;
mod fail;
mod http;
mod noop;
mod payload;
mod sleep;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use orchestrix_worker::WorkerBuilder;

/// What the built-in types may do.
#[derive(Debug, Clone)]
pub(crate) struct BuiltinOptions {
    /// The programs that `orchestrix.command` runs, spelled as in the payload.
    pub(crate) commands: BTreeSet<String>,
    /// How long a program that was asked to end gets before it is killed. Less than the grace of the worker's handlers.
    pub(crate) kill_after: Duration,
    /// Whether `orchestrix.http` reaches addresses that are not public.
    pub(crate) private_http: bool,
}

/// The types that [`register`] teaches.
pub(crate) const TYPES: [&str; 6] = [noop::TYPE, echo::TYPE, sleep::TYPE, fail::TYPE, http::TYPE, command::TYPE];

/// Teaches a worker the built-in types.
pub(crate) fn register(builder: WorkerBuilder, options: &BuiltinOptions) -> WorkerBuilder {
    let courier = Arc::new(http::Courier::new(options.private_http));
    let rules = Arc::new(command::Rules::new(options));
    builder
        .raw_handler(noop::TYPE, noop::run)
        .raw_handler(echo::TYPE, echo::run)
        .raw_handler(sleep::TYPE, sleep::run)
        .raw_handler(fail::TYPE, fail::run)
        .raw_handler(http::TYPE, move |call| http::run(call, Arc::clone(&courier)))
        .raw_handler(command::TYPE, move |call| command::run(call, Arc::clone(&rules)))
}
