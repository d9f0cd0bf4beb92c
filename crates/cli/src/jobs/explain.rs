//! `orchestrix jobs explain`.

use anyhow::Result;
use orchestrix_api::admin::explain::{Explanation, ReasonView};
use orchestrix_core::JobId;

use crate::{
    api::{Api, Request},
    failure::Outcome,
    output::{Output, plain, table},
};

pub(crate) async fn run(id: JobId, api: &Api, output: &Output) -> Result<Outcome> {
    let explanation: Explanation = api.call(Request::get(format!("/admin/jobs/{id}/explain"))).await?;
    output.item(&explanation, || text(&explanation))?;
    Ok(Outcome::DONE)
}

fn text(explanation: &Explanation) -> String {
    let mut text = format!("{}\n\n", plain(&explanation.summary));
    text += &table(["REASON", "MESSAGE"], explanation.reasons.iter().map(|it| [it.code.clone(), it.message.clone()]));
    for reason in explanation.reasons.iter().filter(|reason| !reason.jobs.is_empty()) {
        text += &format!("\n{}", jobs(reason));
    }
    text
}

fn jobs(reason: &ReasonView) -> String {
    let row = |job: &orchestrix_api::admin::job_state::JobStateView| [job.job_id.to_string(), job.state.to_string()];
    // What they are to the job, which is not what the job is.
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
