//! A private PgBouncer in transaction mode.
//!
//! It shares few server connections among many clients, for one transaction each. Session state that one client
//! leaves behind is seen by another, and lost to the first.

use std::env;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::tail;
use crate::postgres::free_port;
use crate::process::{self, POLL_INTERVAL};
use crate::server_dir::ServerDir;
use crate::server_user::ServerUser;
use crate::{Error, psql};

/// The package's user on Debian, used when this process is root.
const USER: &str = "postgres";
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(10);
const PORT_TRIES: u32 = 10;

/// A private PgBouncer; stopped and removed when dropped.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    process: Child,
    // Declared last, so that the process stops before its directory is removed.
    dir: ServerDir,
}

impl PgBouncer {
    /// Starts PgBouncer in front of the server at `server`, a URL without a database, with at most `connections` per
    /// database.
    pub fn start(server: &str, connections: u32) -> Result<Self, Error> {
        let program = find()?;
        let dir = ServerDir::create("pgbouncer", ServerUser::for_server(USER)?, "TERM")?;
        let (host, server_port) = server
            .rsplit_once('@')
            .and_then(|(_, address)| address.trim_end_matches('/').rsplit_once(':'))
            .unwrap_or((server, "5432"));
        let config = dir.path().join("pgbouncer.ini");
        let mut port = 0;
        for _ in 0..PORT_TRIES {
            port = free_port();
            let text = format!(
                "[databases]\n* = host={host} port={server_port} user={USER}\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
                 pool_mode = transaction\ndefault_pool_size = {connections}\nmax_client_conn = 500\n"
            );
            fs::write(&config, text).map_err(Error::files(&config))?;
            let log = dir.log()?;
            let log_start = log.metadata().map_err(Error::run("stat"))?.len();
            let mut command = dir.command(&program);
            command.arg(&config).stdout(log.try_clone().map_err(Error::run("dup"))?).stderr(log);
            let mut process = command.spawn().map_err(Error::run(&program))?;
            if wait_until_ready(&mut process, port)? {
                let bouncer = Self { port, process, dir };
                psql(&bouncer.url("postgres"), "SELECT 1")?;
                return Ok(bouncer);
            }
            let status = process.wait().map_err(Error::run("wait"))?;
            dir.clear_pid()?;
            let log = dir.log_since(log_start)?;
            if !log.contains("Address already in use") {
                return Err(Error::ServerExited { status, log: tail(&log) });
            }
        }
        Err(Error::NoFreePort { tries: PORT_TRIES, port })
    }

    /// The URL of a database through PgBouncer.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }
}

/// Finds the program, also in the directories that are only on root's PATH.
pub(crate) fn find() -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
        .ok_or(Error::PgBouncerMissing)
}

/// Waits until PgBouncer accepts connections; returns `false` if it exited instead.
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
        thread::sleep(POLL_INTERVAL);
    }
    Ok(true)
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Errors are ignored: the cleanup process does the same next.
        let _ = process::signal("TERM", &[self.process.id()]);
        if matches!(process::wait(&mut self.process, STOP_LIMIT), Ok(None)) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        let _ = self.dir.clear_pid();
    }
}
