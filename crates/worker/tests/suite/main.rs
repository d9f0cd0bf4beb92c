//! The worker: in one process, and as many.
#![allow(clippy::unwrap_used, reason = "tests")]

mod processes;
mod runtime;
