//! `orchestrix schedules pause`, `resume`, `trigger` and `delete`.
//!
//! What is done to several is done to each by itself: one that is refused leaves the others standing.

use anyhow::Result;
use orchestrix_api::{
    job::JobStatusView,
    schedule::{PauseRequest, ScheduleView},
};
use orchestrix_core::{ScheduleName, Timestamp};
use serde::Serialize;

use super::{look_up, path, words::is_paused};
use crate::{
    api::{Api, Request},
    consent::Consent,
    each::lines,
    failure::{self, Outcome},
    output::{Output, table},
    times,
};

/// A schedule that was paused or resumed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Switched {
    name: ScheduleName,
    paused: bool,
    /// Whether it was not so before.
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_time: Option<Timestamp>,
}

/// A schedule that was forgotten, or would be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    name: ScheduleName,
    deleted: bool,
}

pub(crate) async fn pause(names: &[ScheduleName], note: Option<&str>, api: &Api, output: &Output) -> Result<Outcome> {
    let why = PauseRequest { note: note.map(str::to_owned) };
    let (paused, outcome) = each(names, async |name| {
        let pause = Request::post(format!("{}/pause", path(name))).with(&why)?;
        Ok(Switched::from(api.call::<ScheduleView>(pause).await?))
    })
    .await;
    show(&paused, output)?;
    Ok(outcome.report())
}

pub(crate) async fn resume(names: &[ScheduleName], api: &Api, output: &Output) -> Result<Outcome> {
    let (resumed, outcome) = each(names, async |name| {
        let resume = Request::post(format!("{}/resume", path(name)));
        Ok(Switched::from(api.call::<ScheduleView>(resume).await?))
    })
    .await;
    show(&resumed, output)?;
    Ok(outcome.report())
}

pub(crate) async fn trigger(name: &ScheduleName, api: &Api, output: &Output) -> Result<Outcome> {
    let job: JobStatusView = api.call(Request::post(format!("{}/trigger", path(name)))).await?;
    output.item(&job, || lines(std::slice::from_ref(&job)))?;
    Ok(Outcome::DONE)
}

pub(crate) async fn delete(names: &[ScheduleName], consent: Consent, api: &Api, output: &Output) -> Result<Outcome> {
    let (found, mut refused) = each(names, async |name| Ok(look_up(name, api).await?.name)).await;
    let mut deleted = Vec::new();
    if consent.dry_run {
        deleted.extend(found.into_iter().map(|name| Deleted { name, deleted: false }));
    } else if !found.is_empty() {
        let question = format!("{} would be forgotten for good, along with what became of past times.", listed(&found));
        consent.ask(&question, "which")?;
        let (done, late) = each(&found, async |name| {
            api.tell(Request::delete(path(name))).await?;
            Ok(Deleted { name: name.clone(), deleted: true })
        })
        .await;
        deleted.extend(done);
        refused.0.extend(late.0);
    }
    if !deleted.is_empty() {
        let header = if consent.dry_run { "NAME" } else { "FORGOTTEN" };
        output.list(&deleted, || table([header], deleted.iter().map(|schedule| [schedule.name.to_string()])))?;
    }
    if consent.dry_run {
        output.note("dry run: nothing was forgotten");
    }
    Ok(refused.report())
}

fn listed(names: &[ScheduleName]) -> String {
    let names: Vec<&str> = names.iter().map(ScheduleName::as_str).collect();
    if let [name] = names.as_slice() { format!("schedule {name}") } else { format!("schedules {}", names.join(", ")) }
}

impl From<ScheduleView> for Switched {
    fn from(schedule: ScheduleView) -> Self {
        Self {
            paused: is_paused(&schedule),
            name: schedule.name,
            changed: schedule.status.changed.unwrap_or_default(),
            note: schedule.request.note,
            next_time: schedule.status.next_time,
        }
    }
}

fn show(switched: &[Switched], output: &Output) -> Result<()> {
    if switched.is_empty() {
        return Ok(());
    }
    let now = Timestamp::now();
    output.list(switched, || {
        let row = |schedule: &Switched| {
            let word = if schedule.paused { "paused" } else { "active" };
            let before = if schedule.changed { "" } else { ", as before" };
            [
                schedule.name.to_string(),
                format!("{word}{before}"),
                schedule
                    .next_time
                    .map_or_else(|| "-".into(), |next| format!("{next} ({})", times::relative(next, now))),
                schedule.note.clone().unwrap_or_else(|| "-".into()),
            ]
        };
        table(["NAME", "STATE", "NEXT", "NOTE"], switched.iter().map(row))
    })
}

/// What was refused, in order.
struct Refused(Vec<anyhow::Error>);

impl Refused {
    /// Says so; the first decides how the command ends.
    fn report(&self) -> Outcome {
        let outcomes: Vec<Outcome> = self.0.iter().map(failure::report).collect();
        outcomes.first().copied().unwrap_or(Outcome::DONE)
    }
}

async fn each<T>(names: &[ScheduleName], act: impl AsyncFn(&ScheduleName) -> Result<T>) -> (Vec<T>, Refused) {
    let (mut done, mut refused) = (Vec::new(), Refused(Vec::new()));
    for name in names {
        match act(name).await {
            Ok(answer) => done.push(answer),
            Err(error) => refused.0.push(error),
        }
    }
    (done, refused)
}
