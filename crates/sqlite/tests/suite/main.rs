//! Tests of the SQLite store on real files.
#![allow(clippy::unwrap_used, reason = "tests")]

mod conformance;
mod consistency;
mod crash;
mod dedicated_handle;
mod faults;
mod group_commit;
mod jobs;
mod migrations;
mod operations;
mod process;
mod races;
mod schedules;
mod support;
mod turns;
mod wakeups;
mod wal;
