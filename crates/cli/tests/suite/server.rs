//! The server as a process, on every database, tested over HTTP.

mod admin;
mod connection;
mod contract;
mod database_outage;
mod disconnects;
mod disconnects_mid_transaction;
mod jobs;
mod leak_check;
mod lifecycle;
mod limits;
mod live;
mod nodes;
mod operators;
mod overload;
pub(crate) mod process;
mod schedules;
mod server_crashes;
mod workers;
