//! The directory of a private server, and the cleanup process that outlives its owner.
//!
//! Everything that a server needs is in one fresh directory: data, log, pid. The invariant: when the owner's process
//! is gone, the server and the directory are gone within seconds. Parent-death signals cannot guarantee that: they
//! are bound to the forking thread, and test threads come and go.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Error;
use crate::server_user::ServerUser;

/// Waits for the end of the owner's pipe, then stops the server and removes the directory.
const CLEANUP: &str = include_str!("cleanup.sh");

/// Writes its own pid and then execs the program, so the program never runs without a recorded pid.
const RECORD_PID_AND_EXEC: &str = r#"echo $$ >"$0" && exec "$@""#;

/// The directory of the pid file. The cleanup process renames it, so that nothing more can start.
const RUNNING: &str = "running";

/// A fresh directory for one server.
#[derive(Debug)]
pub(crate) struct ServerDir {
    path: PathBuf,
    user: ServerUser,
    cleanup: Child,
}

impl ServerDir {
    /// Creates the directory on a disk, named after `kind`, and starts its cleanup process, which stops a server with
    /// `quit_signal`.
    pub(crate) fn create(kind: &str, user: ServerUser, quit_signal: &str) -> Result<Self, Error> {
        Self::create_in(&temporary_directory(user)?, kind, user, quit_signal)
    }

    /// The same in a directory of the caller's choice.
    pub(crate) fn create_in(parent: &Path, kind: &str, user: ServerUser, quit_signal: &str) -> Result<Self, Error> {
        let path = parent.join(format!("orchestrix-{kind}-{:016x}", random()));
        for directory in [&path, &path.join(RUNNING)] {
            DirBuilder::new().mode(0o700).create(directory).map_err(Error::files(directory))?;
            user.take_ownership(directory)?;
        }

        // A file, so that the process list shows a name instead of the script.
        let script = path.join("cleanup.sh");
        fs::write(&script, CLEANUP).map_err(Error::files(&script))?;
        let mut cleanup = Command::new("/bin/sh");
        cleanup
            .arg(script)
            .arg(&path)
            .arg(quit_signal)
            .current_dir("/")
            // Its own process group, out of reach of Ctrl-C and of test runners that kill a test's group.
            .process_group(0)
            .stdin(Stdio::piped())
            // Test runners wait for the end of a test's output, and must not wait for this process.
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let cleanup = user.apply(&mut cleanup).spawn().map_err(Error::run("/bin/sh"))?;
        Ok(Self { path, user, cleanup })
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A command that runs in the directory as the server's user. Ctrl-C does not reach it; the cleanup process does.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", RECORD_PID_AND_EXEC])
            .arg(self.pid_file())
            .arg(program)
            .current_dir(&self.path)
            .env("HOME", &self.path)
            .process_group(0)
            .stdin(Stdio::null());
        self.user.apply(&mut command);
        command
    }

    /// Removes the pid file after the last command has exited: its pid may be reused.
    pub(crate) fn clear_pid(&self) -> Result<(), Error> {
        let path = self.pid_file();
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Files { path, source }),
            _ => Ok(()),
        }
    }

    /// Opens the log for appending.
    pub(crate) fn log(&self) -> Result<File, Error> {
        let path = self.log_file();
        File::options().create(true).append(true).open(&path).map_err(Error::files(&path))
    }

    /// The log from byte `from` on.
    pub(crate) fn log_since(&self, from: u64) -> Result<String, Error> {
        let path = self.log_file();
        let log = fs::read(&path).map_err(Error::files(&path))?;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(log.len());
        Ok(String::from_utf8_lossy(&log[from..]).into_owned())
    }

    fn log_file(&self) -> PathBuf {
        self.path.join("log")
    }

    fn pid_file(&self) -> PathBuf {
        self.path.join(RUNNING).join("pid")
    }
}

impl Drop for ServerDir {
    fn drop(&mut self) {
        drop(self.cleanup.stdin.take());
        // Wait, so that the directory is gone on return. It fails only if the process is already gone.
        let _ = self.cleanup.wait();
    }
}

fn temporary_directory(user: ServerUser) -> Result<PathBuf, Error> {
    let candidates = [env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    match candidates.iter().find(|candidate| user.can_use(candidate)) {
        Some(directory) => Ok(directory.clone()),
        None => {
            Err(Error::NoTemporaryDirectory { tried: candidates.map(|path| path.display().to_string()).join(", ") })
        }
    }
}

/// A random number; std seeds its hashers from the system's randomness.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
