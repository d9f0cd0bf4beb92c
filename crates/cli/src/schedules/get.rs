//! `orchestrix schedules get`.

use std::time::Duration;

use anyhow::Result;
use orchestrix_api::{job::JobRequest, schedule::ScheduleView};
use orchestrix_core::{JobId, Misfire, ScheduleName, Timestamp, tzdb_version};

use super::{look_up, words};
use crate::{
    api::Api,
    failure::Outcome,
    output::{Output, pairs},
    times,
};

/// How long a schedule may be overdue before that is worth a word: longer than a change of leader takes.
const OVERDUE: Duration = Duration::from_secs(60);

pub(crate) async fn run(name: &ScheduleName, api: &Api, output: &Output) -> Result<Outcome> {
    let schedule = look_up(name, api).await?;
    let now = Timestamp::now();
    output.item(&schedule, || pairs(lines(&schedule, now)))?;
    if schedule.status.next_fire_at.is_some_and(|due| times::since(due, now) > OVERDUE) {
        output
            .note("it is overdue: `orchestrix nodes list` shows whether a node leads, and the leader fires schedules");
    }
    Ok(Outcome::DONE)
}

// Only what is set and not the default, in the order in which one asks.
fn lines(schedule: &ScheduleView, now: Timestamp) -> Vec<(&'static str, String)> {
    let ScheduleView { name, request, status: standing } = schedule;
    let at = |time: Timestamp| format!("{time} ({})", times::relative(time, now));
    let mut lines = Vec::new();
    let mut say = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    say("name", Some(name.to_string()));
    say("when", Some(words::when(request)));
    say("state", Some(words::state(schedule).into()));
    say("note", request.note.clone());
    say("next", standing.next_time.map(at));
    say("fires", standing.next_fire_at.filter(|due| Some(*due) != standing.next_time).map(at));
    say("last fired", standing.last_fired_at.map(at));
    say("starts", request.start_at.map(at));
    say("ends", request.end_at.map(at));
    say("overlap", request.overlap.map(|overlap| overlap.to_string()));
    let limit = request.catch_up_limit.filter(|_| request.misfire == Some(Misfire::CatchUp));
    let limit = limit.map_or_else(String::new, |limit| format!(", at most {limit}"));
    say("misfire", request.misfire.map(|misfire| format!("{misfire}{limit}")));
    say("jitter", request.jitter_seconds.and_then(positive));
    say("created", Some(at(standing.created_at)));
    say("updated", (standing.updated_at != standing.created_at).then(|| at(standing.updated_at)));
    let (used, ours) = (&standing.tzdb_version, tzdb_version());
    say("time zones", Some(if used == ours { used.clone() } else { format!("{used}, here {ours}") }));
    lines.extend(job_lines(&request.job));
    lines.extend(unfinished_line(&standing.unfinished_jobs).map(|value| ("unfinished", value)));
    lines
}

fn job_lines(job: &JobRequest) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut say = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    say("type", Some(job.job_type.clone()));
    say("queue", job.queue.clone());
    say("tenant", job.tenant.clone());
    say("priority", job.priority.map(|priority| priority.to_string()));
    say("attempts", job.max_attempts.map(|attempts| attempts.to_string()));
    say("delay", job.delay_seconds.and_then(positive));
    say("timeout", job.timeout_seconds.and_then(positive));
    say("hold", job.hold.unwrap_or_default().then(|| "until each job is released".into()));
    say("tags", joined(&job.tags, ", "));
    say("correlation id", job.correlation_id.clone());
    say("concurrency key", job.concurrency_key.clone());
    say("rate limit key", job.rate_limit_key.clone());
    let resources: Vec<String> = job.resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    say("resources", joined(&resources, ", "));
    say("payload", Some(job.payload.as_ref().map_or("null", |json| json.get()).to_owned()));
    lines
}

// There may be a thousand; JSON has them all.
fn unfinished_line(jobs: &[JobId]) -> Option<String> {
    const SHOWN: usize = 8;
    let shown = joined(&jobs[..jobs.len().min(SHOWN)], "\n")?;
    let rest = jobs.len().saturating_sub(SHOWN);
    Some(if rest == 0 { shown } else { format!("{shown}\nand {rest} more") })
}

fn positive(seconds: f64) -> Option<String> {
    (seconds > 0.0).then(|| words::seconds_exact(seconds))
}

fn joined<T: ToString>(items: &[T], separator: &str) -> Option<String> {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(separator))
}
