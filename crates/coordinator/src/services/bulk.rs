//! Operations on many jobs are worked off in turns, a page of jobs at a time.
//!
//! A page is listed, and then done in batches, each with what is counted of it in one fenced transaction of the store's: a leader that was
//! deposed since, or whose operation somebody stopped, changes nothing more, and whoever takes over repeats nothing.
//!
//! A store that does not answer is waited for. A step that is refused while the store answers is tried again, with growing pauses in which
//! others go on; an operation that is refused at the same place too often in a row has failed.

mod tries;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use orchestrix_core::JobId;
use orchestrix_store::{NewOperation, Operation, OperationEnd, OperationStep, Page, PageRequest, Result, StoreError};

use super::BREATH;
use crate::{
    pace::jittered,
    service::{Leader, Service, Step, When},
};
use tries::Tries;

/// Jobs of one page, which is a turn.
const PAGE: usize = 500;
/// Jobs of one transaction; half as many each time it was refused, down to one.
const BATCH: usize = 100;
/// Between looks for an operation.
const IDLE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Bulk {
    tries: Mutex<Tries>,
}

#[async_trait]
impl Service for Bulk {
    fn name(&self) -> &'static str {
        "bulk"
    }

    fn when(&self) -> When {
        When::Period
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        let open = leader.store.open_operations(NewOperation::MAX_OPEN).await?;
        let next = self.tries().next(open, Instant::now());
        let mut operation = match next {
            Ok(operation) => operation,
            Err(wait) => {
                let wait = wait.map_or(IDLE, |wait| wait.clamp(BREATH, IDLE));
                return Ok(Step { moved: 0, next: Some(jittered(wait)) });
            }
        };
        let before = operation.changed;
        if let Err(error) = self.work(leader, &mut operation).await {
            let recorded = self.refused(leader, &operation, &error).await;
            // Perhaps it is this one alone that cannot be recorded: the others come first.
            recorded.inspect_err(|_| self.tries().put_off(&operation, Instant::now()))?;
        }
        let moved = usize::try_from(operation.changed.saturating_sub(before)).unwrap_or(usize::MAX);
        Ok(Step { moved, next: Some(BREATH) })
    }

    fn rest(&self) {
        self.tries().clear();
    }
}

impl Bulk {
    fn tries(&self) -> MutexGuard<'_, Tries> {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The next page, batch by batch; `operation` stands where the last of them left it.
    async fn work(&self, leader: &Leader<'_>, operation: &mut Operation) -> Result<()> {
        let Page { items, next } = match operation.action.narrow(&operation.filter) {
            Some(filter) => {
                leader.store.list_jobs(&filter, &PageRequest { cursor: operation.cursor, limit: PAGE }).await?
            }
            None => Page::empty(),
        };
        let jobs: Vec<JobId> = items.iter().map(|job| job.id).collect();
        let batch = match operation.dry_run {
            true => PAGE,
            false => (BATCH >> self.tries().so_far(operation).min(BATCH.ilog2())).max(1),
        };
        let mut rest = &jobs[..];
        loop {
            let (jobs, after) = rest.split_at(batch.min(rest.len()));
            let last = after.is_empty();
            let cursor = next.filter(|_| last).or(jobs.last().copied()).or(operation.cursor);
            let end = (last && next.is_none()).then_some(OperationEnd::Done);
            let step = OperationStep { from_cursor: operation.cursor, cursor, jobs: jobs.to_vec(), end };
            *operation = record(leader, operation, step).await?;
            // Stopped, or a job is locked: then the next turn begins there.
            if last || !operation.is_at(cursor) {
                return Ok(());
            }
            rest = after;
        }
    }

    // What is recorded here tells whether the store answers: if it does not, nothing is counted, and the service waits for it.
    async fn refused(&self, leader: &Leader<'_>, operation: &Operation, error: &StoreError) -> Result<()> {
        let Operation { id, cursor, .. } = operation;
        let times = self.tries().so_far(operation).saturating_add(1);
        // What a database says is for whoever runs it, and not for every operator of a tenant.
        let end = match error {
            // Trying again would come to the same.
            StoreError::Backend(_) | StoreError::Schema(_) | StoreError::Invalid(_) => {
                Some("something went wrong; the log of the leader says what".to_owned())
            }
            _ if times >= leader.options.bulk_tries => Some(format!(
                "the same page of jobs was refused {times} times in a row, perhaps because one of them is locked; the log of the leader says more"
            )),
            _ => None,
        };
        let over = end.is_some();
        let end = end.map(OperationEnd::Failed);
        record(
            leader,
            operation,
            OperationStep { from_cursor: *cursor, cursor: *cursor, end, ..OperationStep::default() },
        )
        .await?;
        if over {
            tracing::error!(operation = %id, %error, times, "an operation cannot go on");
        } else {
            let rest = self.tries().refused(operation, Instant::now());
            tracing::warn!(operation = %id, %error, times, retry_in = ?rest, "a step of an operation was refused");
        }
        Ok(())
    }
}

async fn record(leader: &Leader<'_>, operation: &Operation, step: OperationStep) -> Result<Operation> {
    let now = leader.store.advance_operation(leader.fence, operation.id, step).await?;
    if now.finished_at.is_some() {
        let (state, matched, changed) = (now.state, now.matched, now.changed);
        tracing::info!(operation = %now.id, action = now.action.as_str(), %state, matched, changed, "an operation is over");
    }
    Ok(now)
}
