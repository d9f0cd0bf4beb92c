//! What a step of an operation does to jobs, in the transaction that counts it.
//!
//! A job that somebody else has locked keeps no other waiting: the step ends before it. A step that begins with one waits for that one alone,
//! as long as a leader's transaction may wait for anything.

use std::collections::HashSet;

use orchestrix_core::{JobId, JobState};
use orchestrix_store::{BulkAction, Fence, Operation, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    row::{count, state},
    settle::{Ending, Settled, ended, note, settle},
    statement::{
        HOLD_FINISHED, HOLD_FREE_FINISHED, HOLD_FREE_JOBS, HOLD_JOBS, OPEN_STATES, REPRIORITIZE_MANY, REQUEST_CANCELS,
        RETRY, STATES, Statement,
    },
    work::Work,
};

/// What was done, of which others are to be told once it is committed.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    /// Jobs whose owners were asked to stop.
    asked: usize,
    /// Jobs that were cancelled.
    settled: Vec<Settled>,
    /// Jobs that stand elsewhere in the line: where, and from the second column on what for.
    moved: Vec<(JobState, Row)>,
}

impl Deeds {
    /// How many jobs it were.
    pub(crate) fn changed(&self) -> usize {
        self.asked + self.settled.len() + self.moved.len()
    }

    /// Tells whoever waits for any of it.
    pub(crate) async fn tell(&self, store: &PostgresStore, fence: Fence) {
        for (state, row) in &self.moved {
            store.note_ready(*state, row, 1);
        }
        note(store, &self.settled);
        store.tell_dependents(fence, ended(&self.settled)).await;
    }
}

/// Does what the operation does to those of `jobs` that can take it. Answers with the first of them, up to one that somebody else has locked: all
/// that were dealt with; and with what was done.
pub(crate) async fn act<'a>(work: &Work<'_>, operation: &Operation, jobs: &'a [JobId]) -> Result<(&'a [JobId], Deeds)> {
    if jobs.is_empty() {
        return Ok((jobs, Deeds::default()));
    }
    let kind = Kind::of(operation.action);
    // What is held for nothing is let go before anything is waited for.
    work.mark().await?;
    let mut held = hold(work, operation, kind.hold_free, jobs).await?;
    let own: HashSet<JobId> = held.iter().map(id).collect();
    let there = hold(work, operation, kind.look, jobs).await?;
    let locked: HashSet<JobId> = there.iter().map(id).filter(|id| !own.contains(id)).collect();
    let free = jobs.iter().position(|id| locked.contains(id)).unwrap_or(jobs.len());
    let jobs = &jobs[..free.max(1)];
    if free == 0 {
        work.take_back().await?;
        held = hold(work, operation, kind.hold, jobs).await?;
    } else {
        work.unmark().await?;
        held.retain(|row| jobs.contains(&id(row)));
    }
    if held.is_empty() {
        return Ok((jobs, Deeds::default()));
    }
    let deeds = match operation.action {
        BulkAction::Retry => retry(work, &held).await?,
        BulkAction::Cancel => cancel(work, &held).await?,
        BulkAction::Priority(priority) => {
            let rows = work.query(&REPRIORITIZE_MANY, &[&ids(&held), &-priority.get()]).await?;
            let moved = rows.into_iter().map(|row| Ok((state(row.get(0))?, row))).collect::<Result<_>>()?;
            Deeds { moved, ..Deeds::default() }
        }
    };
    Ok((jobs, deeds))
}

/// The statements for one kind of action: where its jobs are.
struct Kind {
    hold: &'static Statement,
    hold_free: &'static Statement,
    look: &'static Statement,
}

impl Kind {
    fn of(action: BulkAction) -> Self {
        match action {
            BulkAction::Retry => Self { hold: &HOLD_FINISHED, hold_free: &HOLD_FREE_FINISHED, look: &STATES },
            BulkAction::Cancel | BulkAction::Priority(_) => {
                Self { hold: &HOLD_JOBS, hold_free: &HOLD_FREE_JOBS, look: &OPEN_STATES }
            }
        }
    }
}

// Those that it finds and that can take it; they begin with id and state.
async fn hold(work: &Work<'_>, operation: &Operation, statement: &Statement, jobs: &[JobId]) -> Result<Vec<Row>> {
    let jobs: Vec<Uuid> = jobs.iter().map(JobId::as_uuid).collect();
    let mut held = Vec::new();
    for row in work.query(statement, &[&jobs]).await? {
        if operation.applies_to(state(row.get(1))?) {
            held.push(row);
        }
    }
    Ok(held)
}

fn id(row: &Row) -> JobId {
    JobId::from_uuid(row.get(0))
}

fn ids(held: &[Row]) -> Vec<Uuid> {
    held.iter().map(|row| row.get(0)).collect()
}

async fn retry(work: &Work<'_>, held: &[Row]) -> Result<Deeds> {
    let rows = work.query(&RETRY, &[&ids(held)]).await?;
    Ok(Deeds { moved: rows.into_iter().map(|row| (JobState::Pending, row)).collect(), ..Deeds::default() })
}

async fn cancel(work: &Work<'_>, held: &[Row]) -> Result<Deeds> {
    let mut leased = Vec::new();
    let mut endings = Vec::new();
    for row in held {
        let was = state(row.get(1))?;
        if was.is_leased() {
            leased.push(row.get::<_, Uuid>(0));
        } else {
            let (attempts, losses) = (count(row.get(3)), count(row.get(4)));
            endings.push(Ending::cancel_waiting(id(row), was, row.get(2), attempts, losses, "requested"));
        }
    }
    if !leased.is_empty() {
        work.query(&REQUEST_CANCELS, &[&leased]).await?;
    }
    let settled = if endings.is_empty() { Vec::new() } else { settle(work, &endings).await? };
    Ok(Deeds { asked: leased.len(), settled, moved: Vec::new() })
}
