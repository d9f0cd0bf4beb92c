//! Child processes that run an ignored test of the same binary as their body.
//!
//! Tests of whole processes need a program to run, and a test has one at hand: its own binary. The child exits with
//! its parent if its body calls [`TestProcess::exit_with_parent`] first.

use std::env;
use std::io;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use crate::{Error, process};

/// A process that runs one ignored test of this binary; killed when dropped.
#[derive(Debug)]
pub struct TestProcess {
    child: Child,
}

impl TestProcess {
    /// Starts this binary to run the ignored test with this full name, with additional environment variables.
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

    /// To be called first in the body: the process then exits with its parent, unless it is stopped by a signal at
    /// that time.
    pub fn exit_with_parent() {
        thread::spawn(|| {
            // The parent never writes: a return means that it is gone.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            std::process::exit(0);
        });
    }

    /// Its standard output, once. The caller must read it, or the process blocks on a full pipe.
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

    /// Kills it and waits for its exit.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.child.kill().map_err(Error::run("kill"))?;
        self.child.wait().map(drop).map_err(Error::run("wait"))
    }

    /// Its exit status, if it has exited.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::run("wait"))
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        // Also works if it has exited or is stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
