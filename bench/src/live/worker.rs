//! A worker as a process of its own.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Jobs that run at once: more than the load ever has.
const CONCURRENCY: &str = "256";

/// A worker that runs; killed when dropped.
#[derive(Debug)]
pub(super) struct Worker(Child);

impl Worker {
    /// Starts the command that lies beside this program.
    pub(super) fn start(url: &str) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("orchestrix");
        let child = Command::new(&program)
            .args(["worker", "--concurrency", CONCURRENCY])
            .env("ORCHESTRIX_DATABASE_URL", url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}; cargo xtask bench builds it", program.display()))?;
        Ok(Self(child))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
