//! A private PostgreSQL.
//!
//! `postgres` itself is our child, not a daemon that `pg_ctl` left behind: its pid is known, its end is seen, and
//! signals reach it. It listens on loopback only, without a socket file, and trusts everybody who can connect.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::error::tail;
use crate::process::{self, LOOK_AGAIN};
use crate::scratch::{Scratch, random};
use crate::{Error, PostgresInstallation, psql};

/// The package's user, which the server runs as when we are root.
const USER: &str = "postgres";
/// Long enough for crash recovery on a slow and busy machine.
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const QUIT_LIMIT: Duration = Duration::from_secs(10);
const PORT_TRIES: u32 = 10;

/// What a private server does for the safety of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Commits do not wait for the disk. They survive the death of the server, not that of the machine.
    #[default]
    Fast,
    /// PostgreSQL's own defaults, for measurements.
    Durable,
}

impl Durability {
    fn settings(self) -> &'static [&'static str] {
        match self {
            // synchronous_commit stays on: off, a killed server would lose commits that it had acknowledged, and the
            // tests are there to see that it does not. Dynamic memory in files goes with the directory, while a killed
            // server's segments in /dev/shm would stay.
            Self::Fast => &["fsync=off", "full_page_writes=off", "dynamic_shared_memory_type=mmap"],
            Self::Durable => &[],
        }
    }
}

/// The choices for a [`PostgresServer`] that is about to start.
#[derive(Debug, Clone, Default)]
pub struct PostgresBuilder {
    durability: Durability,
    settings: Vec<String>,
}

impl PostgresBuilder {
    /// Chooses how safe the data is; [`Durability::Fast`] unless told otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Adds a setting, as in `postgresql.conf`; later ones win over earlier ones and over our own.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Creates the data directory, starts the server, and returns once it answers queries.
    pub fn start(self) -> Result<PostgresServer, Error> {
        self.start_on(free_port)
    }

    /// Starts on the first of `ports` that is still free when the server asks for it.
    fn start_on(self, mut ports: impl FnMut() -> u16) -> Result<PostgresServer, Error> {
        let installation = PostgresInstallation::find()?;
        let scratch = Scratch::create("postgres", Account::for_server(USER)?, "QUIT")?;
        let mut settings = vec!["listen_addresses=127.0.0.1".into(), "unix_socket_directories=".into()];
        settings.push("max_connections=200".into());
        settings.extend(self.durability.settings().iter().map(|&setting| setting.into()));
        settings.extend(self.settings);
        let mut server = PostgresServer { installation, settings, port: 0, process: None, scratch };
        server.initialise()?;
        for _ in 0..PORT_TRIES {
            server.port = ports();
            if server.launch()? == Launch::Ready {
                return Ok(server);
            }
        }
        Err(Error::NoFreePort { tries: PORT_TRIES, port: server.port })
    }
}

/// A private PostgreSQL server; dropping it ends the server and removes its data.
#[derive(Debug)]
pub struct PostgresServer {
    installation: PostgresInstallation,
    settings: Vec<String>,
    port: u16,
    process: Option<Child>,
    // Last, so that the server is down before its directory goes.
    scratch: Scratch,
}

#[derive(PartialEq, Eq)]
enum Launch {
    Ready,
    PortTaken,
}

impl PostgresServer {
    /// A server with the settings for tests, to be changed before it starts.
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

    /// The loopback port, the same for the server's whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The pid of the server's main process, unless it was stopped or killed.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Shuts the server down in order, ending its sessions: what `pg_ctl stop -m fast` does.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.end(&[("INT", STOP_LIMIT), ("QUIT", QUIT_LIMIT)])
    }

    /// Kills every process of the server at once, as a crash would: no message to clients, no clean-up.
    pub fn kill(&mut self) -> Result<(), Error> {
        let Some(pid) = self.pid() else { return Ok(()) };
        // Stopped first, so that it forks no process that the list would miss. And the sessions have to be killed too:
        // one that is busy notices the loss of its parent late, and until then a restart is refused.
        process::signal("STOP", &[pid])?;
        let mut all = process::children(pid);
        all.push(pid);
        process::signal("KILL", &all)?;
        self.end(&[])?;
        process::wait_gone(&all, QUIT_LIMIT)
    }

    /// Starts the server again on the same port and data, after stopping it if it still runs.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop()?;
        let deadline = Instant::now() + START_LIMIT;
        // The port is part of the URLs already handed out, so whoever took it meanwhile has to be waited for.
        while self.launch()? == Launch::PortTaken {
            if Instant::now() >= deadline {
                return Err(Error::NoFreePort { tries: 1, port: self.port });
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    fn initialise(&self) -> Result<(), Error> {
        let program = self.installation.program("initdb");
        // No clean-up by initdb: it would take the files from under the servers that it runs, which then leave their
        // shared memory behind. The keeper removes everything once all of them are gone.
        let output = self
            .scratch
            .command(&program)
            .args(["-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-clean", "-D"])
            .arg(self.data())
            .output()
            .map_err(Error::run(&program))?;
        self.scratch.ended()?;
        if output.status.success() { Ok(()) } else { Err(Error::failed(&program, &output)) }
    }

    fn launch(&mut self) -> Result<Launch, Error> {
        let log = self.scratch.log()?;
        let log_start = log.metadata().map_err(Error::run("stat"))?.len();
        let program = self.installation.program("postgres");
        let mut command = self.scratch.command(&program);
        command.arg("-D").arg(self.data()).arg("-p").arg(self.port.to_string());
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        command.stdout(log.try_clone().map_err(Error::run("dup"))?).stderr(log);
        self.process = Some(command.spawn().map_err(Error::run(&program))?);

        match self.wait_until_ready(log_start) {
            Ok(()) => Ok(Launch::Ready),
            Err(error) => {
                self.end(&[("QUIT", QUIT_LIMIT)])?;
                match error {
                    Error::ServerExited { log, .. } if log.contains("Address already in use") => Ok(Launch::PortTaken),
                    error => Err(error),
                }
            }
        }
    }

    /// Waits until this server, and not another that holds the port, says that it is ready; then asks it something.
    fn wait_until_ready(&mut self, log_start: u64) -> Result<(), Error> {
        let deadline = Instant::now() + START_LIMIT;
        while !self.says_ready() {
            let Some(process) = &mut self.process else { break };
            if let Some(status) = process.try_wait().map_err(Error::run("wait"))? {
                let log = tail(&self.scratch.log_since(log_start)?);
                return Err(Error::ServerExited { status, log });
            }
            if Instant::now() >= deadline {
                let log = tail(&self.scratch.log_since(log_start)?);
                return Err(Error::NotReady { limit: START_LIMIT, log });
            }
            thread::sleep(LOOK_AGAIN);
        }
        psql(&self.url("postgres"), "SELECT 1").map(drop)
    }

    /// Whether the server's lock file carries our process's pid in line 1 and its word in line 8; `pg_ctl` looks there.
    fn says_ready(&self) -> bool {
        let Ok(lock) = fs::read_to_string(self.data().join("postmaster.pid")) else {
            return false;
        };
        let lines: Vec<&str> = lock.lines().map(str::trim).collect();
        let ours = self.pid().map(|pid| pid.to_string());
        lines.first().copied() == ours.as_deref() && lines.get(7) == Some(&"ready")
    }

    /// Sends the signals one after the other, giving each its time, and SIGKILL if none of them was enough.
    fn end(&mut self, signals: &[(&str, Duration)]) -> Result<(), Error> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        for &(signal, limit) in signals {
            process::signal(signal, &[process.id()])?;
            if process::wait(&mut process, limit)?.is_some() {
                return self.scratch.ended();
            }
        }
        process.kill().map_err(Error::run("kill"))?;
        process.wait().map_err(Error::run("wait"))?;
        self.scratch.ended()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Nothing to be done about an error here: the keeper, next to go, tries the same.
        let _ = self.end(&[("QUIT", QUIT_LIMIT)]);
    }
}

/// A loopback port that nobody listens on, below the range from which Linux takes the ports of outgoing connections.
///
/// Within that range, a client that tries to reconnect to a stopped server can be given the server's own port.
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
    fn a_port_that_was_taken_meanwhile_is_given_up_for_another() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ports = [taken.local_addr().unwrap().port(), free_port()].into_iter();
        let server = PostgresServer::builder().start_on(|| ports.next().unwrap()).unwrap();
        assert_ne!(server.port(), taken.local_addr().unwrap().port());
        assert_eq!(psql(&server.url("postgres"), "SHOW fsync").unwrap(), "off");
    }

    #[test]
    fn a_server_that_cannot_start_shows_its_log() {
        let error = PostgresServer::builder().setting("no_such_setting", "1").start().unwrap_err();
        assert!(matches!(&error, Error::ServerExited { log, .. } if log.contains("no_such_setting")), "{error}");
    }
}
