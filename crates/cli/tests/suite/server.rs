//! The server as a process, on every database, asked as any program would ask it.

mod admin;
mod contract;
mod crashes;
pub(crate) mod http;
mod jobs;
mod limits;
mod line;
mod live;
mod midway;
mod nodes;
mod operate;
mod outage;
mod overload;
mod quiet;
mod schedules;
mod start;
mod vanish;
mod workers;
