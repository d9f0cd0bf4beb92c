//! The real command on real databases.
#![allow(clippy::unwrap_used, reason = "tests")]

mod auth;
mod builtin;
mod bulk;
mod change;
mod configuration;
mod doctor;
mod drain;
mod enqueue;
mod explain;
mod follow;
mod help;
mod inspect;
mod logs;
mod metrics;
mod migrate;
mod operate;
mod pooler;
mod remote;
mod schedules;
mod server;
mod support;
#[cfg(feature = "otlp")]
mod traces;
mod usage;
mod worker;
