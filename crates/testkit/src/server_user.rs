//! The user that a private server runs as.
//!
//! Servers such as PostgreSQL refuse to run as root, but CI and containers usually run as root. As root, each server
//! runs as the user that its package created; otherwise as the current user.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// The owner of a server's directory and processes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerUser {
    /// User and group id to switch to, or `None` to stay the current user.
    ids: Option<(u32, u32)>,
}

impl ServerUser {
    /// The user of this process.
    pub(crate) const CURRENT: Self = Self { ids: None };

    /// The user for a server whose package created `user`.
    pub(crate) fn for_server(user: &'static str) -> Result<Self, Error> {
        if id(&["-u"])? != Some(0) {
            return Ok(Self::CURRENT);
        }
        match (id(&["-u", user])?, id(&["-g", user])?) {
            (Some(uid), Some(gid)) => Ok(Self { ids: Some((uid, gid)) }),
            _ => Err(Error::NoAccount { user }),
        }
    }

    /// Makes `command` run as this user.
    pub(crate) fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        // std also drops root's supplementary groups.
        match self.ids {
            Some((uid, gid)) => command.uid(uid).gid(gid),
            None => command,
        }
    }

    /// Makes this user the owner of `path`.
    pub(crate) fn take_ownership(&self, path: &Path) -> Result<(), Error> {
        match self.ids {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)).map_err(Error::files(path)),
            None => Ok(()),
        }
    }

    /// Whether this user can write to `directory`: root's TMPDIR may be closed to other users.
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
