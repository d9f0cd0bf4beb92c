//! Resolving dependents: jobs that wait for parents which have finished.
//!
//! A finished parent unblocks its dependents, or cancels or holds them if it failed. The transaction that finishes the
//! parent only records it in the table `settled`. Right after it the same call resolves a bounded number of
//! dependencies. The [`background`] task of this process resolves the rest, and the leader's sweep resolves what a
//! process left behind when it died.
//!
//! A step resolves many levels at once: a failed parent cancels its children, these cancel theirs, and all of it is
//! one transaction. [`plan`] says what a step writes.

pub(crate) mod background;
mod plan;

use std::{collections::HashSet, time::Duration};

use orchestrix_core::JobId;
use orchestrix_store::{Fence, Result, StoreError, SweepResult};
use uuid::Uuid;

use crate::{
    PostgresStore,
    effects::Effects,
    fenced_tx::FencedTx,
    row::{state, sweep_limit},
    settle::{GuardedTransition, note_moved, settle},
    statement::{FORGET_SETTLED_PARENTS, LOCK_JOBS, OPEN_DEPENDENCIES, UNBLOCK_JOBS},
};

use plan::{OpenDependency, StepPlan};

/// How many dependencies the call that finished their parents resolves. Its caller waits for them.
const INLINE: usize = 100;

/// The open dependencies that one step takes.
#[derive(Debug, Clone, Copy)]
struct StepScope<'a> {
    /// The most dependencies.
    limit: usize,
    /// The most dependencies on one finished parent.
    limit_per_parent: usize,
    /// The finished parents; `None` for all of them.
    parents: Option<&'a [JobId]>,
}

/// What one step did.
struct Step {
    /// Whether there was any open dependency.
    found: bool,
    resolved: usize,
    /// Finished parents that may have more open dependencies.
    left: Vec<JobId>,
    effects: Effects,
}

impl PostgresStore {
    /// Resolves dependents of finished `parents`, up to [`INLINE`] dependencies. The background task resolves the rest;
    /// for a leader its own sweep does, so that these writes are fenced too. An error is not returned: the parents are
    /// durably finished.
    pub(crate) async fn resolve_dependents(&self, fence: Fence, parents: Vec<JobId>) {
        if parents.is_empty() {
            return;
        }
        let scope = StepScope { limit: INLINE, limit_per_parent: INLINE, parents: Some(&parents) };
        let left = match resolve(self, fence, scope).await {
            Ok(step) => {
                self.publisher().publish(step.effects);
                step.left
            }
            Err(error) => {
                tracing::debug!(%error, parents = parents.len(), "dependents not resolved by the call; trying again");
                parents
            }
        };
        if left.is_empty() {
            return;
        }
        if fence.patience().is_some() {
            self.wake_unblock_sweep();
        } else {
            self.resolve_in_background(left);
        }
    }

    // The leader reads its sweep times at once, and finds the parents in the table `settled`.
    fn wake_unblock_sweep(&self) {
        let mut effects = Effects::default();
        effects.timer_set();
        self.publisher().publish(effects);
    }
}

/// Resolves dependents of any finished parent. Once there are none, forgets parents that no job waits for any more.
pub(crate) async fn unblock_jobs(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let step = resolve(store, fence, StepScope { limit, limit_per_parent: limit, parents: None }).await?;
    store.publisher().publish(step.effects);
    if step.found {
        return Ok(SweepResult { count: step.resolved, next_in: Some(Duration::ZERO) });
    }
    let tx = store.database().fenced(fence).await?;
    tx.query(&FORGET_SETTLED_PARENTS, &[&sweep_limit(limit)?]).await?;
    tx.commit().await?;
    Ok(SweepResult::default())
}

async fn resolve(store: &PostgresStore, fence: Fence, scope: StepScope<'_>) -> Result<Step> {
    let mut effects = Effects::default();
    let tx = store.database().fenced(fence).await?;
    let open = read_open(&tx, scope).await?;
    let found = !open.is_empty();
    let plan = if open.iter().any(OpenDependency::cancels) {
        let tx = tx.into_transaction().await?;
        let cancelled = cancel(&tx, scope, open, &mut effects).await;
        tx.finish(cancelled).await?
    } else {
        let plan = StepPlan::new(open, scope, None);
        unblock(&tx, &plan, &mut effects).await?;
        tx.commit().await?;
        plan
    };
    Ok(Step { found, resolved: plan.met.len(), left: plan.left, effects })
}

// Locks the children in the order of ids and reads again, so that nothing changes before the writes: a job is cancelled
// only together with the parent that cancels it.
async fn cancel(
    tx: &FencedTx<'_>,
    scope: StepScope<'_>,
    open: Vec<OpenDependency>,
    effects: &mut Effects,
) -> Result<StepPlan> {
    let children: Vec<Uuid> = open.iter().map(|dependency| dependency.child.as_uuid()).collect();
    let rows = tx.query(&LOCK_JOBS, &[&children]).await?;
    let locked: HashSet<JobId> = rows.iter().map(|row| JobId::from_uuid(row.get("id"))).collect();
    let plan = StepPlan::new(read_open(tx, scope).await?, scope, Some(&locked));
    if !plan.cancelled.is_empty() {
        let settled = settle(tx, &plan.cancelled, effects).await?;
        if settled.len() != plan.cancelled.len() {
            return Err(StoreError::Unavailable("locked jobs changed before they were cancelled: retry".into()));
        }
    }
    unblock(tx, &plan, effects).await?;
    Ok(plan)
}

async fn read_open(tx: &FencedTx<'_>, scope: StepScope<'_>) -> Result<Vec<OpenDependency>> {
    let parents: Option<Vec<Uuid>> = scope.parents.map(|ids| ids.iter().map(JobId::as_uuid).collect());
    let (limit, limit_per_parent) = (sweep_limit(scope.limit)?, sweep_limit(scope.limit_per_parent)?);
    let rows = tx.query(&OPEN_DEPENDENCIES, &[&limit, &parents, &limit_per_parent]).await?;
    rows.iter().map(OpenDependency::read).collect()
}

async fn unblock(tx: &FencedTx<'_>, plan: &StepPlan, effects: &mut Effects) -> Result<()> {
    if plan.met.is_empty() {
        return Ok(());
    }
    let (mut children, mut parents, mut holds) = (Vec::new(), Vec::new(), Vec::new());
    for ((child, parent), held) in &plan.met {
        children.push(child.as_uuid());
        parents.push(parent.as_uuid());
        holds.push(*held);
    }
    for row in &tx.query(&UNBLOCK_JOBS, &[&children, &parents, &holds]).await? {
        note_moved(state(row.get("state"))?, row, effects);
    }
    Ok(())
}

// The transition of a child that its failed parent cancels.
fn cancellation(child: JobId, row: &tokio_postgres::Row) -> Result<GuardedTransition> {
    let (attempts, losses) = (crate::row::count(row.get("attempts")), crate::row::count(row.get("losses")));
    let (before, counter) = (state(row.get("state"))?, row.get("lease_counter"));
    Ok(GuardedTransition::cancel_waiting(child, before, counter, attempts, losses, "dependency_failed"))
}
