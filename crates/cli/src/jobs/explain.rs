//! `orchestrix jobs explain`: why a job is not running.

use anyhow::Result;
use orchestrix_api::admin::explain::{Explanation, ReasonView};
use orchestrix_core::JobId;

use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    output::{Output, escape_control, table},
};

pub(crate) async fn run(id: JobId, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let explanation: Explanation = api.call(Request::get(format!("/admin/jobs/{id}/explain"))).await?;
    output.item(&explanation, || text(&explanation))?;
    Ok(ExitStatus::SUCCESS)
}

fn text(explanation: &Explanation) -> String {
    let mut text = format!("{}\n\n", escape_control(&explanation.summary));
    text += &table(
        ["REASON", "MESSAGE"],
        explanation.reasons.iter().map(|reason| [reason.code.clone(), reason.message.clone()]),
    );
    for reason in explanation.reasons.iter().filter(|reason| !reason.jobs.is_empty()) {
        text += &format!("\n{}", related_jobs(reason));
    }
    text
}

fn related_jobs(reason: &ReasonView) -> String {
    let row = |job: &orchestrix_api::admin::job_state::JobStateView| [job.job_id.to_string(), job.state.to_string()];
    // Says how these jobs relate to the explained one.
    let header = match reason.code.as_str() {
        "blocked" => "WAITS FOR",
        "held" | "dependency_failed" => "DID NOT COMPLETE",
        _ => "JOB",
    };
    let mut text = table([header, "STATE"], reason.jobs.iter().map(row));
    if let Some(more) = reason.more {
        text += &format!("and {more} more\n");
    }
    text
}
