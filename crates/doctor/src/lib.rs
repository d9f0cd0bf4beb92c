//! Checks of a database, a server and this machine, with advice for every finding. `orchestrix doctor` prints them.
//!
//! | module | what it owns |
//! |---|---|
//! | `check` | one finding: status, detail and advice |
//! | `runner` | running probes one after the other, each with a time limit |
//! | `postgres`, `sqlite` | a database |
//! | `snapshot` | leader, workers, queues and jobs: the same checks for every database |
//! | `server` | a server, as its clients see it |
//! | `machine` | limits of this machine |
//! | `clock` | whether two clocks agree |
//! | `connect_failure` | why a TLS or HTTP handshake failed |
//!
//! The `diagnose` module of each backend collects facts; the functions here only evaluate them, so every finding has a
//! unit test. Nothing is changed. A probe that fails becomes a warning, and the next probe runs.

mod check;
mod clock;
mod connect_failure;
mod machine;
mod postgres;
mod runner;
mod server;
mod snapshot;
mod sqlite;

pub use check::{Check, Status};
pub use connect_failure::ConnectFailure;
pub use machine::check_machine;
pub use postgres::check_postgres;
pub use server::{InvalidServerUrl, ServerUrl, check_server};
pub use sqlite::check_sqlite;

/// The findings about one database, server or machine.
#[derive(Debug)]
pub struct Report {
    /// The findings, in the order in which the probes ran.
    pub checks: Vec<Check>,
    /// Whether nothing could be probed because the target did not answer.
    pub unreachable: bool,
}
