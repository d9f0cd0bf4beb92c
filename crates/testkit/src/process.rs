//! Signals and waiting for processes. Signals go through the shell's `kill`, which needs no `unsafe` code.

use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// How often a wait polls. There is no event for the exit of a process that is not a child.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Sends a signal such as `INT`. A process that is already gone is not an error.
pub(crate) fn signal(name: &str, pids: &[u32]) -> Result<(), Error> {
    Command::new("/bin/sh")
        .args(["-c", r#"kill -s "$0" "$@""#, name])
        .args(pids.iter().map(u32::to_string))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(Error::run("kill"))?;
    Ok(())
}

/// Waits for a child's exit, up to `limit`; returns `None` if it still runs.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>, Error> {
    let deadline = Instant::now() + limit;
    loop {
        let status = child.try_wait().map_err(Error::run("wait"))?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until none of `pids` is running.
pub(crate) fn wait_gone(pids: &[u32], limit: Duration) -> Result<(), Error> {
    let deadline = Instant::now() + limit;
    loop {
        let left: Vec<u32> = pids.iter().copied().filter(|&pid| is_running(pid)).collect();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Error::StillRunning { pids: left, limit });
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The children of `parent`; empty on systems without `/proc`.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| stat(pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

/// Whether `pid` is running. A zombie is not: in a container an orphan may never be reaped.
fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

struct Stat {
    state: char,
    parent: u32,
}

fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state parent …`; the name may contain spaces and parentheses.
    let (_, after_name) = line.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    Some(Stat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}
