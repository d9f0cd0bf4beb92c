//! `orchestrix migrate`: applies pending migrations, or counts them.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::{
    arguments::Global,
    database::{Database, OpenDatabase},
    error::{CliError, ExitStatus},
    output::Output,
};

/// Apply pending migrations to the database
#[derive(Debug, Args)]
#[command(after_help = "\
Concurrent runs wait for each other. With --check the exit code is 1 if migrations are pending.

Example:
  orchestrix migrate --database postgres://jobs@db.internal/jobs --check")]
pub(crate) struct Arguments {
    /// Only count the pending migrations
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MigrateOutput {
    pending: usize,
    applied: usize,
}

pub(crate) async fn run(arguments: &Arguments, global: &Global, output: &Output) -> Result<ExitStatus> {
    global.reject_server("migrate")?;
    let database = Database::required(global)?;
    let pending = database.pending_migrations().await?;
    if arguments.check {
        let status = if pending == 0 { ExitStatus::SUCCESS } else { ExitStatus::FAILED };
        output.item(&MigrateOutput { pending, applied: 0 }, || match pending {
            0 => format!("{database} is up to date\n"),
            n => format!("{database} has {} pending: run `orchestrix migrate`\n", count(n)),
        })?;
        return Ok(status);
    }
    if global.no_migrate {
        return Err(CliError::Usage(
            "migrate and --no-migrate are mutually exclusive; use --check to only count pending migrations".into(),
        )
        .into());
    }
    if pending > 0 {
        OpenDatabase::open(Database::required(global)?, global, true).await?.close().await;
    }
    output.item(&MigrateOutput { pending: 0, applied: pending }, || match pending {
        0 => format!("{database} is up to date\n"),
        n => format!("{database} is up to date: {} applied\n", count(n)),
    })?;
    Ok(ExitStatus::SUCCESS)
}

fn count(migrations: usize) -> String {
    if migrations == 1 { "1 migration".into() } else { format!("{migrations} migrations") }
}
