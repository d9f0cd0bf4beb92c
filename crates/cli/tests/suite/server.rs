//! The server as a process, on every database, asked as any program would ask it.

mod contract;
mod http;
mod jobs;
mod limits;
mod schedules;
mod start;
mod workers;
