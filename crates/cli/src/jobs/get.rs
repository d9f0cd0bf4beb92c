//! `orchestrix jobs get`.

use anyhow::Result;
use orchestrix_core::{JobId, JobState, Timestamp};
use orchestrix_store::{Store, StoreError};

use crate::{
    failure::Outcome,
    fleet::{Fleet, nobody_takes},
    output::{Output, pairs, table},
    times,
    view::{AttemptView, JobView},
};

pub(crate) async fn run(id: JobId, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let job = store.get(id).await?.ok_or(StoreError::JobNotFound(id))?;
    let mut view = JobView::from(job);
    let summary = &view.summary;
    if summary.state == JobState::Pending && !Fleet::read(store).await?.takes(&summary.queue, &summary.job_type) {
        view.note = Some(nobody_takes(&summary.queue, &summary.job_type));
    }
    output.item(&view, || text(&view, Timestamp::now()))?;
    Ok(Outcome::DONE)
}

fn text(job: &JobView, now: Timestamp) -> String {
    let mut text = pairs(lines(job, now));
    if !job.attempts.is_empty() {
        text.push('\n');
        text += &table(["ATTEMPT", "OUTCOME", "WORKER", "ENDED", "TOOK", "ERROR"], job.attempts.iter().map(attempt));
    }
    if let Some(note) = &job.note {
        text += &format!("\n{note}\n");
    }
    text
}

fn attempt(attempt: &AttemptView) -> [String; 6] {
    [
        attempt.attempt.to_string(),
        attempt.outcome.to_string(),
        attempt.worker_id.as_ref().map_or_else(|| "-".into(), ToString::to_string),
        attempt.ended_at.to_string(),
        format!("{:.3}s", attempt.took().as_secs_f64()),
        attempt.error.clone().unwrap_or_else(|| "-".into()),
    ]
}

// Only what is set and not the default, in the order in which one asks.
fn lines(job: &JobView, now: Timestamp) -> Vec<(&'static str, String)> {
    let summary = &job.summary;
    let at = |time: Timestamp| format!("{time} ({})", times::relative(time, now));
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
    say(
        "progress",
        summary.progress.as_ref().map(|progress| {
            let percent = progress.percent.map(|percent| format!("{percent} %"));
            [percent, progress.message.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ")
        }),
    );
    say("depends on", joined(&job.depends_on, "\n"));
    say("tags", joined(&summary.tags, ", "));
    say("correlation id", summary.correlation_id.clone());
    say("idempotency key", summary.idempotency_key.as_ref().map(ToString::to_string));
    say("concurrency key", job.concurrency_key.as_ref().map(ToString::to_string));
    say("rate limit key", job.rate_limit_key.as_ref().map(ToString::to_string));
    let resources: Vec<String> = job.resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    say("resources", joined(&resources, ", "));
    say("payload", Some(job.payload.as_str().to_owned()));
    say("checkpoint", job.checkpoint.as_ref().map(|json| json.as_str().to_owned()));
    say("result", job.result.as_ref().map(|json| json.as_str().to_owned()));
    lines
}

fn joined<T: ToString>(items: &[T], separator: &str) -> Option<String> {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(separator))
}
