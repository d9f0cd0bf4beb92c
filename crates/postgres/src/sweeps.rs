//! Bounded sweeps of the leader: jobs that are due, expired, timed out, or whose lease expired.

use std::time::Duration;

use orchestrix_core::{AttemptOutcome, JobState, LeaseToken, Queue};
use orchestrix_store::{EndedAttempt, Fence, Result, SweepResult};

use crate::{
    PostgresStore,
    effects::Effects,
    fenced_tx::FencedTx,
    row::sweep_limit,
    settle::{Guard, GuardedTransition, JobSnapshot, note_moved, settle},
    statement::{
        EXPIRED_JOBS, EXPIRED_LEASES, LOCK_RESUMING_QUEUE, NEXT_EXPIRY, NEXT_LEASE_EXPIRY, NEXT_PROMOTION,
        NEXT_TIMEOUT, OVERDUE_ATTEMPTS, PROMOTE_JOBS, Statement, UNPARK_BATCHES,
    },
};

/// Makes due jobs pending, and returns parked ready batches of queues that were resumed.
pub(crate) async fn promote_jobs(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let limit = sweep_limit(limit)?;
    let mut effects = Effects::default();
    let tx = store.database().fenced(fence).await?;
    let rows = tx.query(&PROMOTE_JOBS, &[&limit]).await?;
    let resuming = !tx.query(&LOCK_RESUMING_QUEUE, &[&None::<&str>]).await?.is_empty();
    let next_in = next_in(&tx, &NEXT_PROMOTION).await?;
    tx.commit().await?;
    let mut count = if resuming { unpark_any(store, fence, limit, &mut effects).await? } else { 0 };
    for row in &rows {
        note_moved(JobState::Pending, row, &mut effects);
        count += usize::try_from(row.get::<_, i64>("promoted")).unwrap_or(0);
    }
    store.publish(fence, effects).await;
    Ok(SweepResult { count, next_in })
}

/// Returns parked ready batches of a resumed queue, which this transaction has locked, to the order of claims. Returns
/// how many.
pub(crate) async fn unpark_batches(
    tx: &FencedTx<'_>,
    queue: &Queue,
    limit: i64,
    effects: &mut Effects,
) -> Result<usize> {
    let rows = tx.query(&UNPARK_BATCHES, &[&queue.as_str(), &limit]).await?;
    let batches = rows.first().map_or(0, |row| row.get::<_, i64>("batches"));
    if batches > 0 {
        effects.queue_resumed(queue.clone());
    }
    Ok(usize::try_from(batches).unwrap_or(0))
}

// Unparks batches of one resumed queue, if any.
async fn unpark_any(store: &PostgresStore, fence: Fence, limit: i64, effects: &mut Effects) -> Result<usize> {
    let tx = store.database().fenced_transaction(fence).await?;
    let rows = tx.query(&LOCK_RESUMING_QUEUE, &[&None::<&str>]).await?;
    let batches = match rows.first() {
        Some(row) => unpark_batches(&tx, &Queue::trusted(row.get("name")), limit, effects).await?,
        None => 0,
    };
    tx.commit().await?;
    Ok(batches)
}

pub(crate) async fn reap_leases(
    store: &PostgresStore,
    fence: Fence,
    limit: usize,
    crash_loop: u16,
) -> Result<SweepResult> {
    let end = EndedAttempt::lost(crash_loop);
    let decide = |job: &JobSnapshot| GuardedTransition::of_attempt(job, &end, Guard::Expired);
    sweep(store, fence, &EXPIRED_LEASES, &NEXT_LEASE_EXPIRY, limit, decide).await
}

pub(crate) async fn time_out_attempts(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let end = EndedAttempt::plain(AttemptOutcome::TimedOut);
    let decide = |job: &JobSnapshot| GuardedTransition::of_attempt(job, &end, Guard::Overdue);
    sweep(store, fence, &OVERDUE_ATTEMPTS, &NEXT_TIMEOUT, limit, decide).await
}

pub(crate) async fn expire_jobs(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let decide = |job: &JobSnapshot| {
        let JobSnapshot { token: LeaseToken { job: id, counter, .. }, lifecycle, .. } = *job;
        let (attempts, losses) = (lifecycle.attempts, lifecycle.losses);
        Some(GuardedTransition::cancel_waiting(id, lifecycle.state, counter, attempts, losses, "expired"))
    };
    sweep(store, fence, &EXPIRED_JOBS, &NEXT_EXPIRY, limit, decide).await
}

// Reads candidates, decides, and writes the transitions that still apply.
async fn sweep(
    store: &PostgresStore,
    fence: Fence,
    find: &Statement,
    next: &Statement,
    limit: usize,
    decide: impl Fn(&JobSnapshot) -> Option<GuardedTransition>,
) -> Result<SweepResult> {
    let limit = sweep_limit(limit)?;
    let mut effects = Effects::default();
    let tx = store.database().fenced(fence).await?;
    let mut transitions = Vec::new();
    for row in &tx.query(find, &[&limit]).await? {
        transitions.extend(decide(&JobSnapshot::read(row)?));
    }
    let settled = if transitions.is_empty() { Vec::new() } else { settle(&tx, &transitions, &mut effects).await? };
    let next_in = next_in(&tx, next).await?;
    tx.commit().await?;
    store.publish(fence, effects).await;
    Ok(SweepResult { count: settled.len(), next_in })
}

async fn next_in(tx: &FencedTx<'_>, next: &Statement) -> Result<Option<Duration>> {
    let rows = tx.query(next, &[]).await?;
    let in_ms = rows.first().and_then(|row| row.get::<_, Option<f64>>("in_ms"));
    Ok(in_ms.map(|in_ms| Duration::from_secs_f64(in_ms.max(0.0) / 1000.0)))
}
