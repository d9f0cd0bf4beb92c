//! Private real servers for the tests and benchmarks of Orchestrix.
//!
//! A test that talks to PostgreSQL talks to a real one: a server of its own, in a fresh directory, on a free
//! loopback port, gone when its owner is gone. Nothing here touches a server that was already on the machine.
//!
//! - [`PostgresServer`] is one such server, to be stopped, killed and restarted at will.
//! - [`PgBouncer`] is a pooler in front of such a server.
//! - [`Proxy`] is a line to a server that can be cut, frozen and mended.
//! - [`Collector`] keeps the traces that programs send to it.
//! - [`TestDatabase`] is a fresh database on the server that all tests share ([`test_postgres`]): the everyday choice.
//! - [`Twin`] is a process of a test's own, which can be killed, stopped and asked to end.
//! - [`schemathesis`](fn@schemathesis) asks a server all that its description allows, and more.
//! - [`install::ensure`] puts the server's package on a Debian machine that lacks it.
//!
//! ```no_run
//! use orchestrix_testkit::{Durability, PostgresServer, TestDatabase, psql};
//!
//! let database = TestDatabase::create("orders")?;
//! assert_eq!(psql(database.url(), "SELECT 1")?, "1");
//!
//! let mut server = PostgresServer::builder().durability(Durability::Durable).start()?;
//! server.kill()?;
//! server.restart()?;
//! # Ok::<(), orchestrix_testkit::Error>(())
//! ```
//!
//! # Leaving nothing behind
//!
//! Every server has a keeper: a small shell process that waits for the end of a pipe whose other end only the owner
//! holds. However the owner ends, by returning, by panic, by SIGKILL, the pipe ends with it, and the keeper stops the
//! server and removes the directory.
//!
//! # What is deliberately absent
//!
//! No async and no database driver: everything blocks and SQL goes through `psql`, so that the crate builds in seconds
//! and can serve both the tests and the commands that start before anything else is built. From async code, call
//! [`PostgresServer::kill`] and its siblings through `spawn_blocking`.

mod account;
mod collector;
mod database;
mod error;
pub mod install;
mod installation;
mod pgbouncer;
mod postgres;
mod process;
mod proxy;
mod psql;
mod schemathesis;
mod scratch;
mod twin;

pub use collector::Collector;
pub use database::{TEST_POSTGRES, TestDatabase, test_postgres};
pub use error::Error;
pub use installation::{OLDEST_POSTGRES, PG_BIN, PostgresInstallation};
pub use pgbouncer::PgBouncer;
pub use postgres::{Durability, PostgresBuilder, PostgresServer, free_port};
pub use proxy::Proxy;
pub use psql::psql;
pub use schemathesis::{ensure_schemathesis, schemathesis};
pub use twin::Twin;
