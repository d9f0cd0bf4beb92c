//! Operations on many jobs are worked off, the oldest first and a page of jobs at a time.
//!
//! A page is done before it is recorded as done. Whoever takes over in between does it again, which changes nothing that was changed
//! already; what the first one had done of it is then not counted.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use orchestrix_core::JobId;
use orchestrix_store::{
    Advance, BulkAction, JobFilter, Operation, OperationEnd, Page, PageRequest, Result, Store, StoreError,
};

use super::BREATH;
use crate::{
    pace::jittered,
    service::{Leader, Service, Step, When},
};

/// Jobs of one page.
const PAGE: usize = 500;
/// Between looks for an operation.
const IDLE: Duration = Duration::from_secs(1);

pub(super) struct Bulk;

#[async_trait]
impl Service for Bulk {
    fn name(&self) -> &'static str {
        "bulk"
    }

    fn when(&self) -> When {
        When::Period
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        let Some(operation) = leader.store.open_operations(1).await?.pop() else {
            return Ok(Step { moved: 0, next: Some(jittered(IDLE)) });
        };
        let step = match work(leader.store, &operation).await {
            // Trying again would come to the same, and keep the others waiting for ever.
            Err(error @ (StoreError::Backend(_) | StoreError::Schema(_) | StoreError::Invalid(_))) => {
                failed(&operation, &error)
            }
            step => step?,
        };
        let moved = usize::try_from(step.changed).unwrap_or(usize::MAX);
        let now = leader.store.advance_operation(leader.fence, operation.id, step).await?;
        if now.finished_at.is_some() {
            let (state, matched, changed) = (now.state, now.matched, now.changed);
            tracing::info!(operation = %now.id, action = now.action.as_str(), %state, matched, changed, "an operation is over");
        }
        Ok(Step { moved, next: Some(BREATH) })
    }
}

fn failed(operation: &Operation, error: &StoreError) -> Advance {
    // What a database says is for whoever runs it, and not for every operator of a tenant.
    tracing::error!(operation = %operation.id, %error, "an operation cannot go on");
    let end = Some(OperationEnd::Failed("something went wrong; the log of the leader says what".into()));
    Advance { from_cursor: operation.cursor, cursor: operation.cursor, end, ..Advance::default() }
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
