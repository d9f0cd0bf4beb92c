//! A program and everything it starts, as one process group that is signalled as a whole.
//!
//! The kernel may reuse a group id once the group leader was reaped. So a thread only observes the leader's exit
//! (`WNOWAIT`), and the leader is reaped after the last signal to the group. A process that leaves the group on
//! purpose (`setsid`) is out of reach.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};
use tokio::sync::oneshot;

/// A running process group. Dropping it kills the whole group.
pub(super) struct ProcessGroup {
    leader: Arc<Leader>,
    exited: oneshot::Receiver<()>,
}

struct Leader {
    pid: Pid,
    /// `None` once it was reaped.
    child: Mutex<Option<Child>>,
}

impl Leader {
    fn signal(&self, signal: Signal) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if child.is_some() {
            // Fails if no process of the group is left.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Kills the rest of the group and reaps the leader, which has exited.
    fn reap(&self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        child.ok_or_else(|| io::Error::other("the process was already reaped"))?.wait()
    }
}

/// The worker's ends of the program's pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<tokio::process::ChildStdin>,
    pub(super) stdout: Option<tokio::process::ChildStdout>,
    pub(super) stderr: Option<tokio::process::ChildStderr>,
}

impl ProcessGroup {
    pub(super) fn spawn(mut command: Command) -> io::Result<(Self, Pipes)> {
        let mut child = command.process_group(0).spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pid = Pid::from_child(&child);
        let leader = Arc::new(Leader { pid, child: Mutex::new(Some(child)) });
        let (exit_sender, exited) = oneshot::channel();
        let group = Self { leader: Arc::clone(&leader), exited };
        // On a thread, because only a blocking `waitid` can observe the exit without reaping.
        let watcher = thread::Builder::new().name("command".into()).spawn(move || {
            let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
            if exit_sender.send(()).is_err() {
                let _ = leader.reap();
            }
        });
        if let Err(error) = watcher {
            let _ = group.leader.reap();
            return Err(error);
        }
        let pipes = Pipes {
            stdin: stdin.map(tokio::process::ChildStdin::from_std).transpose()?,
            stdout: stdout.map(tokio::process::ChildStdout::from_std).transpose()?,
            stderr: stderr.map(tokio::process::ChildStderr::from_std).transpose()?,
        };
        Ok((group, pipes))
    }

    /// Sends a signal to every process of the group.
    pub(super) fn signal(&self, signal: Signal) {
        self.leader.signal(signal);
    }

    /// Waits until the program itself has exited. Processes that it started may still run.
    pub(super) async fn wait_exit(&mut self) {
        if !self.exited.is_terminated() {
            // Fails only if the watcher thread is gone; then there is nothing to wait for.
            let _ = (&mut self.exited).await;
        }
    }

    /// Kills what is left of the group after the program has exited. Returns the program's exit status.
    pub(super) fn reap(self) -> io::Result<ExitStatus> {
        self.leader.reap()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // From here on the watcher thread reaps the leader, unless the leader has already exited.
        self.exited.close();
        self.leader.signal(Signal::KILL);
        let mut child = self.leader.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(Some(_))) = child.as_mut().map(Child::try_wait) {
            *child = None;
        }
    }
}
