//! `orchestrix schedules get`.

use std::time::Duration;

use anyhow::Result;
use orchestrix_core::{JobId, Misfire, ScheduleName, Timestamp, tzdb_version};
use orchestrix_store::Store;
use serde::Serialize;

use super::{
    look_up, unfinished,
    view::{ScheduleView, TemplateView, exact},
};
use crate::{
    failure::Outcome,
    output::{Output, pairs},
    times,
};

/// How long a schedule may be overdue before that is worth a word: longer than a change of leader takes.
const OVERDUE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    #[serde(flatten)]
    schedule: ScheduleView,
    unfinished_jobs: Vec<JobId>,
}

pub(crate) async fn run(name: &ScheduleName, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let schedule = look_up(name, store).await?;
    let unfinished_jobs = unfinished(&schedule, store).await?;
    let whole = Whole { schedule: schedule.into(), unfinished_jobs };
    let now = Timestamp::now();
    output.item(&whole, || pairs(lines(&whole, now)))?;
    if whole.schedule.next_fire_at.is_some_and(|due| times::since(due, now) > OVERDUE) {
        output
            .note("it is overdue: `orchestrix nodes list` shows whether a node leads, and the leader fires schedules");
    }
    Ok(Outcome::DONE)
}

// Only what is set and not the default, in the order in which one asks.
fn lines(whole: &Whole, now: Timestamp) -> Vec<(&'static str, String)> {
    let schedule = &whole.schedule;
    let at = |time: Timestamp| format!("{time} ({})", times::relative(time, now));
    let mut lines = Vec::new();
    let mut say = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    say("name", Some(schedule.name.to_string()));
    say("when", Some(schedule.when.clone()));
    say("state", Some(schedule.state().into()));
    say("note", schedule.note.clone());
    say("next", schedule.next_time.map(at));
    say("fires", schedule.next_fire_at.filter(|due| Some(*due) != schedule.next_time).map(at));
    say("last fired", schedule.last_fired_at.map(at));
    say("starts", schedule.start_at.map(at));
    say("ends", schedule.end_at.map(at));
    say("overlap", Some(schedule.overlap.to_string()));
    let limit = (schedule.misfire == Misfire::CatchUp).then(|| format!(", at most {}", schedule.catch_up_limit));
    say("misfire", Some(format!("{}{}", schedule.misfire, limit.unwrap_or_default())));
    say("jitter", positive(schedule.jitter_seconds));
    say("created", Some(at(schedule.created_at)));
    say("updated", (schedule.updated_at != schedule.created_at).then(|| at(schedule.updated_at)));
    let (used, ours) = (&schedule.tzdb_version, tzdb_version());
    say("time zones", Some(if used == ours { used.clone() } else { format!("{used}, here {ours}") }));
    lines.extend(job_lines(&schedule.job));
    lines.extend(unfinished_line(&whole.unfinished_jobs).map(|value| ("unfinished", value)));
    lines
}

fn job_lines(job: &TemplateView) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut say = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    say("type", Some(job.job_type.to_string()));
    say("queue", Some(job.queue.to_string()));
    say("tenant", Some(job.tenant.to_string()));
    say("priority", Some(job.priority.get().to_string()));
    say("attempts", Some(job.max_attempts.to_string()));
    say("delay", job.delay_seconds.and_then(positive));
    say("timeout", job.timeout_seconds.and_then(positive));
    say("hold", job.hold.then(|| "until each job is released".into()));
    say("tags", joined(&job.tags, ", "));
    say("correlation id", job.correlation_id.clone());
    say("concurrency key", job.concurrency_key.as_ref().map(ToString::to_string));
    say("rate limit key", job.rate_limit_key.as_ref().map(ToString::to_string));
    let resources: Vec<String> = job.resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    say("resources", joined(&resources, ", "));
    say("payload", Some(job.payload.as_str().to_owned()));
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
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero()).map(exact)
}

fn joined<T: ToString>(items: &[T], separator: &str) -> Option<String> {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(separator))
}
