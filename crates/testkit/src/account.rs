//! The user that a private server runs as.
//!
//! Servers such as PostgreSQL refuse to run as root, and continuous integration and containers usually are root. So
//! root runs each server as the user that its package created; anybody else runs it as themselves.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// Who owns a server's directory and processes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    /// User and group to become, or `None` to stay as we are.
    ids: Option<(u32, u32)>,
}

impl Account {
    /// The account for a server whose package created `user`.
    pub(crate) fn for_server(user: &'static str) -> Result<Self, Error> {
        if id(&["-u"])? != Some(0) {
            return Ok(Self { ids: None });
        }
        match (id(&["-u", user])?, id(&["-g", user])?) {
            (Some(uid), Some(gid)) => Ok(Self { ids: Some((uid, gid)) }),
            _ => Err(Error::NoAccount { user }),
        }
    }

    /// Makes `command` run as this account.
    pub(crate) fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        // std also drops root's supplementary groups when it changes the user.
        match self.ids {
            Some((uid, gid)) => command.uid(uid).gid(gid),
            None => command,
        }
    }

    /// Hands `path` over to this account.
    pub(crate) fn own(&self, path: &Path) -> Result<(), Error> {
        match self.ids {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)).map_err(Error::files(path)),
            None => Ok(()),
        }
    }

    /// Whether this account can work below `directory`: root's own TMPDIR may be closed to everybody else.
    pub(crate) fn can_use(&self, directory: &Path) -> bool {
        let mut test = Command::new("/bin/sh");
        test.args(["-c", r#"test -w "$0" && test -x "$0""#]).arg(directory).current_dir("/").stdin(Stdio::null());
        self.apply(&mut test).status().is_ok_and(|status| status.success())
    }
}

/// Whether this process is root.
pub(crate) fn is_root() -> Result<bool, Error> {
    Ok(id(&["-u"])? == Some(0))
}

fn id(arguments: &[&str]) -> Result<Option<u32>, Error> {
    let output = Command::new("id").args(arguments).output().map_err(Error::run("id"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}
