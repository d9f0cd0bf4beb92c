//! The confirmation prompt of commands that change many things or delete something.

use std::io::{self, BufRead, IsTerminal};

use anyhow::Result;
use clap::Args;

use crate::error::{CliError, print_stderr};

/// The flags that answer the prompt beforehand.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Confirmation {
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Confirmation {
    /// Asks for confirmation, unless `--yes` was given. Without a terminal `--yes` is required. `preview` says what a
    /// dry run shows: "which jobs", "how many".
    pub(crate) fn require(self, question: &str, preview: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            let text = format!("{question} Add --yes to confirm, or --dry-run to see {preview}.");
            return Err(CliError::Usage(text).into());
        }
        prompt(question)
    }

    /// Asks for confirmation at a terminal only: a script that names every item has already decided.
    pub(crate) fn require_at_terminal(self, question: &str) -> Result<()> {
        if self.yes || !io::stdin().is_terminal() {
            return Ok(());
        }
        prompt(question)
    }
}

fn prompt(question: &str) -> Result<()> {
    print_stderr(&format!("{question} Continue? [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::Failed("not confirmed: nothing was changed".into()).into()),
    }
}
