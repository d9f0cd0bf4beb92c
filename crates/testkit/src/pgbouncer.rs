//! A private PgBouncer in transaction mode.
//!
//! It lends its few connections to many clients, to each for one transaction: what a client leaves on a connection, the
//! next one finds, and what it relies on being there is gone.

use std::env;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::error::tail;
use crate::postgres::free_port;
use crate::process::{self, LOOK_AGAIN};
use crate::scratch::Scratch;
use crate::{Error, psql};

/// The package's user on Debian, which it runs as when we are root.
const USER: &str = "postgres";
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(10);
const PORT_TRIES: u32 = 10;

/// A private PgBouncer; dropping it ends it and removes its files.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    process: Child,
    // Last, so that the process is gone before its directory.
    scratch: Scratch,
}

impl PgBouncer {
    /// Starts one in front of the server at `server`, a URL without a database, with at most `connections` to each
    /// database.
    pub fn start(server: &str, connections: u32) -> Result<Self, Error> {
        let program = find()?;
        let scratch = Scratch::create("pgbouncer", Account::for_server(USER)?, "TERM")?;
        let (host, server_port) = server
            .rsplit_once('@')
            .and_then(|(_, address)| address.trim_end_matches('/').rsplit_once(':'))
            .unwrap_or((server, "5432"));
        let config = scratch.path().join("pgbouncer.ini");
        let mut port = 0;
        for _ in 0..PORT_TRIES {
            port = free_port();
            let text = format!(
                "[databases]\n* = host={host} port={server_port} user={USER}\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
                 pool_mode = transaction\ndefault_pool_size = {connections}\nmax_client_conn = 500\n"
            );
            fs::write(&config, text).map_err(Error::files(&config))?;
            let log = scratch.log()?;
            let log_start = log.metadata().map_err(Error::run("stat"))?.len();
            let mut command = scratch.command(&program);
            command.arg(&config).stdout(log.try_clone().map_err(Error::run("dup"))?).stderr(log);
            let mut process = command.spawn().map_err(Error::run(&program))?;
            if wait_until_ready(&mut process, port)? {
                let bouncer = Self { port, process, scratch };
                psql(&bouncer.url("postgres"), "SELECT 1")?;
                return Ok(bouncer);
            }
            let status = process.wait().map_err(Error::run("wait"))?;
            scratch.ended()?;
            let log = scratch.log_since(log_start)?;
            if !log.contains("Address already in use") {
                return Err(Error::ServerExited { status, log: tail(&log) });
            }
        }
        Err(Error::NoFreePort { tries: PORT_TRIES, port })
    }

    /// The URL of a database behind it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }
}

/// Where the program is: Debian puts it where only root's PATH leads.
pub(crate) fn find() -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
        .ok_or(Error::PgBouncerMissing)
}

/// Whether it came to listen; `false` says that it ended instead.
fn wait_until_ready(process: &mut Child, port: u16) -> Result<bool, Error> {
    let deadline = Instant::now() + START_LIMIT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if process.try_wait().map_err(Error::run("wait"))?.is_some() {
            return Ok(false);
        }
        if Instant::now() >= deadline {
            process.kill().map_err(Error::run("kill"))?;
            return Ok(false);
        }
        thread::sleep(LOOK_AGAIN);
    }
    Ok(true)
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Nothing to be done about an error here: the keeper, next to go, tries the same.
        let _ = process::signal("TERM", &[self.process.id()]);
        if matches!(process::wait(&mut self.process, STOP_LIMIT), Ok(None)) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        let _ = self.scratch.ended();
    }
}
