//! `orchestrix schedules get`: shows one schedule.

use std::time::Duration;

use anyhow::Result;
use orchestrix_api::{job::JobRequest, schedule::ScheduleView};
use orchestrix_core::{JobId, Misfire, ScheduleName, Timestamp, tzdb_version};

use super::{fetch, format};
use crate::{
    api::ApiClient,
    error::ExitStatus,
    output::{Output, pairs},
    times,
};

/// How long a schedule may be overdue before a note is printed: longer than a change of leader takes.
const OVERDUE: Duration = Duration::from_secs(60);

pub(crate) async fn run(name: &ScheduleName, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let schedule = fetch(name, api).await?;
    let now = Timestamp::now();
    output.item(&schedule, || pairs(fields(&schedule, now)))?;
    if schedule.status.next_fire_at.is_some_and(|due| times::since(due, now) > OVERDUE) {
        output.note("the schedule is overdue: check with `orchestrix nodes list` whether there is a leader to fire it");
    }
    Ok(ExitStatus::SUCCESS)
}

// Only the fields that are set.
fn fields(schedule: &ScheduleView, now: Timestamp) -> Vec<(&'static str, String)> {
    let ScheduleView { name, request, status: standing } = schedule;
    let at = |time: Timestamp| format!("{time} ({})", times::relative(time, now));
    let mut fields = Vec::new();
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    add("name", Some(name.to_string()));
    add("when", Some(format::cadence(request)));
    add("state", Some(format::state(schedule).into()));
    add("note", request.note.clone());
    add("next", standing.next_time.map(at));
    add("fires", standing.next_fire_at.filter(|due| Some(*due) != standing.next_time).map(at));
    add("last fired", standing.last_fired_at.map(at));
    add("starts", request.start_at.map(at));
    add("ends", request.end_at.map(at));
    add("overlap", request.overlap.map(|overlap| overlap.to_string()));
    let limit = request.catch_up_limit.filter(|_| request.misfire == Some(Misfire::CatchUp));
    let limit = limit.map_or_else(String::new, |limit| format!(", at most {limit}"));
    add("misfire", request.misfire.map(|misfire| format!("{misfire}{limit}")));
    add("jitter", request.jitter_seconds.and_then(if_positive));
    add("created", Some(at(standing.created_at)));
    add("updated", (standing.updated_at != standing.created_at).then(|| at(standing.updated_at)));
    let (used, local) = (&standing.tzdb_version, tzdb_version());
    add("time zones", Some(if used == local { used.clone() } else { format!("{used}, this program has {local}") }));
    fields.extend(job_fields(&request.job));
    fields.extend(unfinished_jobs(&standing.unfinished_jobs).map(|value| ("unfinished", value)));
    fields
}

fn job_fields(job: &JobRequest) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    add("type", Some(job.job_type.clone()));
    add("queue", job.queue.clone());
    add("tenant", job.tenant.clone());
    add("priority", job.priority.map(|priority| priority.to_string()));
    add("attempts", job.max_attempts.map(|attempts| attempts.to_string()));
    add("delay", job.delay_seconds.and_then(if_positive));
    add("timeout", job.timeout_seconds.and_then(if_positive));
    add("hold", job.hold.unwrap_or_default().then(|| "each job is held until it is released".into()));
    add("tags", joined(&job.tags, ", "));
    add("correlation id", job.correlation_id.clone());
    add("concurrency key", job.concurrency_key.clone());
    add("rate limit key", job.rate_limit_key.clone());
    let resources: Vec<String> = job.resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    add("resources", joined(&resources, ", "));
    add("payload", Some(job.payload.as_ref().map_or("null", |json| json.get()).to_owned()));
    fields
}

// There may be a thousand; the JSON output shows all of them.
fn unfinished_jobs(jobs: &[JobId]) -> Option<String> {
    const SHOWN: usize = 8;
    let shown = joined(&jobs[..jobs.len().min(SHOWN)], "\n")?;
    let rest = jobs.len().saturating_sub(SHOWN);
    Some(if rest == 0 { shown } else { format!("{shown}\nand {rest} more") })
}

fn if_positive(seconds: f64) -> Option<String> {
    (seconds > 0.0).then(|| format::seconds(seconds))
}

fn joined<T: ToString>(items: &[T], separator: &str) -> Option<String> {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(separator))
}
