//! The store on real PostgreSQL servers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod books;
mod conformance;
mod crash;
mod input;
mod jobs;
mod life;
mod locks;
mod migrations;
mod plans;
mod pooling;
mod races;
mod regressions;
mod sql;
mod support;
mod wakeups;
mod wire;
