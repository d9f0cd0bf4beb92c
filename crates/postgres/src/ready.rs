//! Keeping ready batches and pending jobs in step.
//!
//! A claim deletes the batches it empties. Batches whose jobs were cancelled, or that no worker asks for, are deleted
//! here. A pending job without a batch would never be claimed; no statement leaves one behind, but a person with a
//! database console may: it gets a batch here.

use std::sync::{Mutex, PoisonError};

use orchestrix_core::Timestamp;
use orchestrix_store::{Fence, Result};
use uuid::Uuid;

use crate::{
    PostgresStore,
    statement::{PRUNE_READY, REPAIR_PARKED, RESTORE_READY},
};

/// Batches or jobs that one statement examines, and the statements of one call for each.
const STEP: i64 = 1_000;
const STEPS: usize = 50;

/// Where the next call continues, in this process. A new process begins at the start.
#[derive(Debug, Default)]
pub(crate) struct RepairProgress(Mutex<Positions>);

#[derive(Debug, Default, Clone)]
struct Positions {
    batch: BatchPosition,
    job: Uuid,
}

/// A ready batch, by the columns of the index `ready_lane`. The default is before all.
#[derive(Debug, Clone)]
struct BatchPosition {
    queue: String,
    job_type: String,
    rank: i16,
    ring: i64,
    eligible_at: Timestamp,
    id: Uuid,
}

impl Default for BatchPosition {
    fn default() -> Self {
        let (queue, job_type) = (String::new(), String::new());
        Self { queue, job_type, rank: i16::MIN, ring: i64::MIN, eligible_at: Timestamp::UNIX_EPOCH, id: Uuid::nil() }
    }
}

/// Deletes batches without pending jobs, adds missing ones, and returns parked ones of queues that are not paused.
/// Examines a bounded part of the tables.
pub(crate) async fn repair_ready(store: &PostgresStore, fence: Fence) -> Result<()> {
    let Positions { batch, job } = store.repair_progress().lock().clone();
    let batch = prune_ready(store, fence, batch).await?;
    store.repair_progress().lock().batch = batch;
    let job = restore_ready(store, fence, job).await?;
    store.repair_progress().lock().job = job;
    let tx = store.database().fenced(fence).await?;
    tx.query(&REPAIR_PARKED, &[&STEP]).await?;
    tx.commit().await
}

async fn prune_ready(store: &PostgresStore, fence: Fence, mut after: BatchPosition) -> Result<BatchPosition> {
    for _ in 0..STEPS {
        let BatchPosition { queue, job_type, rank, ring, eligible_at, id } = &after;
        let tx = store.database().fenced(fence).await?;
        let rows = tx.query(&PRUNE_READY, &[queue, job_type, rank, ring, eligible_at, id, &STEP]).await?;
        tx.commit().await?;
        let Some(row) = rows.first() else { return Ok(BatchPosition::default()) };
        after = BatchPosition {
            queue: row.get("queue"),
            job_type: row.get("job_type"),
            rank: row.get("rank"),
            ring: row.get("ring"),
            eligible_at: row.get("eligible_at"),
            id: row.get("first_id"),
        };
    }
    Ok(after)
}

async fn restore_ready(store: &PostgresStore, fence: Fence, mut after: Uuid) -> Result<Uuid> {
    for _ in 0..STEPS {
        let tx = store.database().fenced(fence).await?;
        let rows = tx.query(&RESTORE_READY, &[&after, &STEP]).await?;
        tx.commit().await?;
        let Some(row) = rows.first() else { return Ok(Uuid::nil()) };
        after = row.get("id");
        let added: i64 = row.get("added");
        if added > 0 {
            tracing::warn!(jobs = added, "pending jobs were in no ready batch, so no claim found them; added");
            store.known_turns().reset();
        }
    }
    Ok(after)
}

impl RepairProgress {
    fn lock(&self) -> std::sync::MutexGuard<'_, Positions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
