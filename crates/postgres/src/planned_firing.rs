//! Writing planned firings: a few statements for any number of schedules, in the transaction that locks their rows.

use std::collections::BTreeSet;

use orchestrix_core::{
    DependsOn, JobId, NewJob, ScheduleName, Timestamp,
    enqueue::{Call, CallShape, Parents, check_jobs},
    schedule::OccurrenceOutcome,
};
use orchestrix_store::{Enqueued, Firing, Occurrence, Result, Schedule, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresOptions,
    effects::Effects,
    enqueue::enqueue_call,
    fenced_tx::FencedTx,
    occurrences,
    settle::cancel_locked,
    statement::{ADVANCE_SCHEDULES, Statement},
};

/// The planned firing of one schedule.
pub(crate) struct PlannedFiring {
    pub(crate) occurrences: Vec<Occurrence>,
    pub(crate) jobs: Vec<NewJob>,
    cancel: Vec<JobId>,
    /// The schedule's earlier jobs that are unfinished.
    unfinished: Vec<JobId>,
    after: Schedule,
}

impl PlannedFiring {
    pub(crate) fn new(schedule: &Schedule, firing: Firing, unfinished: Vec<JobId>) -> Self {
        let Firing { lines, jobs, cancel, after, .. } = firing;
        Self { occurrences: lines, jobs, cancel, unfinished, after: after.unwrap_or_else(|| schedule.clone()) }
    }

    /// A firing that leaves the schedule unchanged.
    pub(crate) fn nothing(schedule: Schedule, unfinished: Vec<JobId>) -> Self {
        Self { occurrences: Vec::new(), jobs: Vec::new(), cancel: Vec::new(), unfinished, after: schedule }
    }

    pub(crate) fn name(&self) -> &ScheduleName {
        &self.after.definition.name
    }

    /// The earlier jobs that the new ones wait for or replace.
    pub(crate) fn required_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        let parents = self.jobs.iter().flat_map(|job| &job.depends_on).filter_map(|parent| match parent {
            DependsOn::Job(id) => Some(*id),
            DependsOn::Reference(_) => None,
        });
        parents.chain(self.cancel.iter().copied())
    }

    /// Validates the jobs and resolves their parents. A rule may be newer than the schedule and refuse its jobs.
    pub(crate) fn check(&self) -> Result<Vec<Parents>> {
        Ok(check_jobs(&self.jobs)?)
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.jobs.iter().map(|job| job.payload.as_str().len()).sum()
    }
}

/// What a transaction fired.
#[derive(Default)]
pub(crate) struct FiringResult {
    pub(crate) enqueued: Vec<Enqueued>,
    /// What to publish after the commit.
    pub(crate) effects: Effects,
}

impl FiringResult {
    /// Adds what a later part of the same transaction fired.
    pub(crate) fn merge(&mut self, later: Self) {
        self.enqueued.extend(later.enqueued);
        self.effects.merge(later.effects);
    }
}

/// Locks the earlier jobs that the firings require, by `lock_jobs.sql` or `lock_jobs_skip_locked.sql`. Ids are
/// sorted, so that two transactions that require the same jobs do not deadlock.
pub(crate) async fn lock_required_jobs(
    tx: &FencedTx<'_>,
    planned: &[PlannedFiring],
    statement: &Statement,
) -> Result<Vec<Row>> {
    let required: BTreeSet<Uuid> =
        planned.iter().flat_map(PlannedFiring::required_jobs).map(|id| id.as_uuid()).collect();
    let required: Vec<Uuid> = required.into_iter().collect();
    if required.is_empty() { Ok(Vec::new()) } else { tx.query(statement, &[&required]).await }
}

/// Writes the jobs, cancellations and occurrences of firings, and advances their schedules. `locked` are the rows of
/// the required jobs.
pub(crate) async fn write(
    tx: &FencedTx<'_>,
    options: &PostgresOptions,
    mut planned: Vec<PlannedFiring>,
    locked: &[Row],
) -> Result<FiringResult> {
    let mut jobs = Vec::new();
    let mut graph = Vec::new();
    for one in &mut planned {
        let before = graph.len();
        for mut parents in one.check()? {
            parents.in_call.iter_mut().for_each(|position| *position += before);
            graph.push(parents);
        }
        jobs.append(&mut one.jobs);
    }
    let mut cancelled = Effects::default();
    let replaced: BTreeSet<JobId> = planned.iter().flat_map(|one| one.cancel.iter().copied()).collect();
    let replaced = locked.iter().filter(|row| replaced.contains(&JobId::from_uuid(row.get("id"))));
    cancel_locked(tx, replaced, &mut cancelled).await?;
    let enqueued = match jobs.is_empty() {
        true => Vec::new(),
        // Jobs of schedules have no idempotency keys, so no other transaction can take one.
        false => enqueue_call(&mut &*tx, options, Call { jobs: &jobs, parents: &graph, shape: CallShape::Single })
            .await?
            .ok_or_else(|| StoreError::Unavailable("another transaction took an idempotency key: try again".into()))?,
    };
    let mut ids = enqueued.iter().map(|job| job.id);
    for one in &mut planned {
        let mut own = Vec::new();
        let fired = |new: &&mut Occurrence| new.outcome == OccurrenceOutcome::Fired && new.job.is_none();
        for occurrence in one.occurrences.iter_mut().filter(fired) {
            occurrence.job = ids.next();
            own.extend(occurrence.job);
        }
        one.after.set_open_jobs(std::mem::take(&mut one.unfinished), own);
    }
    let taken: Vec<Vec<Occurrence>> = planned.iter_mut().map(|one| std::mem::take(&mut one.occurrences)).collect();
    let new = planned.iter().zip(taken).flat_map(|(one, taken)| taken.into_iter().map(|new| (one.name(), new)));
    let new: Vec<(&ScheduleName, Occurrence)> = new.collect();
    occurrences::insert(tx, &new).await?;
    advance(tx, &planned).await?;
    let mut effects = Effects::of_enqueued(jobs.iter().zip(&enqueued));
    effects.merge(cancelled);
    for (name, occurrence) in &new {
        effects.schedule_fired(name, occurrence.outcome, occurrence.count);
    }
    Ok(FiringResult { enqueued, effects })
}

async fn advance(tx: &FencedTx<'_>, planned: &[PlannedFiring]) -> Result<()> {
    if planned.is_empty() {
        return Ok(());
    }
    let after = || planned.iter().map(|one| &one.after);
    let names: Vec<&str> = after().map(|schedule| schedule.definition.name.as_str()).collect();
    let counted_from: Vec<Timestamp> = after().map(|schedule| schedule.counted_from).collect();
    let next_nominal: Vec<Option<Timestamp>> = after().map(|schedule| schedule.next_nominal).collect();
    let next_fire_at: Vec<Option<Timestamp>> = after().map(|schedule| schedule.next_fire_at).collect();
    let last_fired_at: Vec<Option<Timestamp>> = after().map(|schedule| schedule.last_fired_at).collect();
    let open_jobs: Vec<String> = after()
        .map(|schedule| {
            let ids: Vec<String> = schedule.open_jobs.iter().map(|id| id.as_uuid().to_string()).collect();
            format!("{{{}}}", ids.join(","))
        })
        .collect();
    let tzdb: Vec<&str> = after().map(|schedule| schedule.tzdb.as_str()).collect();
    tx.query(
        &ADVANCE_SCHEDULES,
        &[&names, &counted_from, &next_nominal, &next_fire_at, &last_fired_at, &open_jobs, &tzdb],
    )
    .await
    .map(drop)
}
