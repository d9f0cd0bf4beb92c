//! `orchestrix operations`: what is done to many jobs at once, and how far it has come.

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::operation::OperationView;
use orchestrix_core::{OperationId, Timestamp};

use crate::{
    api::{Api, Request},
    failure::Outcome,
    jobs::list,
    output::{Output, pairs, table},
    times,
};

/// Between two looks at an operation.
const PAUSE: Duration = Duration::from_millis(300);

/// Look at operations on many jobs, stop them
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List operations, newest first
    #[command(after_help = "Example:\n  orchestrix operations list")]
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = list::limit())]
        limit: usize,
        /// Go on after this operation, as the previous list said
        #[arg(long, value_name = "ID")]
        cursor: Option<OperationId>,
    },
    /// Show how far an operation has come
    #[command(after_help = "Example:\n  orchestrix operations get 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Get {
        /// The operation
        id: OperationId,
    },
    /// Stop an operation; what it has done stays done
    #[command(after_help = "Example:\n  orchestrix operations abort 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Abort {
        /// The operation
        id: OperationId,
    },
}

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    match command {
        Command::List { limit, cursor } => {
            let list = Request::get("/admin/operations");
            let page = api.gather(&list, cursor.map(|id| id.to_string()), limit).await?;
            let now = Timestamp::now();
            output.page(&page, |operations| {
                let header = ["ID", "ACTION", "STATE", "MATCHED", "CHANGED", "REFUSED", "BEGUN", "BY"];
                table(header, operations.iter().map(|operation| row(operation, now)))
            })?;
            Ok(Outcome::DONE)
        }
        Command::Get { id } => {
            let operation: OperationView = api.call(Request::get(format!("/admin/operations/{id}"))).await?;
            output.item(&operation, || described(&operation))?;
            Ok(Outcome::DONE)
        }
        Command::Abort { id } => {
            // Stopping again is fine.
            let abort = Request::post(format!("/admin/operations/{id}/abort")).repeatable();
            let operation: OperationView = api.call(abort).await?;
            output.item(&operation, || described(&operation))?;
            if matches!(operation.state.as_str(), "done" | "failed") {
                output.note("it was over already: nothing was stopped");
            }
            Ok(Outcome::DONE)
        }
    }
}

/// Waits until an operation is over, with a word now and then about how far it is.
pub(crate) async fn until_over(id: OperationId, api: &Api, output: &Output) -> Result<OperationView> {
    let mut told = 0;
    loop {
        let operation: OperationView = api.call(Request::get(format!("/admin/operations/{id}"))).await?;
        if operation.state != "running" {
            return Ok(operation);
        }
        if operation.matched > told {
            told = operation.matched;
            output.note(&format!("{}: {told} so far", action(&operation)));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Prints an operation; a command that waited for it ends as it did.
pub(crate) fn show(operation: &OperationView, output: &Output) -> Result<Outcome> {
    output.item(operation, || described(operation))?;
    Ok(if matches!(operation.state.as_str(), "failed" | "aborted") { Outcome::FAILED } else { Outcome::DONE })
}

fn row(operation: &OperationView, now: Timestamp) -> [String; 8] {
    [
        operation.operation_id.to_string(),
        action(operation),
        operation.state.clone(),
        operation.matched.to_string(),
        operation.changed.to_string(),
        operation.refused.to_string(),
        times::relative(operation.created_at, now),
        operation.actor.clone(),
    ]
}

fn described(operation: &OperationView) -> String {
    let mut rows = vec![
        ("operation", operation.operation_id.to_string()),
        ("action", action(operation)),
        ("state", operation.state.clone()),
        ("matched", operation.matched.to_string()),
        ("changed", operation.changed.to_string()),
        ("refused", operation.refused.to_string()),
    ];
    rows.extend(operation.error.clone().map(|error| ("error", error)));
    pairs(rows)
}

fn action(operation: &OperationView) -> String {
    let dry = if operation.dry_run { " (dry run)" } else { "" };
    match operation.priority {
        Some(priority) => format!("{} {}{dry}", operation.action, priority.get()),
        None => format!("{}{dry}", operation.action),
    }
}
