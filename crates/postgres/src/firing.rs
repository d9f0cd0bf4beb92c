//! Writing down what was planned about schedules: a few statements for any number of them, in the transaction that holds their rows.

use std::collections::BTreeSet;

use orchestrix_core::{
    DependsOn, JobId, JobType, NewJob, Priority, Queue, ScheduleName, Timestamp,
    enqueue::{Call, CallShape, Parents, check_jobs},
    schedule::OccurrenceOutcome,
};
use orchestrix_store::{CommitEffects, Enqueued, Fence, Firing, Occurrence, Result, Schedule, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresOptions, PostgresStore,
    enqueue::{enqueue_effects, record_graph},
    ledger,
    row::{count, state},
    settle::{Ending, Settled, ended, note, settle},
    statement::{MOVE_SCHEDULES, REQUEST_CANCELS, Statement},
    work::Work,
};

/// What was planned about one schedule.
pub(crate) struct PlannedFiring {
    pub(crate) lines: Vec<Occurrence>,
    pub(crate) jobs: Vec<NewJob>,
    cancel: Vec<JobId>,
    /// Those of its earlier jobs that are not finished.
    unfinished: Vec<JobId>,
    after: Schedule,
}

impl PlannedFiring {
    pub(crate) fn new(schedule: &Schedule, firing: Firing, unfinished: Vec<JobId>) -> Self {
        let Firing { lines, jobs, cancel, after, .. } = firing;
        Self { lines, jobs, cancel, unfinished, after: after.unwrap_or_else(|| schedule.clone()) }
    }

    /// It stays as it is.
    pub(crate) fn nothing(schedule: Schedule, unfinished: Vec<JobId>) -> Self {
        Self { lines: Vec::new(), jobs: Vec::new(), cancel: Vec::new(), unfinished, after: schedule }
    }

    pub(crate) fn name(&self) -> &ScheduleName {
        &self.after.definition.name
    }

    /// The earlier jobs that the new ones wait for, or take the place of.
    pub(crate) fn needs(&self) -> impl Iterator<Item = JobId> + '_ {
        let parents = self.jobs.iter().flat_map(|job| &job.depends_on).filter_map(|parent| match parent {
            DependsOn::Job(id) => Some(*id),
            DependsOn::Reference(_) => None,
        });
        parents.chain(self.cancel.iter().copied())
    }

    /// Whom its jobs wait for; or what rule they break, which may be newer than their schedule.
    pub(crate) fn check(&self) -> Result<Vec<Parents>> {
        Ok(check_jobs(&self.jobs)?)
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.jobs.iter().map(|job| job.payload.as_str().len()).sum()
    }
}

/// What a transaction did that others are to hear of once it is committed.
#[derive(Default)]
pub(crate) struct Done {
    jobs: Vec<(Queue, JobType, Priority)>,
    /// What is to be counted, but for those that were cancelled.
    effects: CommitEffects,
    pub(crate) recorded: Vec<Enqueued>,
    cancelled: Vec<Settled>,
}

impl Done {
    /// Takes in what was done besides.
    pub(crate) fn add(&mut self, other: Self) {
        self.jobs.extend(other.jobs);
        self.effects.merge(other.effects);
        self.recorded.extend(other.recorded);
        self.cancelled.extend(other.cancelled);
    }

    /// Tells those who wait for jobs, and counts what was done.
    pub(crate) async fn tell(&mut self, store: &PostgresStore, fence: Fence) {
        std::mem::take(&mut self.effects).record_metrics();
        store.note_recorded(&self.jobs, &self.recorded);
        note(store, &self.cancelled);
        store.tell_dependents(fence, ended(&self.cancelled)).await;
    }
}

/// Keeps the earlier jobs that new ones need as they are, by `hold_jobs.sql` or its like; in one order, so that two transactions that
/// need the same jobs do not wait for each other.
pub(crate) async fn hold(work: &Work<'_>, planned: &[PlannedFiring], statement: &Statement) -> Result<Vec<Row>> {
    let needed: BTreeSet<Uuid> = planned.iter().flat_map(PlannedFiring::needs).map(|id| id.as_uuid()).collect();
    let needed: Vec<Uuid> = needed.into_iter().collect();
    if needed.is_empty() { Ok(Vec::new()) } else { work.query(statement, &[&needed]).await }
}

/// Writes jobs, requests to cancel, lines of the ledgers and where the schedules stand then. `held` are the jobs that they need.
pub(crate) async fn write_down(
    work: &Work<'_>,
    options: &PostgresOptions,
    mut planned: Vec<PlannedFiring>,
    held: &[Row],
) -> Result<Done> {
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
    let cancelled = cancel(work, &planned, held).await?;
    let recorded = match jobs.is_empty() {
        true => Vec::new(),
        // Jobs of schedules have no keys, so nobody can take one of them meanwhile.
        false => record_graph(&mut &*work, options, Call { jobs: &jobs, parents: &graph, shape: CallShape::Single })
            .await?
            .ok_or_else(|| StoreError::Unavailable("a key was taken meanwhile".into()))?,
    };
    let mut created = recorded.iter().map(|job| job.id);
    for one in &mut planned {
        let mut own = Vec::new();
        for line in one.lines.iter_mut().filter(|line| line.outcome == OccurrenceOutcome::Fired && line.job.is_none()) {
            line.job = created.next();
            own.extend(line.job);
        }
        one.after.set_open_jobs(std::mem::take(&mut one.unfinished), own);
    }
    let lines = |one: &mut PlannedFiring| std::mem::take(&mut one.lines);
    let lines: Vec<Vec<Occurrence>> = planned.iter_mut().map(lines).collect();
    let lines: Vec<(&ScheduleName, Occurrence)> =
        planned.iter().zip(lines).flat_map(|(one, lines)| lines.into_iter().map(|line| (one.name(), line))).collect();
    ledger::record(work, &lines).await?;
    move_on(work, &planned).await?;
    let mut effects = enqueue_effects(jobs.iter().zip(&recorded));
    for (name, line) in &lines {
        effects.schedule_fired(name, line.outcome, line.count);
    }
    let jobs = jobs.into_iter().map(|job| (job.queue, job.job_type, job.priority)).collect();
    Ok(Done { jobs, effects, recorded, cancelled })
}

// Cancels what gives way to new jobs: what runs is asked to stop, what waits is over.
async fn cancel(work: &Work<'_>, planned: &[PlannedFiring], held: &[Row]) -> Result<Vec<Settled>> {
    let doomed: BTreeSet<JobId> = planned.iter().flat_map(|one| one.cancel.iter().copied()).collect();
    let mut leased = Vec::new();
    let mut endings = Vec::new();
    for row in held {
        let (id, was) = (JobId::from_uuid(row.get(0)), state(row.get(1))?);
        if !doomed.contains(&id) {
            continue;
        }
        if was.is_leased() {
            leased.push(id.as_uuid());
        } else {
            let (attempts, losses) = (count(row.get(3)), count(row.get(4)));
            endings.push(Ending::cancel_waiting(id, was, row.get(2), attempts, losses, "requested"));
        }
    }
    if !leased.is_empty() {
        work.query(&REQUEST_CANCELS, &[&leased]).await?;
    }
    if endings.is_empty() { Ok(Vec::new()) } else { settle(work, &endings).await }
}

async fn move_on(work: &Work<'_>, planned: &[PlannedFiring]) -> Result<()> {
    if planned.is_empty() {
        return Ok(());
    }
    let after = || planned.iter().map(|one| &one.after);
    let names: Vec<&str> = after().map(|schedule| schedule.definition.name.as_str()).collect();
    let counted: Vec<Timestamp> = after().map(|schedule| schedule.counted_from).collect();
    let nominals: Vec<Option<Timestamp>> = after().map(|schedule| schedule.next_nominal).collect();
    let fires: Vec<Option<Timestamp>> = after().map(|schedule| schedule.next_fire_at).collect();
    let fired: Vec<Option<Timestamp>> = after().map(|schedule| schedule.last_fired_at).collect();
    let open: Vec<String> = after()
        .map(|schedule| {
            let ids: Vec<String> = schedule.open_jobs.iter().map(|id| id.as_uuid().to_string()).collect();
            format!("{{{}}}", ids.join(","))
        })
        .collect();
    let versions: Vec<&str> = after().map(|schedule| schedule.tzdb.as_str()).collect();
    work.query(&MOVE_SCHEDULES, &[&names, &counted, &nominals, &fires, &fired, &open, &versions]).await.map(drop)
}
