//! `orchestrix jobs bulk`: one action on whatever matches, worked off by the leader however many jobs that is.

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
    api::{Api, ApiError, Request},
    consent::Consent,
    each::jobs,
    failure::{Failure, Outcome},
    filter::{self, Filter},
    operations::{show, until_over},
    output::Output,
};

/// Retry, cancel or re-prioritise all jobs that match, however many, as an operation that the leader works off
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  orchestrix jobs bulk cancel --queue email --dry-run
  orchestrix jobs bulk retry --state dead --from 24h --yes
  orchestrix jobs bulk priority --priority 10 --tag billing --yes

Jobs that are recorded later are left alone. To stop it: orchestrix operations abort ID.

{}", filter::VARIABLES))]
pub(crate) struct Arguments {
    /// What to do: retry dead and cancelled jobs, cancel unfinished ones, or give unfinished ones a priority
    #[arg(value_name = "ACTION", value_parser = actions())]
    action: String,

    /// How urgent they should be, from -1000 to 1000, higher first; with the action priority
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).try_map(Priority::new))]
    #[arg(required_if_eq("action", "priority"))]
    priority: Option<Priority>,

    /// Jobs in one of these states
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = filter::states())]
    #[arg(env = "ORCHESTRIX_FILTER_STATE", hide_env = true, help_heading = "Filters")]
    states: Vec<JobState>,

    #[command(flatten)]
    filter: Filter,

    /// All jobs
    #[arg(long, conflicts_with_all = ["filter", "states"])]
    all: bool,

    /// Do not wait until it is over
    #[arg(long)]
    detach: bool,

    #[command(flatten)]
    consent: Consent,
}

fn actions() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(["retry", "cancel", "priority"])
}

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let Arguments { action, priority, states, filter, all, detach, consent } = arguments;
    if !all && states.is_empty() && !filter.narrows() {
        return Err(Failure::Usage("which jobs? Give a filter such as --queue, or --all".into()).into());
    }
    if action != "priority" && priority.is_some() {
        return Err(Failure::Usage("--priority goes only with the action priority".into()).into());
    }
    let filter: Option<JobFilterRequest> = (!all).then(|| filter.in_states(states));
    let wanted = |dry_run| BulkRequest {
        action: action.clone(),
        priority: *priority,
        filter: filter.clone(),
        all: *all,
        dry_run,
    };
    if !detach || !consent.yes {
        somebody_leads(api).await?;
    }
    if consent.dry_run || !consent.yes {
        let counted = over(&wanted(true), api, output).await?;
        if consent.dry_run || counted.state != "done" {
            return show(&counted, output);
        }
        let n = usize::try_from(counted.matched).unwrap_or(usize::MAX);
        let done = match action.as_str() {
            "retry" => "retried",
            "cancel" => "cancelled",
            _ => "given another priority",
        };
        consent.ask(&format!("{} would be {done}.", jobs(n)), "how many")?;
    }
    if *detach {
        let begun: BulkResponse = api.call(Request::post("/admin/jobs/bulk").with(&wanted(false))?).await?;
        let operation: OperationView =
            api.call(Request::get(format!("/admin/operations/{}", begun.operation_id))).await?;
        return show(&operation, output);
    }
    show(&over(&wanted(false), api, output).await?, output)
}

// Begins it and waits for its end.
async fn over(wanted: &BulkRequest, api: &Api, output: &Output) -> Result<OperationView> {
    let begun: BulkResponse = api.call(Request::post("/admin/jobs/bulk").with(wanted)?).await?;
    until_over(begun.operation_id, api, output).await
}

// Before anything is begun that would only wait. Anybody may ask this, also with a key that is bound to a tenant; who is refused all the same,
// by whatever stands in between, is not stopped: what follows says what is wrong.
async fn somebody_leads(api: &Api) -> Result<()> {
    let ready: Value = match api.call(Request::get("/readyz")).await {
        Ok(ready) => ready,
        Err(ApiError::Refused(_) | ApiError::Unreadable { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match ready.pointer("/components/coordinator/status").and_then(Value::as_str) {
        Some("degraded") => {
            let text = "nobody leads, so nobody would work it off: start a server or a worker, or add --detach --yes";
            Err(Failure::Failed(text.into()).into())
        }
        _ => Ok(()),
    }
}
