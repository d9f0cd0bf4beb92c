//! Tests of a real server on real databases.
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod audit;
mod audit_failure;
mod database_outage;
mod live;
mod openapi;
mod python;
mod remote_worker;
mod store_clock;
mod tenants;
mod test_server;
mod undocumented_input;
