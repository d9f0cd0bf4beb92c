//! The store on real files.
#![allow(clippy::unwrap_used, reason = "tests")]

mod apart;
mod books;
mod conformance;
mod crash;
mod faults;
mod group_commit;
mod jobs;
mod migrations;
mod operations;
mod process;
mod races;
mod schedules;
mod support;
mod wakeups;
mod wal;
