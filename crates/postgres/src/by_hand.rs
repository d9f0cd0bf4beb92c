//! Firing a schedule because somebody asked for it: now, or for a past range. One transaction, which holds the schedule's row.

use std::{collections::HashSet, time::Duration};

use orchestrix_core::{
    FieldError, Overlap, ScheduleName, Timestamp, enqueue::MAX_CALL_BYTES, schedule::OccurrenceOutcome,
};
use orchestrix_store::{Backfill, Enqueued, Fence, Occurrence, Result, StoreError, TenantScope};

use crate::{
    PostgresOptions, PostgresStore,
    fire::{still_open, unfinished},
    firing::{Done, PlannedFiring, hold, write_down},
    ledger,
    schedule::lock_known,
    statement::HOLD_JOBS,
    work::Work,
};

pub(crate) async fn trigger(store: &PostgresStore, within: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued> {
    let work = store.database().transaction(Fence::NONE).await?;
    let answer = trigger_in(&work, &store.database().options, within, name).await;
    let mut done = work.conclude(answer).await?;
    done.tell(store, Fence::NONE).await;
    done.recorded.first().copied().ok_or_else(|| StoreError::Backend("a job was not recorded".into()))
}

async fn trigger_in(
    work: &Work<'_>,
    options: &PostgresOptions,
    within: TenantScope<'_>,
    name: &ScheduleName,
) -> Result<Done> {
    let (schedule, now) = lock_known(work, within, name).await?;
    let mut nominal = schedule.off_schedule_time(now);
    while !ledger::known(work, &[(name, nominal)]).await?.is_empty() {
        nominal = schedule.off_schedule_time(nominal + Duration::from_micros(1));
    }
    let schedules = [schedule];
    let unfinished = unfinished(work, &schedules, |_| Overlap::Allow).await?;
    let open = still_open(&schedules[0], Overlap::Allow, &unfinished);
    let planned = PlannedFiring::new(&schedules[0], schedules[0].trigger(nominal, now), open);
    write_down(work, options, vec![planned], &[]).await
}

pub(crate) async fn backfill(
    store: &PostgresStore,
    within: TenantScope<'_>,
    name: &ScheduleName,
    range: &Backfill,
) -> Result<usize> {
    let work = store.database().transaction(Fence::NONE).await?;
    let answer = backfill_in(&work, &store.database().options, within, name, range).await;
    let mut done = work.conclude(answer).await?;
    done.tell(store, Fence::NONE).await;
    Ok(done.recorded.len())
}

async fn backfill_in(
    work: &Work<'_>,
    options: &PostgresOptions,
    within: TenantScope<'_>,
    name: &ScheduleName,
    range: &Backfill,
) -> Result<Done> {
    let (schedule, now) = lock_known(work, within, name).await?;
    let range = range.until_now(now)?;
    let times = range.times(&schedule)?;
    let asked: Vec<_> = times.iter().map(|time| (name, *time)).collect();
    let known: Vec<Occurrence> = ledger::known(work, &asked).await?.into_iter().map(|(_, line)| line).collect();
    let fired: HashSet<Timestamp> =
        known.iter().filter(|line| line.outcome == OccurrenceOutcome::Fired).map(|line| line.nominal).collect();
    let times: Vec<Timestamp> = times.into_iter().filter(|time| !fired.contains(time)).collect();
    if times.len().saturating_mul(schedule.definition.job.payload.as_str().len()) > MAX_CALL_BYTES {
        return Err(
            FieldError::new("to", format!("the jobs would hold more than {MAX_CALL_BYTES} bytes of payload")).into()
        );
    }
    let schedules = [schedule];
    let schedule = &schedules[0];
    let overlap = range.overlap.unwrap_or(schedule.definition.overlap);
    let open = still_open(schedule, overlap, &unfinished(work, &schedules, |_| overlap).await?);
    let mut planned = vec![PlannedFiring::new(schedule, schedule.backfill(&times, overlap, &open, now), open)];
    ledger::replace(work, schedule, &mut planned[0].lines, known).await?;
    let held = hold(work, &planned, &HOLD_JOBS).await?;
    write_down(work, options, planned, &held).await
}
