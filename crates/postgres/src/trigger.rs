//! Firing a schedule on request: once now, or for a past range. One transaction that locks the schedule's row.

use std::{collections::HashSet, time::Duration};

use orchestrix_core::{
    FieldError, Overlap, ScheduleName, Timestamp, enqueue::MAX_CALL_BYTES, schedule::OccurrenceOutcome,
};
use orchestrix_store::{Backfill, Enqueued, Fence, Occurrence, Result, StoreError, TenantScope};

use crate::{
    PostgresOptions, PostgresStore,
    fenced_tx::FencedTx,
    fire::{still_open, unfinished_jobs},
    occurrences,
    planned_firing::{FiringResult, PlannedFiring, lock_required_jobs, write},
    schedule::lock_existing,
    statement::LOCK_JOBS,
};

pub(crate) async fn trigger_schedule(
    store: &PostgresStore,
    scope: TenantScope<'_>,
    name: &ScheduleName,
) -> Result<Enqueued> {
    let tx = store.database().fenced_transaction(Fence::NONE).await?;
    let fired = trigger_in(&tx, &store.database().options, scope, name).await;
    let FiringResult { enqueued, effects } = tx.finish(fired).await?;
    store.publish(Fence::NONE, effects).await;
    enqueued.first().copied().ok_or_else(|| StoreError::Backend("the triggered schedule enqueued no job".into()))
}

async fn trigger_in(
    tx: &FencedTx<'_>,
    options: &PostgresOptions,
    scope: TenantScope<'_>,
    name: &ScheduleName,
) -> Result<FiringResult> {
    let (schedule, now) = lock_existing(tx, scope, name).await?;
    let mut nominal = schedule.off_schedule_time(now);
    while !occurrences::find(tx, &[(name, nominal)]).await?.is_empty() {
        nominal = schedule.off_schedule_time(nominal + Duration::from_micros(1));
    }
    let schedules = [schedule];
    let unfinished = unfinished_jobs(tx, &schedules, |_| Overlap::Allow).await?;
    let open = still_open(&schedules[0], Overlap::Allow, &unfinished);
    let planned = PlannedFiring::new(&schedules[0], schedules[0].trigger(nominal, now), open);
    write(tx, options, vec![planned], &[]).await
}

/// Fires the nominal times of a range that have not fired yet. Returns how many jobs it enqueued.
pub(crate) async fn backfill_schedule(
    store: &PostgresStore,
    scope: TenantScope<'_>,
    name: &ScheduleName,
    range: &Backfill,
) -> Result<usize> {
    let tx = store.database().fenced_transaction(Fence::NONE).await?;
    let fired = backfill_in(&tx, &store.database().options, scope, name, range).await;
    let FiringResult { enqueued, effects } = tx.finish(fired).await?;
    store.publish(Fence::NONE, effects).await;
    Ok(enqueued.len())
}

async fn backfill_in(
    tx: &FencedTx<'_>,
    options: &PostgresOptions,
    scope: TenantScope<'_>,
    name: &ScheduleName,
    range: &Backfill,
) -> Result<FiringResult> {
    let (schedule, now) = lock_existing(tx, scope, name).await?;
    let range = range.until_now(now)?;
    let times = range.times(&schedule)?;
    let keys: Vec<_> = times.iter().map(|time| (name, *time)).collect();
    let existing: Vec<Occurrence> =
        occurrences::find(tx, &keys).await?.into_iter().map(|(_, occurrence)| occurrence).collect();
    let fired = existing.iter().filter(|occurrence| occurrence.outcome == OccurrenceOutcome::Fired);
    let fired: HashSet<Timestamp> = fired.map(|occurrence| occurrence.nominal).collect();
    let times: Vec<Timestamp> = times.into_iter().filter(|time| !fired.contains(time)).collect();
    if times.len().saturating_mul(schedule.definition.job.payload.as_str().len()) > MAX_CALL_BYTES {
        return Err(
            FieldError::new("to", format!("the jobs would hold more than {MAX_CALL_BYTES} bytes of payload")).into()
        );
    }
    let schedules = [schedule];
    let schedule = &schedules[0];
    let overlap = range.overlap.unwrap_or(schedule.definition.overlap);
    let open = still_open(schedule, overlap, &unfinished_jobs(tx, &schedules, |_| overlap).await?);
    let mut planned = vec![PlannedFiring::new(schedule, schedule.backfill(&times, overlap, &open, now), open)];
    occurrences::replace(tx, schedule, &mut planned[0].occurrences, existing).await?;
    let locked = lock_required_jobs(tx, &planned, &LOCK_JOBS).await?;
    write(tx, options, planned, &locked).await
}
