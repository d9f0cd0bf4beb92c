//! Bounded sweeps: what time does to jobs.

use std::{collections::HashMap, time::Duration};

use orchestrix_core::{AttemptOutcome, JobId, JobState, LeaseToken};
use orchestrix_store::{AttemptEnd, Result, Swept};
use uuid::Uuid;

use crate::{
    PostgresStore,
    inspect::fold,
    row::{count, state, sweep_limit},
    settle::{Ending, Examined, Guard, ended, settle},
    statement::{
        EXPIRED, FORGET_SETTLED, NEXT_DUE, NEXT_EXPIRY, NEXT_LEASE, NEXT_TIMEOUT, OPEN_EDGES, OVERDUE_ATTEMPTS,
        OVERDUE_LEASES, PROMOTE, Statement, UNBLOCK,
    },
};

pub(crate) async fn promote(store: &PostgresStore, limit: usize) -> Result<Swept> {
    let rows = store.database().query(&PROMOTE, &[&sweep_limit(limit)?]).await?;
    let mut promoted = 0;
    for row in &rows {
        store.note_ready(JobState::Pending, row, 1);
        promoted += usize::try_from(row.get::<_, i64>(0)).unwrap_or(0);
    }
    // Somebody has to, and whoever keeps time is there anyway.
    fold(store).await?;
    swept(store, promoted, &NEXT_DUE).await
}

pub(crate) async fn reap(store: &PostgresStore, limit: usize, crash_loop: u16) -> Result<Swept> {
    let end = AttemptEnd::lost(crash_loop);
    let decide = |job: &Examined| Ending::of_attempt(job, &end, Guard::Expired);
    let count = sweep(store, &OVERDUE_LEASES, limit, decide).await?;
    swept(store, count, &NEXT_LEASE).await
}

pub(crate) async fn time_out(store: &PostgresStore, limit: usize) -> Result<Swept> {
    let end = AttemptEnd::plain(AttemptOutcome::TimedOut);
    let decide = |job: &Examined| Ending::of_attempt(job, &end, Guard::Overdue);
    let count = sweep(store, &OVERDUE_ATTEMPTS, limit, decide).await?;
    swept(store, count, &NEXT_TIMEOUT).await
}

pub(crate) async fn expire(store: &PostgresStore, limit: usize) -> Result<Swept> {
    let decide = |job: &Examined| {
        let Examined { token: LeaseToken { job: id, counter, .. }, lifecycle, .. } = *job;
        Some(Ending::cancel_waiting(id, lifecycle.state, counter, lifecycle.attempts, lifecycle.losses, "expired"))
    };
    let count = sweep(store, &EXPIRED, limit, decide).await?;
    swept(store, count, &NEXT_EXPIRY).await
}

// Finds, decides, writes what still applies.
async fn sweep(
    store: &PostgresStore,
    find: &Statement,
    limit: usize,
    decide: impl Fn(&Examined) -> Option<Ending>,
) -> Result<usize> {
    let rows = store.database().query(find, &[&sweep_limit(limit)?]).await?;
    let mut endings = Vec::with_capacity(rows.len());
    for row in &rows {
        endings.extend(decide(&Examined::read(row)?));
    }
    if endings.is_empty() {
        return Ok(0);
    }
    let settled = settle(store, &endings).await?;
    store.tell_dependents(ended(&settled)).await;
    Ok(settled.len())
}

async fn swept(store: &PostgresStore, count: usize, next: &Statement) -> Result<Swept> {
    let rows = store.database().query(next, &[]).await?;
    let next_in = rows.first().map(|row| Duration::from_secs_f64(row.get::<_, f64>(0).max(0.0) / 1000.0));
    Ok(Swept { count, next_in })
}

/// Tells children whose parents finished, whoever's they are.
pub(crate) async fn unblock(store: &PostgresStore, limit: usize) -> Result<Swept> {
    let told = tell(store, limit, None).await?;
    if told.edges == 0 {
        store.database().query(&FORGET_SETTLED, &[&sweep_limit(limit)?]).await?;
        return Ok(Swept::default());
    }
    Ok(Swept { count: told.edges, next_in: Some(Duration::ZERO) })
}

/// What one step of telling did.
pub(crate) struct Told {
    pub(crate) edges: usize,
    /// Children that were cancelled and have children of their own.
    pub(crate) cancelled: Vec<JobId>,
}

/// Tells up to `limit` children that their parents have finished; of all parents, or of these.
pub(crate) async fn tell(store: &PostgresStore, limit: usize, parents: Option<&[JobId]>) -> Result<Told> {
    let parents: Option<Vec<Uuid>> = parents.map(|ids| ids.iter().map(JobId::as_uuid).collect());
    let rows = store.database().query(&OPEN_EDGES, &[&sweep_limit(limit)?, &parents]).await?;
    if rows.is_empty() {
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
        cancelled = settle(store, &endings).await?;
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
    for row in store.database().query(&UNBLOCK, &[&children, &parents, &holds]).await? {
        store.note_ready(state(row.get(0))?, &row, 1);
    }
    let cancelled = cancelled.iter().filter(|job| job.tell_dependents).map(|job| job.id).collect();
    Ok(Told { edges: edges.len(), cancelled })
}
