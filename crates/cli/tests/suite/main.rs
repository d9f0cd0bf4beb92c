//! The real command on real databases.
#![allow(clippy::unwrap_used, reason = "tests")]

mod builtin;
mod change;
mod enqueue;
mod follow;
mod help;
mod inspect;
mod metrics;
mod migrate;
mod operate;
mod remote;
mod schedules;
mod server;
mod support;
mod usage;
mod worker;
