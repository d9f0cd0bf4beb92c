//! Advances bulk operations in turns, one page of jobs at a time.
//!
//! A step lists a page of jobs and processes it in batches. Each batch and its counts are one fenced transaction of the
//! store: a deposed leader, or a leader whose operation was aborted, changes nothing more, and its successor repeats
//! nothing.
//!
//! An unavailable store is waited for. A batch that an available store refuses is retried with growing pauses, during
//! which other operations advance. An operation whose batch is refused too often in a row at the same cursor fails.

mod refusals;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use orchestrix_core::JobId;
use orchestrix_store::{NewOperation, Operation, OperationEnd, OperationStep, Page, PageRequest, Result, StoreError};

use super::PAUSE_BETWEEN_FULL_STEPS;
use crate::{
    jitter::jittered,
    service::{LeaderContext, Service, StepResult, Trigger},
};
use refusals::Refusals;

/// The number of jobs in one page, which is one turn.
const PAGE: usize = 500;
/// The number of jobs in one transaction. It halves with each refusal, down to one.
const BATCH: usize = 100;
/// The pause while no operation can advance.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct AdvanceOperations {
    refusals: Mutex<Refusals>,
}

#[async_trait]
impl Service for AdvanceOperations {
    fn name(&self) -> &'static str {
        "advance_operations"
    }

    fn trigger(&self) -> Trigger {
        Trigger::Periodic
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        let open = leader.store.open_operations(NewOperation::MAX_OPEN).await?;
        let next = self.refusals().next_ready(open, Instant::now());
        let mut operation = match next {
            Ok(operation) => operation,
            Err(wait) => {
                let wait = wait.map_or(IDLE_PAUSE, |wait| wait.clamp(PAUSE_BETWEEN_FULL_STEPS, IDLE_PAUSE));
                return Ok(StepResult { affected: 0, next_in: Some(jittered(wait)) });
            }
        };
        let changed_before = operation.changed;
        if let Err(error) = self.advance_page(leader, &mut operation).await {
            let recorded = self.record_refusal(leader, &operation, &error).await;
            // This operation may be the only one that cannot be written: let the others go first.
            recorded.inspect_err(|_| self.refusals().postpone(&operation, Instant::now()))?;
        }
        let changed = operation.changed.saturating_sub(changed_before);
        let affected = usize::try_from(changed).unwrap_or(usize::MAX);
        Ok(StepResult { affected, next_in: Some(PAUSE_BETWEEN_FULL_STEPS) })
    }

    fn stopped_leading(&self) {
        self.refusals().clear();
    }
}

impl AdvanceOperations {
    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes the next page batch by batch. `operation` is updated after each batch.
    async fn advance_page(&self, leader: &LeaderContext<'_>, operation: &mut Operation) -> Result<()> {
        let Page { items, next } = match operation.action.narrow(&operation.filter) {
            Some(filter) => {
                leader.store.list_jobs(&filter, &PageRequest { cursor: operation.cursor, limit: PAGE }).await?
            }
            None => Page::empty(),
        };
        let jobs: Vec<JobId> = items.iter().map(|job| job.id).collect();
        let batch = match operation.dry_run {
            true => PAGE,
            false => (BATCH >> self.refusals().count(operation).min(BATCH.ilog2())).max(1),
        };
        let mut remaining = &jobs[..];
        loop {
            let (jobs, after) = remaining.split_at(batch.min(remaining.len()));
            let is_last = after.is_empty();
            let cursor = next.filter(|_| is_last).or(jobs.last().copied()).or(operation.cursor);
            let end = (is_last && next.is_none()).then_some(OperationEnd::Done);
            let step = OperationStep { from_cursor: operation.cursor, cursor, jobs: jobs.to_vec(), end };
            *operation = advance(leader, operation, step).await?;
            // The operation was aborted, or a job is locked: the next turn starts there.
            if is_last || !operation.is_at(cursor) {
                return Ok(());
            }
            remaining = after;
        }
    }

    /// Records that a batch was refused, and fails the operation if that happened too often.
    ///
    /// Writing the operation shows whether the store is available. If it is not, the refusal does not count and the
    /// service backs off.
    async fn record_refusal(
        &self,
        leader: &LeaderContext<'_>,
        operation: &Operation,
        error: &StoreError,
    ) -> Result<()> {
        let Operation { id, cursor, .. } = operation;
        let refusals = self.refusals().count(operation).saturating_add(1);
        // The database's message may be confidential to operators of a tenant, so it goes only to the log.
        let failure = match error {
            // A retry would fail again.
            StoreError::Backend(_) | StoreError::Schema(_) | StoreError::Invalid(_) => {
                Some("an internal error occurred; see the leader's log".to_owned())
            }
            _ if refusals >= leader.options.max_operation_refusals => Some(format!(
                "the same page of jobs was refused {refusals} times in a row, possibly because one job is locked; \
                 see the leader's log"
            )),
            _ => None,
        };
        let has_failed = failure.is_some();
        let end = failure.map(OperationEnd::Failed);
        advance(
            leader,
            operation,
            OperationStep { from_cursor: *cursor, cursor: *cursor, end, ..OperationStep::default() },
        )
        .await?;
        if has_failed {
            tracing::error!(operation = %id, %error, refusals, "bulk operation failed");
        } else {
            let pause = self.refusals().record(operation, Instant::now());
            tracing::warn!(operation = %id, %error, refusals, retry_in = ?pause, "bulk operation step was refused");
        }
        Ok(())
    }
}

async fn advance(leader: &LeaderContext<'_>, operation: &Operation, step: OperationStep) -> Result<Operation> {
    let now = leader.store.advance_operation(leader.fence, operation.id, step).await?;
    if now.finished_at.is_some() {
        let (state, matched, changed) = (now.state, now.matched, now.changed);
        tracing::info!(operation = %now.id, action = now.action.as_str(), %state, matched, changed, "bulk operation finished");
    }
    Ok(now)
}
