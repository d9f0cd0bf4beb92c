//! `orchestrix completions`: what makes a shell complete commands and flags.

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::{arguments::Cli, failure::Outcome, output::Output};

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix completions bash > /etc/bash_completion.d/orchestrix")]
pub(crate) struct Arguments {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::with_environment(), "orchestrix", &mut script);
    output.raw(&script)?;
    Ok(Outcome::DONE)
}
