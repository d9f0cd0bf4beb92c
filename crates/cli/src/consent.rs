//! Asking before something is done to many jobs at once.

use std::io::{self, BufRead, IsTerminal};

use anyhow::Result;
use clap::Args;

use crate::failure::{Failure, say};

/// Whether to go ahead.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Consent {
    /// Go ahead without asking
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Only show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Consent {
    /// Asks, unless the answer was given beforehand; an error unless it is yes. `shown` is what a dry run shows: which, or how many.
    pub(crate) fn ask(self, question: &str, shown: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            let text = format!("{question} Add --yes to go ahead, or --dry-run to see {shown}.");
            return Err(Failure::Usage(text).into());
        }
        prompt(question)
    }

    /// Asks, if somebody is there to answer: a script that names one by one what it means has said so.
    pub(crate) fn confirm(self, question: &str) -> Result<()> {
        if self.yes || !io::stdin().is_terminal() {
            return Ok(());
        }
        prompt(question)
    }
}

fn prompt(question: &str) -> Result<()> {
    say(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Failed("nothing was changed".into()).into()),
    }
}
