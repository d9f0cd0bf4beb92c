//! A program with all that it starts: one process group, which is signalled as a whole and outlives nobody's interest.
//!
//! The number of a group may be given away once its leader was waited for. So the leader is only watched, and waited for
//! after the last signal to the group. What leaves the group on purpose (`setsid`) is out of reach.

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

/// A running group. All of it is killed when this is dropped.
pub(super) struct Group {
    leader: Arc<Leader>,
    exited: oneshot::Receiver<()>,
}

struct Leader {
    pid: Pid,
    /// Until it was waited for.
    child: Mutex<Option<Child>>,
}

impl Leader {
    fn signal(&self, signal: Signal) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if child.is_some() {
            // An error says that nobody is left to hear it.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Kills what is left and waits for a leader that has exited.
    fn bury(&self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        child.ok_or_else(|| io::Error::other("somebody else has waited for it"))?.wait()
    }
}

/// The ends of its pipes that are ours.
pub(super) struct Pipes {
    pub(super) stdin: Option<tokio::process::ChildStdin>,
    pub(super) stdout: Option<tokio::process::ChildStdout>,
    pub(super) stderr: Option<tokio::process::ChildStderr>,
}

impl Group {
    pub(super) fn start(mut command: Command) -> io::Result<(Self, Pipes)> {
        let mut child = command.process_group(0).spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pid = Pid::from_child(&child);
        let leader = Arc::new(Leader { pid, child: Mutex::new(Some(child)) });
        let (tell, exited) = oneshot::channel();
        let group = Self { leader: Arc::clone(&leader), exited };
        // A thread, since only this way of waiting leaves the leader unburied.
        let watch = thread::Builder::new().name("command".into()).spawn(move || {
            let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
            if tell.send(()).is_err() {
                let _ = leader.bury();
            }
        });
        if let Err(error) = watch {
            let _ = group.leader.bury();
            return Err(error);
        }
        let pipes = Pipes {
            stdin: stdin.map(tokio::process::ChildStdin::from_std).transpose()?,
            stdout: stdout.map(tokio::process::ChildStdout::from_std).transpose()?,
            stderr: stderr.map(tokio::process::ChildStderr::from_std).transpose()?,
        };
        Ok((group, pipes))
    }

    /// Signals everybody in it.
    pub(super) fn signal(&self, signal: Signal) {
        self.leader.signal(signal);
    }

    /// Waits until the program itself has exited. What it started may still run.
    pub(super) async fn exited(&mut self) {
        if !self.exited.is_terminated() {
            // An error would mean that the thread is gone: then there is nothing to wait for.
            let _ = (&mut self.exited).await;
        }
    }

    /// Kills what is left of it after the program has exited, and says how that did.
    pub(super) fn end(self) -> io::Result<ExitStatus> {
        self.leader.bury()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // From here on the thread buries the leader, unless it has exited already.
        self.exited.close();
        self.leader.signal(Signal::KILL);
        let mut child = self.leader.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(Some(_))) = child.as_mut().map(Child::try_wait) {
            *child = None;
        }
    }
}
