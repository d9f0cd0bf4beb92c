//! One command of a longer run, with a heading and its duration.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{crates, interrupt};

/// A command in the root directory of the workspace.
#[derive(Debug)]
pub(crate) struct Step {
    name: &'static str,
    /// The program, or `None` for cargo.
    program: Option<PathBuf>,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Step {
    /// `cargo` with the arguments in `command`.
    pub(crate) fn cargo(name: &'static str, command: &str) -> Self {
        Self::new(name, None, command.split_whitespace())
    }

    /// An example that was built before, by its name and arguments.
    pub(crate) fn example(name: &'static str, command: &str) -> Result<Self> {
        let xtask = env::current_exe().context("cannot find the directory of the examples")?;
        let mut words = command.split_whitespace();
        let program = xtask.with_file_name("examples").join(words.next().unwrap_or_default());
        Ok(Self::new(name, Some(program), words))
    }

    fn new<'a>(name: &'static str, program: Option<PathBuf>, words: impl Iterator<Item = &'a str>) -> Self {
        Self { name, program, arguments: words.map(str::to_owned).collect(), environment: Vec::new() }
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
        let program = self.program.as_ref().map_or("cargo".into(), |path| path.display().to_string());
        let line = format!("{program} {}", self.arguments.join(" "));
        println!("\n==> {}: {line}", self.name);
        let start = Instant::now();
        let status = self
            .program
            .map_or_else(cargo, killed_with_this_process)
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

fn cargo() -> Command {
    killed_with_this_process(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// A program that is killed with this process, where the system supports that.
///
/// The tests' server stops with this process, even on SIGKILL, and tests without it would only fail. Unlike for the
/// servers, a parent-death signal suffices: the main thread starts every step.
fn killed_with_this_process(program: impl AsRef<OsStr>) -> Command {
    if has_parent_death_signal() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--"]).arg(program);
        command
    } else {
        Command::new(program)
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
