//! A server's directory, and the keeper that outlives its owner.
//!
//! Everything that a server needs lives in one fresh directory: its data, its log, the pid of its process. The
//! invariant: when the owner's process is gone, so are the server and the directory, at the latest seconds later.
//! Parent-death signals cannot promise that, because they are bound to the thread that forked, and tests run on
//! threads that come and go.

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
use crate::account::Account;

/// Reads the end of the owner's pipe, then stops the server and removes the directory.
const KEEPER: &str = include_str!("keeper.sh");

/// Records its own pid, then becomes the program: there is no instant at which the program runs unrecorded.
const RECORDED: &str = r#"echo $$ >"$0" && exec "$@""#;

/// Where a process records its pid; the keeper takes it away so that nothing more can start.
const RUNNING: &str = "running";

/// A fresh directory for one server.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    account: Account,
    keeper: Child,
}

impl Scratch {
    /// Makes the directory, named after `kind`, and starts its keeper, which ends a server with `quit_signal`.
    pub(crate) fn create(kind: &str, account: Account, quit_signal: &str) -> Result<Self, Error> {
        let path = temporary_directory(account)?.join(format!("orchestrix-{kind}-{:016x}", random()));
        for directory in [&path, &path.join(RUNNING)] {
            DirBuilder::new().mode(0o700).create(directory).map_err(Error::files(directory))?;
            account.own(directory)?;
        }

        // From a file rather than an argument, so that a list of processes shows its name and not its text.
        let script = path.join("keeper.sh");
        fs::write(&script, KEEPER).map_err(Error::files(&script))?;
        let mut keeper = Command::new("/bin/sh");
        keeper
            .arg(script)
            .arg(&path)
            .arg(quit_signal)
            .current_dir("/")
            // A group of its own, so that neither Ctrl-C nor a test runner that kills a test's group reaches it.
            .process_group(0)
            .stdin(Stdio::piped())
            // A runner that waits for the end of a test's output must not wait for the keeper.
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let keeper = account.apply(&mut keeper).spawn().map_err(Error::run("/bin/sh"))?;
        Ok(Self { path, account, keeper })
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A command that runs in the directory, as its account, out of reach of Ctrl-C, and known to the keeper.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", RECORDED])
            .arg(self.pid_file())
            .arg(program)
            .current_dir(&self.path)
            .env("HOME", &self.path)
            .process_group(0)
            .stdin(Stdio::null());
        self.account.apply(&mut command);
        command
    }

    /// Tells the keeper that the last command ended: its pid may soon be somebody else's.
    pub(crate) fn ended(&self) -> Result<(), Error> {
        let path = self.pid_file();
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Files { path, source }),
            _ => Ok(()),
        }
    }

    /// Opens the log, to append to it.
    pub(crate) fn log(&self) -> Result<File, Error> {
        let path = self.log_file();
        File::options().create(true).append(true).open(&path).map_err(Error::files(&path))
    }

    /// What was logged since the log was `from` bytes long.
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

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // Waited for, so that the directory is gone when the owner goes on; it can only fail if it is gone already.
        let _ = self.keeper.wait();
    }
}

fn temporary_directory(account: Account) -> Result<PathBuf, Error> {
    let candidates = [env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    match candidates.iter().find(|candidate| account.can_use(candidate)) {
        Some(directory) => Ok(directory.clone()),
        None => {
            Err(Error::NoTemporaryDirectory { tried: candidates.map(|path| path.display().to_string()).join(", ") })
        }
    }
}

/// A number that two processes will not share; std seeds its hashers from the system's randomness.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
