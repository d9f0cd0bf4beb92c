//! A worker as a separate process.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// More slots than the load ever uses.
const CONCURRENCY: &str = "256";

/// A running worker; killed when dropped.
#[derive(Debug)]
pub(super) struct Worker(Child);

impl Worker {
    /// Starts the command next to this program.
    pub(super) fn start(url: &str) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("orchestrix");
        let child = Command::new(&program)
            .args(["worker", "--concurrency", CONCURRENCY])
            .env("ORCHESTRIX_DATABASE_URL", url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}; `cargo xtask bench` builds it", program.display()))?;
        Ok(Self(child))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
