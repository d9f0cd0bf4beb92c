//! One cargo command of a longer run, with a heading and its duration.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{crates, interrupt};

/// A cargo command in the root directory of the workspace.
#[derive(Debug)]
pub(crate) struct Step {
    name: &'static str,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Step {
    /// `cargo` with the arguments in `command`.
    pub(crate) fn cargo(name: &'static str, command: &str) -> Self {
        Self { name, arguments: command.split_whitespace().map(str::to_owned).collect(), environment: Vec::new() }
    }

    /// Adds arguments.
    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(arguments);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Runs the command with its output visible; a failure is an error.
    pub(crate) fn run(self) -> Result<()> {
        interrupt::check()?;
        let line = format!("cargo {}", self.arguments.join(" "));
        println!("\n==> {}: {line}", self.name);
        let start = Instant::now();
        let status = cargo()
            .args(&self.arguments)
            .envs(self.environment)
            .current_dir(crates::root())
            .status()
            .with_context(|| format!("cannot run `{line}`"))?;
        interrupt::check()?;
        let seconds = start.elapsed().as_secs_f64();
        if !status.success() {
            bail!("{} failed after {seconds:.1} s, {status}: {line}", self.name);
        }
        println!("<== {}: ok, {seconds:.1} s", self.name);
        Ok(())
    }
}

/// A cargo that is killed with this process, where the system supports that.
///
/// The tests' server stops with this process, even on SIGKILL, and tests without it would only fail. Unlike for the
/// servers, a parent-death signal suffices: the main thread starts every step.
fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    if has_parent_death_signal() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(cargo);
        command
    } else {
        Command::new(cargo)
    }
}

fn has_parent_death_signal() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--", "true"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// Whether a cargo command such as `nextest --version` succeeds; its output is hidden.
pub(crate) fn succeeds(command: &str) -> bool {
    cargo()
        .args(command.split_whitespace())
        .current_dir(crates::root())
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}
