//! The store on real PostgreSQL servers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod changes;
mod conformance;
mod crash;
mod dedicated_handle;
mod dependents;
mod input;
mod invariants;
mod jobs;
mod lifecycle;
mod lists;
mod locks;
mod migrations;
mod operations;
mod plans;
mod pooling;
mod races;
mod ready;
mod regressions;
mod schedule_faults;
mod schedules;
mod sql;
mod support;
mod tenants;
mod transactions;
mod transactions_sqlx;
mod vacuum;
mod wakeups;
mod wire;
