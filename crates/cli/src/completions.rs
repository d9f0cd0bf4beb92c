//! `orchestrix completions`: completion scripts for shells.

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::{arguments::Cli, error::ExitStatus, output::Output};

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix completions bash > /etc/bash_completion.d/orchestrix")]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<ExitStatus> {
    // Into memory first, because the generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::with_environment(), "orchestrix", &mut script);
    output.raw(&script)?;
    Ok(ExitStatus::SUCCESS)
}
