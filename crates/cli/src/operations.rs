//! `orchestrix operations`: bulk operations and their progress.

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::operation::OperationView;
use orchestrix_core::{OperationId, Timestamp};

use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    jobs::list,
    output::{Output, pairs, table},
    times,
};

/// The time between two polls of a running operation.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Show and abort bulk operations
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List operations, newest first
    #[command(after_help = "Example:\n  orchestrix operations list")]
    List {
        /// List at most this many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = list::limit())]
        limit: usize,
        /// Continue after this operation: the cursor of the previous list
        #[arg(long, value_name = "ID")]
        cursor: Option<OperationId>,
    },
    /// Show the progress of an operation
    #[command(after_help = "Example:\n  orchestrix operations get 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Get {
        /// The operation's id
        id: OperationId,
    },
    /// Abort an operation; jobs that it has changed stay changed
    #[command(after_help = "Example:\n  orchestrix operations abort 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Abort {
        /// The operation's id
        id: OperationId,
    },
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    match command {
        Command::List { limit, cursor } => {
            let list = Request::get("/admin/operations");
            let page = api.collect_pages(&list, cursor.map(|id| id.to_string()), limit).await?;
            let now = Timestamp::now();
            output.page(&page, |operations| {
                let header = ["ID", "ACTION", "STATE", "MATCHED", "CHANGED", "REFUSED", "BEGUN", "BY"];
                table(header, operations.iter().map(|operation| row(operation, now)))
            })?;
            Ok(ExitStatus::SUCCESS)
        }
        Command::Get { id } => {
            let operation: OperationView = api.call(Request::get(format!("/admin/operations/{id}"))).await?;
            output.item(&operation, || describe(&operation))?;
            Ok(ExitStatus::SUCCESS)
        }
        Command::Abort { id } => {
            // Aborting twice is harmless.
            let abort = Request::post(format!("/admin/operations/{id}/abort")).idempotent();
            let operation: OperationView = api.call(abort).await?;
            output.item(&operation, || describe(&operation))?;
            if matches!(operation.state.as_str(), "done" | "failed") {
                output.note("the operation had already ended: nothing was aborted");
            }
            Ok(ExitStatus::SUCCESS)
        }
    }
}

/// Waits until an operation ends, and prints its progress.
pub(crate) async fn wait_until_ended(id: OperationId, api: &ApiClient, output: &Output) -> Result<OperationView> {
    let mut printed = 0;
    loop {
        let operation: OperationView = api.call(Request::get(format!("/admin/operations/{id}"))).await?;
        if operation.state != "running" {
            return Ok(operation);
        }
        if operation.matched > printed {
            printed = operation.matched;
            output.note(&format!("{}: {printed} so far", action(&operation)));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Prints an operation. The exit code is 1 if it failed or was aborted.
pub(crate) fn print(operation: &OperationView, output: &Output) -> Result<ExitStatus> {
    output.item(operation, || describe(operation))?;
    Ok(if matches!(operation.state.as_str(), "failed" | "aborted") { ExitStatus::FAILED } else { ExitStatus::SUCCESS })
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

fn describe(operation: &OperationView) -> String {
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
