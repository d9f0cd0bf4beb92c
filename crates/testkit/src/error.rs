//! What can go wrong with a private server, each case with what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::time::Duration;

use crate::installation::{OLDEST_POSTGRES, PG_BIN};

/// A private server that could not be found, installed, started or spoken to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No PostgreSQL server is installed.
    #[error(
        "PostgreSQL {OLDEST_POSTGRES} or later is needed: apt-get install postgresql, \
         or set {PG_BIN} to the directory that holds its `postgres`, `initdb` and `psql`"
    )]
    PostgresMissing,

    /// PgBouncer is not installed.
    #[error("PgBouncer is needed for the tests behind a pooler: apt-get install pgbouncer")]
    PgBouncerMissing,

    /// Schemathesis is not installed, or not as it should be.
    #[error("schemathesis is needed for the tests of the API against its description: cargo xtask test installs it")]
    SchemathesisMissing,

    /// The directory named by `PG_BIN` lacks one of the programs.
    #[error("{PG_BIN} is {}, which holds no `{program}`: point it at a PostgreSQL server's own bin directory", .bin.display())]
    PostgresIncomplete {
        /// The directory that was searched.
        bin: PathBuf,
        /// The first program that it lacks.
        program: &'static str,
    },

    /// The newest PostgreSQL on the machine is too old.
    #[error(
        "PostgreSQL {OLDEST_POSTGRES} or later is needed, and {} holds version {found}: \
         install a newer one, or set {PG_BIN} to its bin directory", .bin.display()
    )]
    PostgresTooOld {
        /// Where the old version lives.
        bin: PathBuf,
        /// Its major version.
        found: u32,
    },

    /// The process runs as root, which the server refuses, and its own user does not exist.
    #[error(
        "the server refuses to run as root and there is no user `{user}` to run it as: \
         adduser --system --group {user}, or run as an ordinary user"
    )]
    NoAccount {
        /// The user that was looked for.
        user: &'static str,
    },

    /// A package is missing and this process cannot install it.
    #[error("{package} is missing and cannot be installed here, because {reason}. As root, run: {command}")]
    CannotInstall {
        /// The Debian package.
        package: &'static str,
        /// What stands in the way.
        reason: &'static str,
        /// The command that a person has to run.
        command: &'static str,
    },

    /// No directory for temporary files is open to the server's user.
    #[error(
        "no directory for temporary files can be used by the server's user (tried {tried}): set TMPDIR to one that can"
    )]
    NoTemporaryDirectory {
        /// The directories that were tried.
        tried: String,
    },

    /// The server's directory or one of its files could not be used.
    #[error("cannot use {}: {source}", .path.display())]
    Files {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A program could not be started or waited for.
    #[error("cannot run `{program}`: {source}")]
    Run {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },

    /// A program ran and failed.
    #[error("`{program}` failed, {status}:\n{output}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it printed.
        output: String,
    },

    /// The server ended while it was starting.
    #[error("the server ended while starting, {status}; the end of its log:\n{log}")]
    ServerExited {
        /// How it ended.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },

    /// The server was still not answering after the time allowed.
    #[error("the server was not ready after {limit:?}; the end of its log:\n{log}")]
    NotReady {
        /// The time that was allowed.
        limit: Duration,
        /// The end of its log.
        log: String,
    },

    /// The server's processes were still there after they were told to end.
    #[error("processes {pids:?} of the server are still running {limit:?} after SIGKILL")]
    StillRunning {
        /// The processes.
        pids: Vec<u32>,
        /// The time that was allowed.
        limit: Duration,
    },

    /// Other processes took every port that was tried.
    #[error("no free loopback port after {tries} tries, the last of them {port}")]
    NoFreePort {
        /// How many ports were tried.
        tries: u32,
        /// The last one.
        port: u16,
    },
}

impl Error {
    pub(crate) fn files(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Files { path, source }
    }

    pub(crate) fn run(program: &(impl AsRef<Path> + ?Sized)) -> impl FnOnce(io::Error) -> Self {
        let program = program.as_ref().display().to_string();
        move |source| Self::Run { program, source }
    }

    pub(crate) fn failed(program: &Path, output: &Output) -> Self {
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Self::Failed { program: program.display().to_string(), status: output.status, output: tail(&text) }
    }
}

/// The last lines of a log: enough to see why, short enough for a test's failure message.
pub(crate) fn tail(text: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
