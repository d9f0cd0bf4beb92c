//! Tests of coordinators on real stores, in one process and in several.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bulk_operations;
mod failing_service;
mod leadership;
mod outage;
mod processes;
mod services;
mod support;
