//! The real command on real databases.
#![allow(clippy::unwrap_used, reason = "tests")]

mod auth;
mod builtin;
mod bulk;
mod config_file;
mod doctor;
mod enqueue;
mod explain;
mod get_and_list;
mod harness;
mod help;
mod job_actions;
mod logs;
mod metrics;
mod migrate;
mod over_server;
mod pooler;
mod queues_workers_nodes;
mod schedules;
mod server;
mod tenants;
#[cfg(feature = "otlp")]
mod traces;
mod usage_errors;
mod wait_and_logs;
mod worker;
mod worker_drain;
