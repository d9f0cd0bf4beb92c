//! `orchestrix jobs bulk`: an action on all jobs that match, carried out by the leader.

use anyhow::Result;
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orchestrix_api::admin::{
    filter::JobFilterRequest,
    operation::{BulkRequest, BulkResponse, OperationView},
};
use orchestrix_core::{JobState, Priority};
use serde_json::Value;

use crate::{
    api::{ApiClient, ApiError, Request},
    confirmation::Confirmation,
    error::{CliError, ExitStatus},
    filter::{self, Filter},
    job_states::count_jobs,
    operations::{self, wait_until_ended},
    output::Output,
};

/// Retry, cancel or re-prioritise any number of jobs, in an operation that the leader carries out
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  orchestrix jobs bulk cancel --queue email --dry-run
  orchestrix jobs bulk retry --state dead --from 24h --yes
  orchestrix jobs bulk priority --priority 10 --tag billing --yes

Jobs that are enqueued later are not affected. To abort it: orchestrix operations abort ID.

{}", filter::ENV_HELP))]
pub(crate) struct Arguments {
    /// The action: retry dead and cancelled jobs, cancel unfinished ones, or set the priority of unfinished ones
    #[arg(value_name = "ACTION", value_parser = actions())]
    action: String,

    /// The new priority for the action priority: -1000 to 1000, higher first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i64).try_map(Priority::new))]
    #[arg(required_if_eq("action", "priority"))]
    priority: Option<Priority>,

    /// Only jobs in these states
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = filter::state_parser())]
    #[arg(env = "ORCHESTRIX_FILTER_STATE", hide_env = true, help_heading = "Filters")]
    states: Vec<JobState>,

    #[command(flatten)]
    filter: Filter,

    /// Select all jobs
    #[arg(long, conflicts_with_all = ["filter", "states"])]
    all: bool,

    /// Do not wait until the operation has ended
    #[arg(long)]
    detach: bool,

    #[command(flatten)]
    confirmation: Confirmation,
}

fn actions() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(["retry", "cancel", "priority"])
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let Arguments { action, priority, states, filter, all, detach, confirmation } = arguments;
    if !all && states.is_empty() && !filter.is_set() {
        return Err(CliError::Usage("no jobs selected: give a filter such as --queue, or --all".into()).into());
    }
    if action != "priority" && priority.is_some() {
        return Err(CliError::Usage("--priority requires the action priority".into()).into());
    }
    let filter: Option<JobFilterRequest> = (!all).then(|| filter.in_states(states));
    let request = |dry_run| BulkRequest {
        action: action.clone(),
        priority: *priority,
        filter: filter.clone(),
        all: *all,
        dry_run,
    };
    if !detach || !confirmation.yes {
        require_leader(api).await?;
    }
    if confirmation.dry_run || !confirmation.yes {
        let preview = run_operation(&request(true), api, output).await?;
        if confirmation.dry_run || preview.state != "done" {
            return operations::print(&preview, output);
        }
        let n = usize::try_from(preview.matched).unwrap_or(usize::MAX);
        let change = match action.as_str() {
            "retry" => "retried",
            "cancel" => "cancelled",
            _ => "re-prioritised",
        };
        confirmation.require(&format!("{} would be {change}.", count_jobs(n)), "how many")?;
    }
    if *detach {
        let begun: BulkResponse = api.call(Request::post("/admin/jobs/bulk").json(&request(false))?).await?;
        let operation: OperationView =
            api.call(Request::get(format!("/admin/operations/{}", begun.operation_id))).await?;
        return operations::print(&operation, output);
    }
    operations::print(&run_operation(&request(false), api, output).await?, output)
}

// Starts an operation and waits for its end.
async fn run_operation(request: &BulkRequest, api: &ApiClient, output: &Output) -> Result<OperationView> {
    let begun: BulkResponse = api.call(Request::post("/admin/jobs/bulk").json(request)?).await?;
    wait_until_ended(begun.operation_id, api, output).await
}

// Fails early if there is no leader, because the operation would only wait. Every key may read `/readyz`; if a proxy
// rejects the request, the next request reports the error.
async fn require_leader(api: &ApiClient) -> Result<()> {
    let ready: Value = match api.call(Request::get("/readyz")).await {
        Ok(ready) => ready,
        Err(ApiError::Rejected(_) | ApiError::InvalidResponse { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match ready.pointer("/components/coordinator/status").and_then(Value::as_str) {
        Some("degraded") => {
            let text =
                "there is no leader to carry out the operation: start a server or a worker, or add --detach --yes";
            Err(CliError::Failed(text.into()).into())
        }
        _ => Ok(()),
    }
}
