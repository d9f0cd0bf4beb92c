//! Resolving dependents: jobs that wait for parents which have finished.
//!
//! A finished parent unblocks its dependents, or cancels or holds them if it failed. The transaction that finishes the
//! parent only records that fact; dependents are resolved right after it, and by a sweep if that was interrupted.

use std::{collections::HashMap, time::Duration};

use orchestrix_core::{JobId, JobState};
use orchestrix_store::{Fence, Result, SweepResult};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    effects::Effects,
    row::{count, state, sweep_limit},
    settle::{GuardedTransition, note_moved, settle},
    statement::{FORGET_SETTLED_PARENTS, OPEN_DEPENDENCIES, UNBLOCK_JOBS},
};

/// How many dependencies the call that finished their parents resolves in one transaction, and in how many of them.
/// The sweep resolves the rest.
const BATCH: usize = 1_000;
const ROUNDS: usize = 100;

/// What one transaction resolved.
struct Resolved {
    dependencies: usize,
    effects: Effects,
}

impl PostgresStore {
    /// Resolves the dependents of finished `parents`, and so on along chains of cancelled ones. An error is not
    /// returned: the parents are durably finished, and the sweep resolves what is left.
    pub(crate) async fn resolve_dependents(&self, fence: Fence, mut parents: Vec<JobId>) {
        for _ in 0..ROUNDS {
            if parents.is_empty() {
                return;
            }
            match resolve(self, fence, BATCH, Some(&parents)).await {
                Ok(mut resolved) => {
                    let cancelled = resolved.effects.take_finished_parents();
                    self.publisher().publish(resolved.effects);
                    if resolved.dependencies < BATCH {
                        parents = cancelled;
                    } else {
                        parents.extend(cancelled);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, parents = parents.len(), "dependents not resolved; the sweep will do it");
                    return;
                }
            }
        }
    }
}

/// Resolves dependents of any finished parent. Once there are none, forgets parents that no job waits for any more.
pub(crate) async fn unblock_jobs(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let resolved = resolve(store, fence, limit, None).await?;
    store.publisher().publish(resolved.effects);
    if resolved.dependencies == 0 {
        let tx = store.database().fenced(fence).await?;
        tx.query(&FORGET_SETTLED_PARENTS, &[&sweep_limit(limit)?]).await?;
        tx.commit().await?;
        return Ok(SweepResult::default());
    }
    Ok(SweepResult { count: resolved.dependencies, next_in: Some(Duration::ZERO) })
}

async fn resolve(store: &PostgresStore, fence: Fence, limit: usize, parents: Option<&[JobId]>) -> Result<Resolved> {
    let parents: Option<Vec<Uuid>> = parents.map(|ids| ids.iter().map(JobId::as_uuid).collect());
    let limit = sweep_limit(limit)?;
    let mut effects = Effects::default();
    let tx = store.database().fenced(fence).await?;
    let rows = tx.query(&OPEN_DEPENDENCIES, &[&limit, &parents]).await?;
    if rows.is_empty() {
        tx.commit().await?;
        return Ok(Resolved { dependencies: 0, effects });
    }
    // Children are cancelled before their dependency is marked as met: a crash in between leaves the dependency open,
    // and the next sweep finds it.
    let mut doomed: HashMap<Uuid, GuardedTransition> = HashMap::new();
    for row in &rows {
        if let Some(cancel) = cancellation(row)? {
            doomed.insert(row.get("child"), cancel);
        }
    }
    let mut cancelled = Vec::new();
    if !doomed.is_empty() {
        let transitions: Vec<GuardedTransition> = doomed.values().cloned().collect();
        cancelled = settle(&tx, &transitions, &mut effects).await?;
    }
    let mut met: Vec<(Uuid, Uuid, bool)> = rows
        .iter()
        // A child that changed before it could be cancelled stays open for the next round.
        .filter(|row| {
            let child = row.get::<_, Uuid>("child");
            !doomed.contains_key(&child) || cancelled.iter().any(|job| job.id.as_uuid() == child)
        })
        .map(|row| {
            let holds = row.get("failed") && row.get::<_, Option<&str>>("policy") == Some("hold");
            (row.get("child"), row.get("parent"), holds)
        })
        .collect();
    met.sort_unstable();
    let children: Vec<Uuid> = met.iter().map(|(child, _, _)| *child).collect();
    let parents: Vec<Uuid> = met.iter().map(|(_, parent, _)| *parent).collect();
    let holds: Vec<bool> = met.iter().map(|(_, _, holds)| *holds).collect();
    for row in &tx.query(&UNBLOCK_JOBS, &[&children, &parents, &holds]).await? {
        note_moved(state(row.get("state"))?, row, &mut effects);
    }
    tx.commit().await?;
    Ok(Resolved { dependencies: met.len(), effects })
}

// The transition of a child that its failed parent cancels.
fn cancellation(row: &Row) -> Result<Option<GuardedTransition>> {
    let cancels = row.get("failed") && row.get::<_, Option<&str>>("policy").is_none_or(|policy| policy == "cancel");
    let Some(text) = row.get::<_, Option<&str>>("state").filter(|_| cancels) else { return Ok(None) };
    let before = state(text)?;
    if !matches!(before, JobState::Created | JobState::Blocked) {
        return Ok(None);
    }
    let id = JobId::from_uuid(row.get("child"));
    let (attempts, losses) = (count(row.get("attempts")), count(row.get("losses")));
    let counter = row.get("lease_counter");
    Ok(Some(GuardedTransition::cancel_waiting(id, before, counter, attempts, losses, "dependency_failed")))
}
