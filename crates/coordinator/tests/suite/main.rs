//! Coordinators on real stores, in one process and in several.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bulk;
mod failing;
mod outage;
mod processes;
mod services;
mod support;
mod together;
