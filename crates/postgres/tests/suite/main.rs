//! The store on real PostgreSQL servers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod conformance;
mod regressions;
mod support;
