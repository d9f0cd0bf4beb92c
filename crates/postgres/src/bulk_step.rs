//! What one step of a bulk operation does to jobs, in the transaction that advances the operation.
//!
//! A job that another transaction has locked does not delay the others: the step ends before it. A step that begins
//! with a locked job waits for that job alone, for as long as a leader's transaction may wait.

use std::collections::HashSet;

use orchestrix_core::{JobId, JobState};
use orchestrix_store::{BulkAction, Operation, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    effects::Effects,
    fenced_tx::FencedTx,
    row::state,
    settle::{cancel_locked, note_moved},
    statement::{
        JOB_STATES, LOCK_FINISHED_JOBS, LOCK_FINISHED_JOBS_SKIP_LOCKED, LOCK_JOBS, LOCK_JOBS_SKIP_LOCKED,
        REPRIORITIZE_JOBS, RETRY_JOBS, Statement, UNFINISHED_JOB_STATES,
    },
};

/// What a step did.
#[derive(Debug, Default)]
pub(crate) struct StepEffects {
    /// How many jobs changed.
    pub(crate) changed: usize,
    /// What to publish after the commit.
    pub(crate) effects: Effects,
}

/// Applies the operation's action to `jobs` in states that accept it. Returns the jobs handled, which are those before
/// the first locked one, and the effects.
pub(crate) async fn run_step<'a>(
    tx: &FencedTx<'_>,
    operation: &Operation,
    jobs: &'a [JobId],
) -> Result<(&'a [JobId], StepEffects)> {
    if jobs.is_empty() {
        return Ok((jobs, StepEffects::default()));
    }
    let statements = Statements::of(operation.action);
    // The locks taken without waiting are released before the step waits for any.
    tx.set_savepoint().await?;
    let mut held = matching(tx, operation, statements.lock_unlocked, jobs).await?;
    let unlocked: HashSet<JobId> = held.iter().map(id).collect();
    let existing = matching(tx, operation, statements.read, jobs).await?;
    let locked: HashSet<JobId> = existing.iter().map(id).filter(|id| !unlocked.contains(id)).collect();
    let free = jobs.iter().position(|id| locked.contains(id)).unwrap_or(jobs.len());
    let jobs = &jobs[..free.max(1)];
    if free == 0 {
        tx.rollback_to_savepoint().await?;
        held = matching(tx, operation, statements.lock, jobs).await?;
    } else {
        tx.release_savepoint().await?;
        held.retain(|row| jobs.contains(&id(row)));
    }
    if held.is_empty() {
        return Ok((jobs, StepEffects::default()));
    }
    Ok((jobs, apply(tx, operation.action, &held).await?))
}

async fn apply(tx: &FencedTx<'_>, action: BulkAction, held: &[Row]) -> Result<StepEffects> {
    let ids: Vec<Uuid> = held.iter().map(|row| row.get("id")).collect();
    let mut effects = Effects::default();
    let changed = match action {
        BulkAction::Retry => {
            let rows = tx.query(&RETRY_JOBS, &[&ids]).await?;
            rows.iter().for_each(|row| note_moved(JobState::Pending, row, &mut effects));
            rows.len()
        }
        BulkAction::Cancel => cancel_locked(tx, held.iter(), &mut effects).await?,
        BulkAction::Priority(priority) => {
            let rows = tx.query(&REPRIORITIZE_JOBS, &[&ids, &-priority.get()]).await?;
            for row in &rows {
                note_moved(state(row.get("state"))?, row, &mut effects);
            }
            rows.len()
        }
    };
    Ok(StepEffects { changed, effects })
}

/// The statements that find the jobs of an action, by the tables that hold them.
struct Statements {
    lock: &'static Statement,
    lock_unlocked: &'static Statement,
    read: &'static Statement,
}

impl Statements {
    fn of(action: BulkAction) -> Self {
        match action {
            BulkAction::Retry => {
                Self { lock: &LOCK_FINISHED_JOBS, lock_unlocked: &LOCK_FINISHED_JOBS_SKIP_LOCKED, read: &JOB_STATES }
            }
            BulkAction::Cancel | BulkAction::Priority(_) => {
                Self { lock: &LOCK_JOBS, lock_unlocked: &LOCK_JOBS_SKIP_LOCKED, read: &UNFINISHED_JOB_STATES }
            }
        }
    }
}

// The rows that a statement finds and whose state the operation accepts.
async fn matching(tx: &FencedTx<'_>, operation: &Operation, statement: &Statement, jobs: &[JobId]) -> Result<Vec<Row>> {
    let jobs: Vec<Uuid> = jobs.iter().map(JobId::as_uuid).collect();
    let mut matching = Vec::new();
    for row in tx.query(statement, &[&jobs]).await? {
        if operation.applies_to(state(row.get("state"))?) {
            matching.push(row);
        }
    }
    Ok(matching)
}

fn id(row: &Row) -> JobId {
    JobId::from_uuid(row.get("id"))
}
