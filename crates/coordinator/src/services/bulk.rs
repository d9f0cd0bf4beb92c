//! Operations on many jobs are worked off in turns, a page of jobs at a time.
//!
//! A page is done before it is recorded as done. Whoever takes over in between does it again, which changes nothing that was changed
//! already; what the first one had done of it is then not counted.
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
use orchestrix_store::{
    Advance, BulkAction, JobFilter, NewOperation, Operation, OperationEnd, Page, PageRequest, Result, Store, StoreError,
};

use super::BREATH;
use crate::{
    pace::jittered,
    service::{Leader, Service, Step, When},
};
use tries::Tries;

/// Jobs of one page.
const PAGE: usize = 500;
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
        let operation = match next {
            Ok(operation) => operation,
            Err(wait) => {
                let wait = wait.map_or(IDLE, |wait| wait.clamp(BREATH, IDLE));
                return Ok(Step { moved: 0, next: Some(jittered(wait)) });
            }
        };
        let (moved, recorded) = match work(leader.store, &operation).await {
            Ok(step) => {
                let moved = usize::try_from(step.changed).unwrap_or(usize::MAX);
                (moved, record(leader, &operation, step).await)
            }
            Err(error) => (0, self.refused(leader, &operation, &error).await),
        };
        // Perhaps it is this one alone that cannot be recorded: the others come first.
        recorded.inspect_err(|_| self.tries().put_off(&operation, Instant::now()))?;
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
        record(leader, operation, Advance { from_cursor: *cursor, cursor: *cursor, end, ..Advance::default() }).await?;
        if over {
            tracing::error!(operation = %id, %error, times, "an operation cannot go on");
        } else {
            let rest = self.tries().refused(operation, Instant::now());
            tracing::warn!(operation = %id, %error, times, retry_in = ?rest, "a step of an operation was refused");
        }
        Ok(())
    }
}

async fn record(leader: &Leader<'_>, operation: &Operation, step: Advance) -> Result<()> {
    let now = leader.store.advance_operation(leader.fence, operation.id, step).await?;
    if now.finished_at.is_some() {
        let (state, matched, changed) = (now.state, now.matched, now.changed);
        tracing::info!(operation = %now.id, action = now.action.as_str(), %state, matched, changed, "an operation is over");
    }
    Ok(())
}

// The next page: what there is to do, done.
async fn work(store: &dyn Store, operation: &Operation) -> Result<Advance> {
    let Page { items, next } = match operation.action.narrow(&operation.filter) {
        Some(filter) => page(store, &filter, operation.cursor).await?,
        None => Page { items: Vec::new(), next: None },
    };
    let matched = items.len() as u64;
    let mut step = Advance {
        from_cursor: operation.cursor,
        cursor: next.or(items.last().copied()).or(operation.cursor),
        matched,
        end: next.is_none().then_some(OperationEnd::Done),
        ..Advance::default()
    };
    if !operation.dry_run {
        step.changed = act(store, operation.action, items).await?;
        step.refused = matched - step.changed;
    }
    Ok(step)
}

async fn page(store: &dyn Store, filter: &JobFilter, cursor: Option<JobId>) -> Result<Page<JobId, JobId>> {
    let page = store.list(filter, &PageRequest { cursor, limit: PAGE }).await?;
    Ok(Page { items: page.items.into_iter().map(|job| job.id).collect(), next: page.next })
}

// Eight at a time; how many took it.
async fn act(store: &dyn Store, action: BulkAction, jobs: Vec<JobId>) -> Result<u64> {
    let jobs = Mutex::new(jobs.into_iter());
    let lane = async || {
        let mut changed = 0;
        loop {
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(id) = next else { return Ok::<u64, StoreError>(changed) };
            changed += u64::from(act_on(store, action, id).await?);
        }
    };
    let (a, b, c, d, e, f, g, h) = tokio::try_join!(lane(), lane(), lane(), lane(), lane(), lane(), lane(), lane())?;
    Ok(a + b + c + d + e + f + g + h)
}

// Whether it took it: somebody else may have moved or forgotten it since it was listed.
async fn act_on(store: &dyn Store, action: BulkAction, id: JobId) -> Result<bool> {
    let answer = match action {
        BulkAction::Retry => store.retry(id).await,
        BulkAction::Cancel => store.cancel(id).await,
        BulkAction::Priority(priority) => store.reprioritize(id, priority).await,
    };
    match answer {
        Ok(_) => Ok(true),
        Err(StoreError::JobNotFound(_) | StoreError::IllegalTransition(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
