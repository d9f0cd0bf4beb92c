//! Private, real servers for the tests and benchmarks of Orchestrix.
//!
//! A test that needs PostgreSQL uses a real server: in a fresh directory, on a free loopback port, stopped when its
//! owner exits. Nothing here touches a server that is already on the machine.
//!
//! - [`TestDatabase`]: a fresh database on the server that all tests share ([`test_postgres`]). The usual choice.
//! - [`PostgresServer`]: a server of one test, which can be stopped, killed and restarted.
//! - [`PgBouncer`]: a pooler in front of a server.
//! - [`FaultProxy`]: a TCP proxy that can be cut, frozen and restored.
//! - [`TraceCollector`]: an OTLP collector that stores what it receives.
//! - [`ScratchDir`]: a directory for temporary files, in memory if there is enough.
//! - [`TestProcess`]: a child process that runs a function of the test binary.
//! - [`schemathesis`](fn@schemathesis): the tool that tests a server against its OpenAPI description.
//! - [`install::ensure`]: installs missing packages on a Debian machine.
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
//! # Cleanup
//!
//! Every server has a cleanup process: a small shell script that waits for the end of a pipe whose other end only the
//! owner holds. When the owner returns, panics or is killed, the pipe closes, and the script stops the server and
//! removes its directory.
//!
//! # No async, no database driver
//!
//! Everything blocks, and SQL goes through `psql`. So the crate builds in seconds, and also serves `xtask`, which runs
//! before anything else is built. From async code, call [`PostgresServer::kill`] and similar methods in
//! `spawn_blocking`.

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
mod server_dir;
mod server_user;
mod test_process;
mod trace_collector;

pub use database::{TEST_POSTGRES, TestDatabase, test_postgres};
pub use error::Error;
pub use installation::{OLDEST_POSTGRES, PG_BIN, PostgresInstallation};
pub use pgbouncer::PgBouncer;
pub use postgres::{Durability, PostgresBuilder, PostgresServer, free_port};
pub use proxy::FaultProxy;
pub use psql::psql;
pub use schemathesis::{ensure_schemathesis, schemathesis};
pub use scratch::ScratchDir;
pub use test_process::TestProcess;
pub use trace_collector::TraceCollector;
