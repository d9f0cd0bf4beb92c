//! Tests of the worker runtime, in one process and as a fleet of processes.
#![allow(clippy::unwrap_used, reason = "tests")]

mod processes;
mod runtime;
