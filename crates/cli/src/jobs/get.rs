//! `orchestrix jobs get`: the whole job for operators, a reduced view for clients.

use anyhow::Result;
use orchestrix_api::{
    admin::{attempt::AttemptView, job::JobDetails, timeline::TimelineEvent},
    job::{JobResultView, JobView, ProgressView},
};
use orchestrix_core::{JobId, JobStatus, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    api::{ApiClient, Request, RoleView},
    error::ExitStatus,
    no_worker_hint,
    output::{Output, pairs, table},
    times,
};

/// A job as operators see it.
#[derive(Debug, Serialize)]
struct OperatorJobOutput {
    #[serde(flatten)]
    job: JobDetails,
    /// The hint that no worker serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A job as clients see it.
#[derive(Debug, Serialize)]
struct ClientJobOutput {
    #[serde(flatten)]
    job: JobView,
    /// The result, once the job has completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
}

pub(crate) async fn run(id: JobId, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let request = |base: &str| Request::get(format!("{base}/{id}"));
    match api.call_by_role::<JobDetails, JobView>(request("/admin/jobs"), request("/jobs")).await? {
        RoleView::Operator(job) => {
            let note = no_worker_hint::for_job(&job.summary, api).await;
            let job = OperatorJobOutput { job, note };
            output.item(&job, || operator_text(&job, Timestamp::now()))?;
        }
        RoleView::Client(job) => {
            let result = match job.status {
                JobStatus::Completed => {
                    Some(api.call::<JobResultView>(Request::get(format!("/jobs/{id}/result"))).await?.result)
                }
                _ => None,
            };
            let job = ClientJobOutput { job, result };
            output.item(&job, || pairs(client_fields(&job, Timestamp::now())))?;
            output.note("use a key with the role operator to see payload, attempts and errors");
        }
    }
    Ok(ExitStatus::SUCCESS)
}

fn client_fields(ClientJobOutput { job, result }: &ClientJobOutput, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("id", job.job_id.to_string()),
        ("type", job.job_type.to_string()),
        ("status", job.status.to_string()),
        ("created", at(job.created_at, now)),
    ];
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    add("started", job.started_at.map(|time| at(time, now)));
    add("finished", job.finished_at.map(|time| at(time, now)));
    add("progress", job.progress.as_ref().map(progress));
    add("correlation id", job.correlation_id.clone());
    add("result", result.as_ref().map(|json| json.get().to_owned()));
    fields
}

fn at(time: Timestamp, now: Timestamp) -> String {
    format!("{time} ({})", times::relative(time, now))
}

fn progress(progress: &ProgressView) -> String {
    let percent = progress.percent.map(|percent| format!("{percent} %"));
    [percent, progress.message.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn operator_text(OperatorJobOutput { job, note }: &OperatorJobOutput, now: Timestamp) -> String {
    let mut text = pairs(operator_fields(job, now));
    if !job.attempts.is_empty() {
        text.push('\n');
        let header = ["ATTEMPT", "OUTCOME", "WORKER", "STARTED", "ENDED", "TOOK", "ERROR"];
        text += &table(header, job.attempts.iter().map(attempt_row));
        if job.earlier_attempts > 0 {
            text += &format!("{} earlier attempts are no longer stored\n", job.earlier_attempts);
        }
    }
    text.push('\n');
    text += &table(
        ["AT", "EVENT", "STATE", "ATTEMPT", "OUTCOME", "WORKER", "REASON"],
        job.transitions.iter().map(transition_row),
    );
    if let Some(note) = note {
        text += &format!("\n{note}\n");
    }
    text
}

fn attempt_row(attempt: &AttemptView) -> [String; 7] {
    [
        attempt.attempt.to_string(),
        attempt.outcome.map_or_else(|| "running".into(), |outcome| outcome.to_string()),
        or_dash(attempt.worker_id.as_ref()),
        attempt.started_at.to_string(),
        or_dash(attempt.ended_at.as_ref()),
        attempt.duration().map_or_else(|| "-".into(), |took| format!("{:.3}s", took.as_secs_f64())),
        or_dash(attempt.error.as_ref()),
    ]
}

fn transition_row(transition: &TimelineEvent) -> [String; 7] {
    [
        transition.at.to_string(),
        transition.event.as_str().into(),
        or_dash(transition.state.as_ref()),
        or_dash(transition.attempt.as_ref()),
        or_dash(transition.outcome.as_ref()),
        or_dash(transition.worker_id.as_ref()),
        or_dash(transition.reason.as_ref()),
    ]
}

fn or_dash<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".into(), ToString::to_string)
}

// Only the fields that are set.
fn operator_fields(job: &JobDetails, now: Timestamp) -> Vec<(&'static str, String)> {
    let summary = &job.summary;
    let at = |time: Timestamp| at(time, now);
    let mut fields = Vec::new();
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    let cancelling = if summary.cancel_requested { ", cancellation requested" } else { "" };
    add("id", Some(summary.job_id.to_string()));
    add("type", Some(summary.job_type.to_string()));
    add("state", Some(format!("{}{cancelling}", summary.state)));
    add("reason", summary.reason.clone());
    add("queue", Some(summary.queue.to_string()));
    add("tenant", Some(summary.tenant.to_string()));
    add("priority", Some(summary.priority.get().to_string()));
    add("attempts", Some(format!("{} of {}", summary.attempts_used, summary.max_attempts)));
    add("created", Some(at(summary.created_at)));
    add("eligible", (summary.eligible_at != summary.created_at).then(|| at(summary.eligible_at)));
    add("started", summary.started_at.map(at));
    add("finished", summary.finished_at.map(at));
    add("expires", job.expires_at.map(at));
    add("worker", summary.worker_id.as_ref().map(ToString::to_string));
    add("lease until", job.lease_expires_at.map(at));
    add("timeout", job.timeout_seconds.map(|seconds| format!("{seconds} s")));
    add("progress", summary.progress.as_ref().map(progress));
    add("depends on", joined(&job.depends_on, "\n"));
    add("tags", joined(&summary.tags, ", "));
    add("correlation id", summary.correlation_id.clone());
    add("idempotency key", summary.idempotency_key.as_ref().map(ToString::to_string));
    add("concurrency key", job.concurrency_key.as_ref().map(ToString::to_string));
    add("rate limit key", job.rate_limit_key.as_ref().map(ToString::to_string));
    let resources: Vec<String> = job.resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    add("resources", joined(&resources, ", "));
    add("payload", Some(job.payload.get().to_owned()));
    add("checkpoint", job.checkpoint.as_ref().map(|json| json.get().to_owned()));
    add("result", job.result.as_ref().map(|json| json.get().to_owned()));
    fields
}

fn joined<T: ToString>(items: &[T], separator: &str) -> Option<String> {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(separator))
}
