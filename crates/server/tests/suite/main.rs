//! A real server on real databases, and those who talk to it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod audit;
mod audit_failure;
mod clocks;
mod live;
mod openapi;
mod outage;
mod place;
mod python;
mod remote_worker;
mod takes;
