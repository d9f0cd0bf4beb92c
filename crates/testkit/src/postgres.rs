//! A private PostgreSQL server.
//!
//! `postgres` is a direct child, not a daemon started by `pg_ctl`: its pid is known, its exit is noticed, and it
//! receives signals. It listens on loopback only, without a Unix socket, and trusts every client.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::tail;
use crate::process::{self, POLL_INTERVAL};
use crate::server_dir::{ServerDir, random};
use crate::server_user::ServerUser;
use crate::{Error, PostgresInstallation, psql, scratch};

/// The package's user, used when this process is root.
const USER: &str = "postgres";
/// Long enough for crash recovery on a slow and busy machine.
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const QUIT_LIMIT: Duration = Duration::from_secs(10);
const PORT_TRIES: u32 = 10;

/// How a private server protects its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// No fsync, and files in memory if there is enough: commits survive a crash of the server, not of the machine.
    #[default]
    Fast,
    /// PostgreSQL's defaults, for measurements.
    Durable,
}

impl Durability {
    fn settings(self) -> &'static [&'static str] {
        match self {
            // synchronous_commit stays on: without it a killed server would lose acknowledged commits, which the
            // tests would report as a bug. Shared memory in files is removed with the directory; segments of a killed
            // server in /dev/shm would stay.
            Self::Fast => &["fsync=off", "full_page_writes=off", "dynamic_shared_memory_type=mmap"],
            Self::Durable => &[],
        }
    }
}

/// Settings of a [`PostgresServer`] before its start.
#[derive(Debug, Clone, Default)]
pub struct PostgresBuilder {
    durability: Durability,
    settings: Vec<String>,
}

impl PostgresBuilder {
    /// Sets the durability; the default is [`Durability::Fast`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Adds a setting as in `postgresql.conf`. It overrides earlier settings and the defaults of this crate.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Creates the data directory, starts the server, and returns once it answers queries.
    pub fn start(self) -> Result<PostgresServer, Error> {
        self.start_on(free_port)
    }

    /// Starts on the first of `ports` that is free when the server binds it.
    fn start_on(self, mut ports: impl FnMut() -> u16) -> Result<PostgresServer, Error> {
        let installation = PostgresInstallation::find()?;
        let user = ServerUser::for_server(USER)?;
        let memory = match self.durability {
            Durability::Fast => scratch::in_memory().filter(|directory| user.can_use(directory)),
            Durability::Durable => None,
        };
        let dir = match memory {
            Some(directory) => ServerDir::create_in(&directory, "postgres", user, "QUIT")?,
            None => ServerDir::create("postgres", user, "QUIT")?,
        };
        let mut settings = vec!["listen_addresses=127.0.0.1".into(), "unix_socket_directories=".into()];
        settings.push("max_connections=200".into());
        settings.extend(self.durability.settings().iter().map(|&setting| setting.into()));
        settings.extend(self.settings);
        let mut server = PostgresServer { installation, settings, port: 0, process: None, dir };
        server.init_data_dir()?;
        for _ in 0..PORT_TRIES {
            server.port = ports();
            if server.launch()? == Launch::Ready {
                return Ok(server);
            }
        }
        Err(Error::NoFreePort { tries: PORT_TRIES, port: server.port })
    }
}

/// A private PostgreSQL server; stopped and removed when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    installation: PostgresInstallation,
    settings: Vec<String>,
    port: u16,
    process: Option<Child>,
    // Declared last, so that the server stops before its directory is removed.
    dir: ServerDir,
}

#[derive(PartialEq, Eq)]
enum Launch {
    Ready,
    PortTaken,
}

impl PostgresServer {
    /// A builder with the settings for tests.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// The URL of a database on this server. `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        format!("{}/{database}", self.base_url())
    }

    /// The URL without a database.
    pub fn base_url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}", self.port)
    }

    /// The loopback port; it stays the same across restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The pid of the server's main process, or `None` after a stop or kill.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Shuts down and disconnects all sessions, like `pg_ctl stop -m fast`.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.stop_with(&[("INT", STOP_LIMIT), ("QUIT", QUIT_LIMIT)])
    }

    /// Kills every process of the server at once, like a crash: clients get no message, nothing is cleaned up.
    pub fn kill(&mut self) -> Result<(), Error> {
        let Some(pid) = self.pid() else { return Ok(()) };
        // Stop it first, so that it cannot fork a process that the list would miss. The sessions must be killed, too:
        // a busy one notices late that its parent is gone, and a restart fails until then.
        process::signal("STOP", &[pid])?;
        let mut all = process::children(pid);
        all.push(pid);
        process::signal("KILL", &all)?;
        self.stop_with(&[])?;
        process::wait_gone(&all, QUIT_LIMIT)
    }

    /// Starts the server again on the same port and data directory. A running server is stopped first.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop()?;
        let deadline = Instant::now() + START_LIMIT;
        // Clients already have URLs with this port, so wait until it is free again.
        while self.launch()? == Launch::PortTaken {
            if Instant::now() >= deadline {
                return Err(Error::NoFreePort { tries: 1, port: self.port });
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn init_data_dir(&self) -> Result<(), Error> {
        let program = self.installation.program("initdb");
        // initdb must not clean up after itself: it would remove the files of the servers it runs, which then leak
        // their shared memory. The cleanup process removes everything once they have exited.
        let output = self
            .dir
            .command(&program)
            .args(["-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-clean", "-D"])
            .arg(self.data_dir())
            .output()
            .map_err(Error::run(&program))?;
        self.dir.clear_pid()?;
        if output.status.success() { Ok(()) } else { Err(Error::failed(&program, &output)) }
    }

    fn launch(&mut self) -> Result<Launch, Error> {
        let log = self.dir.log()?;
        let log_start = log.metadata().map_err(Error::run("stat"))?.len();
        let program = self.installation.program("postgres");
        let mut command = self.dir.command(&program);
        command.arg("-D").arg(self.data_dir()).arg("-p").arg(self.port.to_string());
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        command.stdout(log.try_clone().map_err(Error::run("dup"))?).stderr(log);
        self.process = Some(command.spawn().map_err(Error::run(&program))?);

        match self.wait_until_ready(log_start) {
            Ok(()) => Ok(Launch::Ready),
            Err(error) => {
                self.stop_with(&[("QUIT", QUIT_LIMIT)])?;
                match error {
                    Error::ServerExited { log, .. } if log.contains("Address already in use") => Ok(Launch::PortTaken),
                    error => Err(error),
                }
            }
        }
    }

    /// Waits until this server, not another on the same port, is ready; then runs a query.
    fn wait_until_ready(&mut self, log_start: u64) -> Result<(), Error> {
        let deadline = Instant::now() + START_LIMIT;
        while !self.is_ready() {
            let Some(process) = &mut self.process else { break };
            if let Some(status) = process.try_wait().map_err(Error::run("wait"))? {
                let log = tail(&self.dir.log_since(log_start)?);
                return Err(Error::ServerExited { status, log });
            }
            if Instant::now() >= deadline {
                let log = tail(&self.dir.log_since(log_start)?);
                return Err(Error::NotReady { limit: START_LIMIT, log });
            }
            thread::sleep(POLL_INTERVAL);
        }
        psql(&self.url("postgres"), "SELECT 1").map(drop)
    }

    /// Whether the lock file has our pid in line 1 and `ready` in line 8, which is what `pg_ctl` checks.
    fn is_ready(&self) -> bool {
        let Ok(lock) = fs::read_to_string(self.data_dir().join("postmaster.pid")) else {
            return false;
        };
        let lines: Vec<&str> = lock.lines().map(str::trim).collect();
        let ours = self.pid().map(|pid| pid.to_string());
        lines.first().copied() == ours.as_deref() && lines.get(7) == Some(&"ready")
    }

    /// Sends the signals one after the other, each with its time limit; then SIGKILL.
    fn stop_with(&mut self, signals: &[(&str, Duration)]) -> Result<(), Error> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        for &(signal, limit) in signals {
            process::signal(signal, &[process.id()])?;
            if process::wait(&mut process, limit)?.is_some() {
                return self.dir.clear_pid();
            }
        }
        process.kill().map_err(Error::run("kill"))?;
        process.wait().map_err(Error::run("wait"))?;
        self.dir.clear_pid()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Errors are ignored: the cleanup process does the same next.
        let _ = self.stop_with(&[("QUIT", QUIT_LIMIT)]);
    }
}

/// A free loopback port below the ephemeral range.
///
/// A port of that range could be assigned to a client that tries to reconnect to a stopped server: it would connect
/// to itself.
pub fn free_port() -> u16 {
    const LOWEST: u64 = 15_000;
    const HIGHEST: u64 = 32_000;
    let candidate = || u16::try_from(LOWEST + random() % (HIGHEST - LOWEST)).expect("HIGHEST fits a port");
    let mut port = candidate();
    for _ in 0..100 {
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            break;
        }
        port = candidate();
    }
    port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_taken_meanwhile_is_replaced_by_another() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ports = [taken.local_addr().unwrap().port(), free_port()].into_iter();
        let server = PostgresServer::builder().start_on(|| ports.next().unwrap()).unwrap();
        assert_ne!(server.port(), taken.local_addr().unwrap().port());
        assert_eq!(psql(&server.url("postgres"), "SHOW fsync").unwrap(), "off");
    }

    #[test]
    fn a_server_that_cannot_start_reports_its_log() {
        let error = PostgresServer::builder().setting("no_such_setting", "1").start().unwrap_err();
        assert!(matches!(&error, Error::ServerExited { log, .. } if log.contains("no_such_setting")), "{error}");
    }
}
