//! Developer commands of Orchestrix, run as `cargo xtask …`: one file per command.
//!
//! They need nothing but Rust. Other tools are installed where possible; otherwise the error names them. The servers
//! they start are private, and stop with the command.

mod bench;
mod chaos;
mod crates;
mod help;
mod interrupt;
mod mutants;
#[cfg(test)]
mod prose;
mod step;
mod test;
mod tools;

use std::env;
use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    match run(env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Vec<String>) -> Result<()> {
    interrupt::watch()?;
    if arguments.is_empty() {
        arguments.push("help".into());
    }
    let command = arguments.remove(0);
    match command.as_str() {
        "test" => test::run(arguments),
        "bench" => bench::run(arguments),
        "mutants" => mutants::run(&arguments),
        "chaos" => chaos::run(&arguments),
        "help" | "--help" | "-h" => help::run(),
        other => bail!("unknown command `{other}`: the commands are test, bench, mutants, chaos, help"),
    }
}
