//! `orchestrix migrate`: brings the schema up to date, or says how far behind it is.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::{
    arguments::Global,
    database::{Database, Opened},
    failure::{Failure, Outcome},
    output::Output,
};

/// Bring the database's schema up to date
#[derive(Debug, Args)]
#[command(after_help = "\
Waits for its turn where several start at once. With --check the exit code is 1 if any are pending.

Example:
  orchestrix migrate --database postgres://jobs@db.internal/jobs --check")]
pub(crate) struct Arguments {
    /// Only say how many migrations are pending
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Migrated {
    pending: usize,
    applied: usize,
}

pub(crate) async fn run(arguments: &Arguments, global: &Global, output: &Output) -> Result<Outcome> {
    global.no_server("migrate")?;
    let database = Database::alone(global)?;
    let pending = database.pending_migrations().await?;
    if arguments.check {
        let outcome = if pending == 0 { Outcome::DONE } else { Outcome::FAILED };
        output.item(&Migrated { pending, applied: 0 }, || match pending {
            0 => format!("{database} is up to date\n"),
            n => format!("{database} lacks {}: run `orchestrix migrate`\n", count(n)),
        })?;
        return Ok(outcome);
    }
    if global.no_migrate {
        return Err(Failure::Usage("migrate and --no-migrate exclude each other; --check only looks".into()).into());
    }
    if pending > 0 {
        Opened::of(Database::alone(global)?, global, true).await?.close().await;
    }
    output.item(&Migrated { pending: 0, applied: pending }, || match pending {
        0 => format!("{database} is up to date\n"),
        n => format!("{database} is up to date: {} applied\n", count(n)),
    })?;
    Ok(Outcome::DONE)
}

fn count(migrations: usize) -> String {
    if migrations == 1 { "1 migration".into() } else { format!("{migrations} migrations") }
}
