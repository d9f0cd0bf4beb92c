//! What clients and operators do to single jobs and to queues.

use orchestrix_core::{Event, IllegalTransition, JobId, JobState, Priority, Queue, Readiness};
use orchestrix_store::{BulkAction, Fence, JobFilter, Page, PageRequest, Result, StoreError, Wakeup};
use uuid::Uuid;

use crate::{
    PostgresStore, inspect,
    row::{count, state},
    settle::{Ending, ended, settle_now},
    statement::{FIND_JOB, PAUSE_QUEUE, PAUSED_QUEUES, RELEASE_HOLD, REPRIORITIZE, REQUEST_CANCEL, RETRY},
};

/// How often a job that moves while we look at it is looked at again.
const ROUNDS: usize = 20;

struct Found {
    state: JobState,
    counter: i32,
    attempts: u16,
    losses: u16,
}

async fn find(store: &PostgresStore, id: JobId) -> Result<Option<Found>> {
    let rows = store.database().query(&FIND_JOB, &[&id.as_uuid()]).await?;
    rows.first()
        .map(|row| {
            Ok(Found {
                state: state(row.get(0))?,
                counter: row.get(1),
                attempts: count(row.get(2)),
                losses: count(row.get(3)),
            })
        })
        .transpose()
}

fn illegal(from: JobState, event: Event) -> StoreError {
    StoreError::IllegalTransition(IllegalTransition { from, event })
}

fn busy(id: JobId) -> StoreError {
    StoreError::Unavailable(format!("job {id} keeps changing: try again"))
}

pub(crate) async fn cancel(store: &PostgresStore, id: JobId) -> Result<JobState> {
    for _ in 0..ROUNDS {
        let found = find(store, id).await?.ok_or(StoreError::JobNotFound(id))?;
        let next = found.state.next(Event::Cancel)?;
        if found.state == JobState::Cancelled {
            return Ok(next);
        }
        if found.state.is_leased() {
            let rows = store.database().query(&REQUEST_CANCEL, &[&id.as_uuid()]).await?;
            if let Some(row) = rows.first() {
                return state(row.get(0));
            }
            continue;
        }
        let ending = Ending::cancel_waiting(id, found.state, found.counter, found.attempts, found.losses, "requested");
        if let Some(settled) = settle_now(store, &[ending]).await?.first() {
            store.tell_dependents(Fence::NONE, ended(std::slice::from_ref(settled))).await;
            return Ok(settled.state);
        }
    }
    Err(busy(id))
}

pub(crate) async fn release_hold(store: &PostgresStore, id: JobId) -> Result<JobState> {
    let rows = store.database().query(&RELEASE_HOLD, &[&id.as_uuid()]).await?;
    if let Some(row) = rows.first() {
        let state = state(row.get(0))?;
        store.note_ready(state, row, 1);
        return Ok(state);
    }
    match find(store, id).await? {
        Some(found) => Err(illegal(found.state, Event::Release(Readiness::Ready))),
        None => Err(StoreError::JobNotFound(id)),
    }
}

pub(crate) async fn retry(store: &PostgresStore, id: JobId) -> Result<JobState> {
    if retry_all(store, &[id]).await?.is_empty() {
        let found = find(store, id).await?.ok_or(StoreError::JobNotFound(id))?;
        return Err(illegal(found.state, Event::Redrive));
    }
    Ok(JobState::Pending)
}

async fn retry_all(store: &PostgresStore, ids: &[JobId]) -> Result<Vec<JobId>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = ids.iter().map(JobId::as_uuid).collect();
    let rows = store.database().query(&RETRY, &[&ids]).await?;
    for row in &rows {
        store.note_ready(JobState::Pending, row, 1);
    }
    let mut retried: Vec<JobId> = rows.iter().map(|row| JobId::from_uuid(row.get(0))).collect();
    retried.sort_unstable_by(|a, b| b.cmp(a));
    Ok(retried)
}

pub(crate) async fn retry_many(
    store: &PostgresStore,
    filter: &JobFilter,
    page: &PageRequest<JobId>,
) -> Result<Page<JobId, JobId>> {
    page.validate()?;
    let Some(filter) = BulkAction::Retry.narrow(filter) else { return Ok(Page::empty()) };
    let Page { items, next } = inspect::list(store, &filter, page).await?;
    let ids: Vec<JobId> = items.iter().map(|job| job.id).collect();
    Ok(Page { items: retry_all(store, &ids).await?, next })
}

pub(crate) async fn reprioritize(store: &PostgresStore, id: JobId, priority: Priority) -> Result<JobState> {
    let rows = store.database().query(&REPRIORITIZE, &[&id.as_uuid(), &-priority.get()]).await?;
    if let Some(row) = rows.first() {
        let state = state(row.get(0))?;
        store.note_ready(state, row, 1);
        return Ok(state);
    }
    match find(store, id).await? {
        Some(found) if found.state.is_terminal() => Err(illegal(found.state, Event::Promote)),
        Some(_) => Err(busy(id)),
        None => Err(StoreError::JobNotFound(id)),
    }
}

pub(crate) async fn pause_queue(store: &PostgresStore, queue: &Queue, paused: bool) -> Result<()> {
    store.database().query(&PAUSE_QUEUE, &[&queue.as_str(), &paused]).await?;
    if !paused {
        store.wake(Wakeup::Queue(queue.clone()));
    }
    Ok(())
}

pub(crate) async fn paused_queues(store: &PostgresStore) -> Result<Vec<Queue>> {
    let rows = store.database().query(&PAUSED_QUEUES, &[]).await?;
    Ok(rows.iter().map(|row| Queue::trusted(row.get(0))).collect())
}
