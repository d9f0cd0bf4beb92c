//! Bounded sweeps: what time does to jobs.

use std::{collections::HashMap, time::Duration};

use orchestrix_core::{AttemptOutcome, JobId, JobState, LeaseToken};
use orchestrix_store::{EndedAttempt, Fence, Result, SweepResult};
use uuid::Uuid;

use crate::{
    PostgresStore,
    row::{count, state, sweep_limit},
    settle::{Ending, Examined, Guard, ended, note, settle},
    statement::{
        EXPIRED, FORGET_SETTLED, NEXT_DUE, NEXT_EXPIRY, NEXT_LEASE, NEXT_TIMEOUT, OPEN_EDGES, OVERDUE_ATTEMPTS,
        OVERDUE_LEASES, PROMOTE, Statement, UNBLOCK,
    },
    work::Work,
};

pub(crate) async fn promote(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let limit = sweep_limit(limit)?;
    let work = store.database().work(fence).await?;
    let rows = work.query(&PROMOTE, &[&limit]).await?;
    let next_in = next_in(&work, &NEXT_DUE).await?;
    work.commit().await?;
    let mut count = 0;
    for row in &rows {
        store.note_ready(JobState::Pending, row, 1);
        count += usize::try_from(row.get::<_, i64>(0)).unwrap_or(0);
    }
    Ok(SweepResult { count, next_in })
}

pub(crate) async fn reap(store: &PostgresStore, fence: Fence, limit: usize, crash_loop: u16) -> Result<SweepResult> {
    let end = EndedAttempt::lost(crash_loop);
    let decide = |job: &Examined| Ending::of_attempt(job, &end, Guard::Expired);
    sweep(store, fence, &OVERDUE_LEASES, &NEXT_LEASE, limit, decide).await
}

pub(crate) async fn time_out(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let end = EndedAttempt::plain(AttemptOutcome::TimedOut);
    let decide = |job: &Examined| Ending::of_attempt(job, &end, Guard::Overdue);
    sweep(store, fence, &OVERDUE_ATTEMPTS, &NEXT_TIMEOUT, limit, decide).await
}

pub(crate) async fn expire(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let decide = |job: &Examined| {
        let Examined { token: LeaseToken { job: id, counter, .. }, lifecycle, .. } = *job;
        Some(Ending::cancel_waiting(id, lifecycle.state, counter, lifecycle.attempts, lifecycle.losses, "expired"))
    };
    sweep(store, fence, &EXPIRED, &NEXT_EXPIRY, limit, decide).await
}

// Finds, decides, writes what still applies; then tells whoever waits for those that ended.
async fn sweep(
    store: &PostgresStore,
    fence: Fence,
    find: &Statement,
    next: &Statement,
    limit: usize,
    decide: impl Fn(&Examined) -> Option<Ending>,
) -> Result<SweepResult> {
    let limit = sweep_limit(limit)?;
    let work = store.database().work(fence).await?;
    let mut endings = Vec::new();
    for row in &work.query(find, &[&limit]).await? {
        endings.extend(decide(&Examined::read(row)?));
    }
    let settled = if endings.is_empty() { Vec::new() } else { settle(&work, &endings).await? };
    let next_in = next_in(&work, next).await?;
    work.commit().await?;
    note(store, &settled);
    store.tell_dependents(fence, ended(&settled)).await;
    Ok(SweepResult { count: settled.len(), next_in })
}

async fn next_in(work: &Work<'_>, next: &Statement) -> Result<Option<Duration>> {
    let rows = work.query(next, &[]).await?;
    Ok(rows.first().map(|row| Duration::from_secs_f64(row.get::<_, f64>(0).max(0.0) / 1000.0)))
}

/// Tells children whose parents finished, whoever's they are.
pub(crate) async fn unblock(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let told = tell(store, fence, limit, None).await?;
    if told.edges == 0 {
        let work = store.database().work(fence).await?;
        work.query(&FORGET_SETTLED, &[&sweep_limit(limit)?]).await?;
        work.commit().await?;
        return Ok(SweepResult::default());
    }
    Ok(SweepResult { count: told.edges, next_in: Some(Duration::ZERO) })
}

/// What one step of telling did.
pub(crate) struct Told {
    pub(crate) edges: usize,
    /// Children that were cancelled and have children of their own.
    pub(crate) cancelled: Vec<JobId>,
}

/// Tells up to `limit` children that their parents have finished; of all parents, or of these.
pub(crate) async fn tell(store: &PostgresStore, fence: Fence, limit: usize, parents: Option<&[JobId]>) -> Result<Told> {
    let parents: Option<Vec<Uuid>> = parents.map(|ids| ids.iter().map(JobId::as_uuid).collect());
    let limit = sweep_limit(limit)?;
    let work = store.database().work(fence).await?;
    let rows = work.query(&OPEN_EDGES, &[&limit, &parents]).await?;
    if rows.is_empty() {
        work.commit().await?;
        return Ok(Told { edges: 0, cancelled: Vec::new() });
    }
    // Children to cancel go first: an edge is turned only when what it stands for is done, so a crash in between
    // leaves it open and the next sweep finds it.
    let mut doomed: HashMap<Uuid, Ending> = HashMap::new();
    for row in &rows {
        let cancels = row.get::<_, bool>(2) && row.get::<_, Option<&str>>(7).is_none_or(|policy| policy == "cancel");
        if let (true, Some(text)) = (cancels, row.get::<_, Option<&str>>(3)) {
            let was = state(text)?;
            if matches!(was, JobState::Created | JobState::Blocked) {
                let child = row.get(0);
                let id = JobId::from_uuid(child);
                let (attempts, losses) = (count(row.get(5)), count(row.get(6)));
                doomed
                    .insert(child, Ending::cancel_waiting(id, was, row.get(4), attempts, losses, "dependency_failed"));
            }
        }
    }
    let mut cancelled = Vec::new();
    if !doomed.is_empty() {
        let endings: Vec<Ending> = doomed.values().cloned().collect();
        cancelled = settle(&work, &endings).await?;
    }
    let mut edges: Vec<(Uuid, Uuid, bool)> = rows
        .iter()
        // A child that was to be cancelled and changed meanwhile is looked at again.
        .filter(|row| {
            let child = row.get::<_, Uuid>(0);
            !doomed.contains_key(&child) || cancelled.iter().any(|job| job.id.as_uuid() == child)
        })
        .map(|row| (row.get(0), row.get(1), row.get(2) && row.get::<_, Option<&str>>(7) == Some("hold")))
        .collect();
    edges.sort_unstable();
    let children: Vec<Uuid> = edges.iter().map(|edge| edge.0).collect();
    let parents: Vec<Uuid> = edges.iter().map(|edge| edge.1).collect();
    let holds: Vec<bool> = edges.iter().map(|edge| edge.2).collect();
    let moved = work.query(&UNBLOCK, &[&children, &parents, &holds]).await?;
    work.commit().await?;
    note(store, &cancelled);
    for row in &moved {
        store.note_ready(state(row.get(0))?, row, 1);
    }
    let cancelled = cancelled.iter().filter(|job| job.tell_dependents).map(|job| job.id).collect();
    Ok(Told { edges: edges.len(), cancelled })
}
