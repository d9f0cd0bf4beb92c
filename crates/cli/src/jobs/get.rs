//! `orchestrix jobs get`: all of a job for operators, and for clients what is theirs to know.

use anyhow::Result;
use orchestrix_api::{
    admin::{attempt::AttemptView, job::JobDetails, timeline::TimelineEvent},
    job::{JobResultView, JobView, ProgressView},
};
use orchestrix_core::{JobId, JobStatus, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    api::{Api, Request, Seen},
    failure::Outcome,
    output::{Output, pairs, table},
    times,
    unserved::hint,
};

/// A job as it is shown.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    job: JobDetails,
    /// What keeps it waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A job as a client sees it.
#[derive(Debug, Serialize)]
struct Own {
    #[serde(flatten)]
    job: JobView,
    /// What it left behind, once it has completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
}

pub(crate) async fn run(id: JobId, api: &Api, output: &Output) -> Result<Outcome> {
    let request = |place: &str| Request::get(format!("{place}/{id}"));
    match api.either::<JobDetails, JobView>(request("/admin/jobs"), request("/jobs")).await? {
        Seen::Operator(job) => {
            let note = hint(&job.summary, api).await;
            let shown = Shown { job, note };
            output.item(&shown, || text(&shown, Timestamp::now()))?;
        }
        Seen::Client(job) => {
            let result = match job.status {
                JobStatus::Completed => {
                    Some(api.call::<JobResultView>(Request::get(format!("/jobs/{id}/result"))).await?.result)
                }
                _ => None,
            };
            let own = Own { job, result };
            output.item(&own, || pairs(own_lines(&own, Timestamp::now())))?;
            output.note("payload, attempts and errors are shown to a key whose role is operator");
        }
    }
    Ok(Outcome::DONE)
}

fn own_lines(Own { job, result }: &Own, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("id", job.job_id.to_string()),
        ("type", job.job_type.to_string()),
        ("status", job.status.to_string()),
        ("created", at(job.created_at, now)),
    ];
    let mut say = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    say("started", job.started_at.map(|time| at(time, now)));
    say("finished", job.finished_at.map(|time| at(time, now)));
    say("progress", job.progress.as_ref().map(progress));
    say("correlation id", job.correlation_id.clone());
    say("result", result.as_ref().map(|json| json.get().to_owned()));
    lines
}

fn at(time: Timestamp, now: Timestamp) -> String {
    format!("{time} ({})", times::relative(time, now))
}

fn progress(progress: &ProgressView) -> String {
    let percent = progress.percent.map(|percent| format!("{percent} %"));
    [percent, progress.message.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn text(Shown { job, note }: &Shown, now: Timestamp) -> String {
    let mut text = pairs(lines(job, now));
    if !job.attempts.is_empty() {
        text.push('\n');
        let header = ["ATTEMPT", "OUTCOME", "WORKER", "STARTED", "ENDED", "TOOK", "ERROR"];
        text += &table(header, job.attempts.iter().map(attempt));
        if job.earlier_attempts > 0 {
            text += &format!("{} earlier ones are not kept\n", job.earlier_attempts);
        }
    }
    text.push('\n');
    text += &table(["AT", "WHAT", "STATE", "ATTEMPT", "OUTCOME", "WORKER", "REASON"], job.transitions.iter().map(step));
    if let Some(note) = note {
        text += &format!("\n{note}\n");
    }
    text
}

fn attempt(attempt: &AttemptView) -> [String; 7] {
    [
        attempt.attempt.to_string(),
        attempt.outcome.map_or_else(|| "under way".into(), |outcome| outcome.to_string()),
        or_none(attempt.worker_id.as_ref()),
        attempt.started_at.to_string(),
        or_none(attempt.ended_at.as_ref()),
        attempt.duration().map_or_else(|| "-".into(), |took| format!("{:.3}s", took.as_secs_f64())),
        or_none(attempt.error.as_ref()),
    ]
}

fn step(step: &TimelineEvent) -> [String; 7] {
    [
        step.at.to_string(),
        step.event.as_str().into(),
        or_none(step.state.as_ref()),
        or_none(step.attempt.as_ref()),
        or_none(step.outcome.as_ref()),
        or_none(step.worker_id.as_ref()),
        or_none(step.reason.as_ref()),
    ]
}

fn or_none<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".into(), ToString::to_string)
}

// Only what is set and not the default, in the order in which one asks.
fn lines(job: &JobDetails, now: Timestamp) -> Vec<(&'static str, String)> {
    let summary = &job.summary;
    let at = |time: Timestamp| at(time, now);
    let mut lines = Vec::new();
    let mut say = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    let asked_to_stop = if summary.cancel_requested { ", asked to stop" } else { "" };
    say("id", Some(summary.job_id.to_string()));
    say("type", Some(summary.job_type.to_string()));
    say("state", Some(format!("{}{asked_to_stop}", summary.state)));
    say("reason", summary.reason.clone());
    say("queue", Some(summary.queue.to_string()));
    say("tenant", Some(summary.tenant.to_string()));
    say("priority", Some(summary.priority.get().to_string()));
    say("attempts", Some(format!("{} of {}", summary.attempts_used, summary.max_attempts)));
    say("created", Some(at(summary.created_at)));
    say("eligible", (summary.eligible_at != summary.created_at).then(|| at(summary.eligible_at)));
    say("started", summary.started_at.map(at));
    say("finished", summary.finished_at.map(at));
    say("expires", job.expires_at.map(at));
    say("worker", summary.worker_id.as_ref().map(ToString::to_string));
    say("lease until", job.lease_expires_at.map(at));
    say("timeout", job.timeout_seconds.map(|seconds| format!("{seconds} s")));
    say("progress", summary.progress.as_ref().map(progress));
    say("depends on", joined(&job.depends_on, "\n"));
    say("tags", joined(&summary.tags, ", "));
    say("correlation id", summary.correlation_id.clone());
    say("idempotency key", summary.idempotency_key.as_ref().map(ToString::to_string));
    say("concurrency key", job.concurrency_key.as_ref().map(ToString::to_string));
    say("rate limit key", job.rate_limit_key.as_ref().map(ToString::to_string));
    let resources: Vec<String> = job.resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    say("resources", joined(&resources, ", "));
    say("payload", Some(job.payload.get().to_owned()));
    say("checkpoint", job.checkpoint.as_ref().map(|json| json.get().to_owned()));
    say("result", job.result.as_ref().map(|json| json.get().to_owned()));
    lines
}

fn joined<T: ToString>(items: &[T], separator: &str) -> Option<String> {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(separator))
}
