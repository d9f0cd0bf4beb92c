//! The store on real PostgreSQL servers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod apart;
mod books;
mod conformance;
mod crash;
mod input;
mod jobs;
mod life;
mod lists;
mod locks;
mod migrations;
mod operations;
mod plans;
mod pooling;
mod races;
mod recent;
mod regressions;
mod schedule_faults;
mod schedules;
mod sql;
mod support;
mod tenants;
mod transactions;
mod transactions_sqlx;
mod wakeups;
mod wire;
