//! Processes of a test's own: the test binary started anew, to run one of its ignored tests as the body of the process.
//!
//! What happens to processes can only be shown with processes, and a test has one program at hand: its own. A twin ends
//! with whoever started it, if its body says [`Twin::end_with_parent`] first.

use std::env;
use std::io;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use crate::{Error, process};

/// A process that runs one ignored test of this binary; killed when dropped.
#[derive(Debug)]
pub struct Twin {
    child: Child,
}

impl Twin {
    /// Starts this binary anew to run the ignored test of this full name, with more environment.
    pub fn start<'a>(test: &str, environment: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Error> {
        let program = env::current_exe().map_err(Error::run("current_exe"))?;
        let child = Command::new(&program)
            .args(["--exact", test, "--ignored", "--nocapture"])
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(Error::run(&program))?;
        Ok(Self { child })
    }

    /// To be called first in the body: the process ends when the one that started it does, unless it is stopped just then.
    pub fn end_with_parent() {
        thread::spawn(|| {
            // Nobody writes: whatever this answers, the parent is gone.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            std::process::exit(0);
        });
    }

    /// What it writes, once. It must be read, or it waits when it has written much.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal such as `STOP`.
    pub fn signal(&self, name: &str) -> Result<(), Error> {
        process::signal(name, &[self.pid()])
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.child.kill().map_err(Error::run("kill"))?;
        self.child.wait().map(drop).map_err(Error::run("wait"))
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::run("wait"))
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        // It may have ended already. A stopped one is killed like any other.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
