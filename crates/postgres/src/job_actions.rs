//! What clients and operators do to single jobs.

use orchestrix_core::{Event, IllegalTransition, JobId, JobState, Priority, Readiness};
use orchestrix_store::{BulkAction, Fence, JobFilter, Page, PageRequest, Result, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    effects::Effects,
    inspect,
    row::{count, state},
    settle::{GuardedTransition, note_moved, settle_now},
    statement::{FIND_JOB_LIFECYCLE, RELEASE_HELD_JOB, REPRIORITIZE_JOB, REQUEST_CANCEL, RETRY_JOBS},
};

/// How often a job that changes between the read and the write is read again.
const ROUNDS: usize = 20;

struct CurrentJob {
    state: JobState,
    counter: i32,
    attempts: u16,
    losses: u16,
}

async fn find(store: &PostgresStore, id: JobId) -> Result<Option<CurrentJob>> {
    let rows = store.database().query(&FIND_JOB_LIFECYCLE, &[&id.as_uuid()]).await?;
    let read = |row: &Row| {
        Ok(CurrentJob {
            state: state(row.get("state"))?,
            counter: row.get("lease_counter"),
            attempts: count(row.get("attempts")),
            losses: count(row.get("losses")),
        })
    };
    rows.first().map(read).transpose()
}

fn illegal(from: JobState, event: Event) -> StoreError {
    StoreError::IllegalTransition(IllegalTransition { from, event })
}

fn busy(id: JobId) -> StoreError {
    StoreError::Unavailable(format!("job {id} keeps changing: try again"))
}

pub(crate) async fn cancel_job(store: &PostgresStore, id: JobId) -> Result<JobState> {
    for _ in 0..ROUNDS {
        let job = find(store, id).await?.ok_or(StoreError::JobNotFound(id))?;
        let next = job.state.next(Event::Cancel)?;
        if job.state == JobState::Cancelled {
            return Ok(next);
        }
        if job.state.is_leased() {
            let rows = store.database().query(&REQUEST_CANCEL, &[&id.as_uuid()]).await?;
            if let Some(row) = rows.first() {
                return state(row.get("state"));
            }
            continue;
        }
        let CurrentJob { state, counter, attempts, losses } = job;
        let cancel = GuardedTransition::cancel_waiting(id, state, counter, attempts, losses, "requested");
        if let Some(settled) = settle_now(store, &[cancel]).await?.first() {
            return Ok(settled.state);
        }
    }
    Err(busy(id))
}

pub(crate) async fn release_held_job(store: &PostgresStore, id: JobId) -> Result<JobState> {
    let rows = store.database().query(&RELEASE_HELD_JOB, &[&id.as_uuid()]).await?;
    if let Some(row) = rows.first() {
        return publish_moved(store, row).await;
    }
    match find(store, id).await? {
        Some(job) => Err(illegal(job.state, Event::Release(Readiness::Ready))),
        None => Err(StoreError::JobNotFound(id)),
    }
}

// Publishes that a job moved, and returns its state.
async fn publish_moved(store: &PostgresStore, row: &Row) -> Result<JobState> {
    let state = state(row.get("state"))?;
    let mut effects = Effects::default();
    note_moved(state, row, &mut effects);
    store.publish(Fence::NONE, effects).await;
    Ok(state)
}

pub(crate) async fn retry_job(store: &PostgresStore, id: JobId) -> Result<JobState> {
    if retry(store, &[id]).await?.is_empty() {
        let job = find(store, id).await?.ok_or(StoreError::JobNotFound(id))?;
        return Err(illegal(job.state, Event::Redrive));
    }
    Ok(JobState::Pending)
}

async fn retry(store: &PostgresStore, ids: &[JobId]) -> Result<Vec<JobId>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = ids.iter().map(JobId::as_uuid).collect();
    let rows = store.database().query(&RETRY_JOBS, &[&ids]).await?;
    let mut effects = Effects::default();
    rows.iter().for_each(|row| note_moved(JobState::Pending, row, &mut effects));
    store.publish(Fence::NONE, effects).await;
    let mut retried: Vec<JobId> = rows.iter().map(|row| JobId::from_uuid(row.get("id"))).collect();
    retried.sort_unstable_by(|a, b| b.cmp(a));
    Ok(retried)
}

pub(crate) async fn retry_jobs(
    store: &PostgresStore,
    filter: &JobFilter,
    page: &PageRequest<JobId>,
) -> Result<Page<JobId, JobId>> {
    page.validate()?;
    let Some(filter) = BulkAction::Retry.narrow(filter) else { return Ok(Page::empty()) };
    let Page { items, next } = inspect::list_jobs(store, &filter, page).await?;
    let ids: Vec<JobId> = items.iter().map(|job| job.id).collect();
    Ok(Page { items: retry(store, &ids).await?, next })
}

pub(crate) async fn reprioritize_job(store: &PostgresStore, id: JobId, priority: Priority) -> Result<JobState> {
    let rows = store.database().query(&REPRIORITIZE_JOB, &[&id.as_uuid(), &-priority.get()]).await?;
    if let Some(row) = rows.first() {
        return publish_moved(store, row).await;
    }
    match find(store, id).await? {
        Some(job) if job.state.is_terminal() => Err(illegal(job.state, Event::Promote)),
        Some(_) => Err(busy(id)),
        None => Err(StoreError::JobNotFound(id)),
    }
}
