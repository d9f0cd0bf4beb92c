//! The errors of private servers. Each message says what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::time::Duration;

use crate::installation::{OLDEST_POSTGRES, PG_BIN};

/// A private server could not be found, installed, started or queried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No PostgreSQL server is installed.
    #[error(
        "PostgreSQL {OLDEST_POSTGRES} or later is needed: apt-get install postgresql, \
         or set {PG_BIN} to the directory with its `postgres`, `initdb` and `psql`"
    )]
    PostgresMissing,

    /// PgBouncer is not installed.
    #[error("PgBouncer is needed for the tests behind a pooler: apt-get install pgbouncer")]
    PgBouncerMissing,

    /// Schemathesis is not installed, or not in the pinned version.
    #[error("schemathesis is needed for the contract tests of the API: `cargo xtask test` installs it")]
    SchemathesisMissing,

    /// The directory named by `PG_BIN` lacks one of the programs.
    #[error("{PG_BIN} is {}, which contains no `{program}`: set it to the bin directory of a PostgreSQL server", .bin.display())]
    PostgresIncomplete {
        /// The directory that was searched.
        bin: PathBuf,
        /// The first program that it lacks.
        program: &'static str,
    },

    /// The newest PostgreSQL on the machine is too old.
    #[error(
        "PostgreSQL {OLDEST_POSTGRES} or later is needed, but {} has version {found}: \
         install a newer one, or set {PG_BIN} to its bin directory", .bin.display()
    )]
    PostgresTooOld {
        /// Its bin directory.
        bin: PathBuf,
        /// Its major version.
        found: u32,
    },

    /// The process runs as root, which the server refuses, and the user to run it as does not exist.
    #[error(
        "the server refuses to run as root and there is no user `{user}` to run it as: \
         adduser --system --group {user}, or run as an ordinary user"
    )]
    NoAccount {
        /// The missing user.
        user: &'static str,
    },

    /// A package is missing and this process cannot install it.
    #[error("{package} is missing and cannot be installed here, because {reason}. As root, run: {command}")]
    CannotInstall {
        /// The Debian package.
        package: &'static str,
        /// Why it cannot be installed.
        reason: &'static str,
        /// The command to run by hand.
        command: &'static str,
    },

    /// The server's user can write to no directory for temporary files.
    #[error(
        "the server's user can write to no directory for temporary files (tried {tried}): set TMPDIR to one that it can"
    )]
    NoTemporaryDirectory {
        /// The directories that were tried.
        tried: String,
    },

    /// The server's directory or one of its files is not accessible.
    #[error("cannot access {}: {source}", .path.display())]
    Files {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// A program could not be started or waited for.
    #[error("cannot run `{program}`: {source}")]
    Run {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },

    /// A program ran and failed.
    #[error("`{program}` failed, {status}:\n{output}")]
    Failed {
        /// The program.
        program: String,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its output.
        output: String,
    },

    /// The server exited during its start.
    #[error("the server exited during its start, {status}; the end of its log:\n{log}")]
    ServerExited {
        /// Its exit status.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },

    /// The server did not answer within the time limit.
    #[error("the server was not ready after {limit:?}; the end of its log:\n{log}")]
    NotReady {
        /// The time limit.
        limit: Duration,
        /// The end of its log.
        log: String,
    },

    /// Processes of the server survived SIGKILL.
    #[error("processes {pids:?} of the server are still running {limit:?} after SIGKILL")]
    StillRunning {
        /// Their pids.
        pids: Vec<u32>,
        /// How long they were waited for.
        limit: Duration,
    },

    /// Every port that was tried was in use.
    #[error("no free loopback port after {tries} tries, the last of them {port}")]
    NoFreePort {
        /// How many ports were tried.
        tries: u32,
        /// The last port.
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

/// The last lines of a log: enough to see the cause, short enough for a test's failure message.
pub(crate) fn tail(text: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
