//! `orchestrix schedules pause`, `resume`, `trigger` and `delete`. A schedule that is rejected does not stop the
//! others.

use anyhow::Result;
use orchestrix_api::{
    job::JobStatusView,
    schedule::{PauseRequest, ScheduleView},
};
use orchestrix_core::{ScheduleName, Timestamp};
use serde::Serialize;

use super::{fetch, format::is_paused, path};
use crate::{
    api::{ApiClient, Request},
    confirmation::Confirmation,
    error::ExitStatus,
    job_states::state_lines,
    output::{Output, table},
    per_item::PerItem,
    times,
};

/// A schedule after a pause or a resume.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScheduleOutput {
    name: ScheduleName,
    paused: bool,
    /// Whether the command changed it.
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_time: Option<Timestamp>,
}

/// A schedule that was deleted, or would be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeletedSchedule {
    name: ScheduleName,
    deleted: bool,
}

pub(crate) async fn pause(
    names: &[ScheduleName],
    note: Option<&str>,
    api: &ApiClient,
    output: &Output,
) -> Result<ExitStatus> {
    let note = PauseRequest { note: note.map(str::to_owned) };
    let paused = PerItem::apply("schedule", names, async |name| {
        let pause = Request::post(format!("{}/pause", path(name))).json(&note)?;
        Ok(ScheduleOutput::from(api.call::<ScheduleView>(pause).await?))
    });
    paused.await.print(output, describe)
}

pub(crate) async fn resume(names: &[ScheduleName], api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let resumed = PerItem::apply("schedule", names, async |name| {
        let resume = Request::post(format!("{}/resume", path(name)));
        Ok(ScheduleOutput::from(api.call::<ScheduleView>(resume).await?))
    });
    resumed.await.print(output, describe)
}

pub(crate) async fn trigger(name: &ScheduleName, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let job: JobStatusView = api.call(Request::post(format!("{}/trigger", path(name)))).await?;
    output.item(&job, || state_lines(std::slice::from_ref(&job)))?;
    Ok(ExitStatus::SUCCESS)
}

pub(crate) async fn delete(
    names: &[ScheduleName],
    confirmation: Confirmation,
    api: &ApiClient,
    output: &Output,
) -> Result<ExitStatus> {
    let found = PerItem::apply("schedule", names, async |name| Ok(fetch(name, api).await?.name)).await;
    let names_table = |header| {
        move |schedules: &[DeletedSchedule]| {
            table([header], schedules.iter().map(|schedule| [schedule.name.to_string()]))
        }
    };
    if confirmation.dry_run {
        let found = found.map(|name| DeletedSchedule { name, deleted: false });
        let status = found.print(output, names_table("NAME"))?;
        output.note("dry run: nothing was deleted");
        return Ok(status);
    }
    if !found.succeeded.is_empty() {
        let names = join_names(&found.succeeded);
        confirmation.require(&format!("{names} would be deleted permanently, with all occurrences."), "which")?;
    }
    let deleted = PerItem::apply("schedule", &found.succeeded, async |name| {
        api.execute(Request::delete(path(name))).await?;
        Ok(DeletedSchedule { name: name.clone(), deleted: true })
    });
    deleted.await.after(found).print(output, names_table("DELETED"))
}

fn join_names(names: &[ScheduleName]) -> String {
    let names: Vec<&str> = names.iter().map(ScheduleName::as_str).collect();
    if let [name] = names.as_slice() { format!("schedule {name}") } else { format!("schedules {}", names.join(", ")) }
}

impl From<ScheduleView> for ScheduleOutput {
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

fn describe(schedules: &[ScheduleOutput]) -> String {
    let now = Timestamp::now();
    let row = |schedule: &ScheduleOutput| {
        let state = if schedule.paused { "paused" } else { "active" };
        let unchanged = if schedule.changed { "" } else { ", unchanged" };
        let next = schedule.next_time.map(|next| format!("{next} ({})", times::relative(next, now)));
        [
            schedule.name.to_string(),
            format!("{state}{unchanged}"),
            next.unwrap_or_else(|| "-".into()),
            schedule.note.clone().unwrap_or_else(|| "-".into()),
        ]
    };
    table(["NAME", "STATE", "NEXT", "NOTE"], schedules.iter().map(row))
}
