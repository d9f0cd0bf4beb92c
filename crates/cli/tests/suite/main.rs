//! The real command on real databases.
#![allow(clippy::unwrap_used, reason = "tests")]

mod builtin;
mod change;
mod doctor;
mod enqueue;
mod follow;
mod help;
mod inspect;
mod migrate;
mod operate;
mod schedules;
mod server;
mod support;
mod usage;
mod worker;
