//! Workers as rows.

use std::time::Duration;

use orchestrix_core::{Instance, JobType, Queue, WorkerName};
use orchestrix_store::{Directive, Fence, Page, PageRequest, Presence, Queues, Result, WorkerInfo, WorkerStatus};
use tokio_postgres::Row;

use crate::{
    PostgresStore,
    database::Params,
    record::millis,
    row::{corrupt, sweep_limit},
    statement::{DIRECT_WORKER, FORGET_WORKERS, HEARTBEAT_WORKER, REGISTER_WORKER, REMOVE_WORKER, WORKERS},
};

pub(crate) async fn register(store: &PostgresStore, worker: &WorkerInfo) -> Result<Directive> {
    let queues: Option<Vec<&str>> = match &worker.queues {
        Queues::All => None,
        Queues::Named(names) => Some(names.iter().map(Queue::as_str).collect()),
    };
    let types: Option<Vec<&str>> = worker.job_types.as_ref().map(|types| types.iter().map(JobType::as_str).collect());
    let concurrency = i32::try_from(worker.concurrency).unwrap_or(i32::MAX);
    let instance = worker.instance.as_ref().map(Instance::as_str);
    let (silence, usual) = (worker.silence().map(millis), millis(WorkerInfo::DEAD_AFTER));
    let rows = store
        .database()
        .query(&REGISTER_WORKER, &[&worker.name.as_str(), &queues, &types, &concurrency, &instance, &silence, &usual])
        .await?;
    rows.first().map_or(Ok(Directive::Run), |row| directive(row.get(0)))
}

pub(crate) async fn heartbeat(
    store: &PostgresStore,
    name: &WorkerName,
    presence: &Presence,
) -> Result<Option<Directive>> {
    let free_slots = presence.free_slots.map(|slots| i32::try_from(slots).unwrap_or(i32::MAX));
    let instance = presence.instance.as_ref().map(Instance::as_str);
    let params: Params<'_> = &[&name.as_str(), &free_slots, &presence.draining, &instance];
    let rows = store.database().query(&HEARTBEAT_WORKER, params).await?;
    rows.first().map(|row| directive(row.get(0))).transpose()
}

fn directive(text: &str) -> Result<Directive> {
    text.parse().map_err(|error| corrupt("directive", error))
}

pub(crate) async fn direct(store: &PostgresStore, name: &WorkerName, directive: Directive) -> Result<bool> {
    Ok(!store.database().query(&DIRECT_WORKER, &[&name.as_str(), &directive.as_str()]).await?.is_empty())
}

pub(crate) async fn remove(store: &PostgresStore, name: &WorkerName, instance: Option<&Instance>) -> Result<bool> {
    let instance = instance.map(Instance::as_str);
    Ok(!store.database().query(&REMOVE_WORKER, &[&name.as_str(), &instance]).await?.is_empty())
}

pub(crate) async fn forget(store: &PostgresStore, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
    let limit = sweep_limit(limit)?;
    let work = store.database().work(fence).await?;
    let forgotten = work.query(&FORGET_WORKERS, &[&millis(silence), &limit]).await?.len();
    work.commit().await?;
    Ok(forgotten)
}

pub(crate) async fn list(
    store: &PostgresStore,
    page: &PageRequest<WorkerName>,
) -> Result<Page<WorkerStatus, WorkerName>> {
    page.validate()?;
    let after = page.cursor.as_ref().map_or("", WorkerName::as_str);
    let rows = store.database().query(&WORKERS, &[&after, &(page.limit as i64 + 1)]).await?;
    let items: Vec<WorkerStatus> = rows.iter().take(page.limit).map(status).collect::<Result<_>>()?;
    let next = (rows.len() > page.limit).then(|| items.last().map(|worker| worker.info.name.clone())).flatten();
    Ok(Page { items, next })
}

/// A row of the list.
pub(crate) fn status(row: &Row) -> Result<WorkerStatus> {
    let queues: Option<Vec<&str>> = row.get(1);
    let types: Option<Vec<&str>> = row.get(2);
    Ok(WorkerStatus {
        info: WorkerInfo {
            name: WorkerName::trusted(row.get(0)),
            queues: queues.map_or(Queues::All, |names| Queues::Named(names.into_iter().map(Queue::trusted).collect())),
            job_types: types.map(|types| types.into_iter().map(JobType::trusted).collect()),
            concurrency: u32::try_from(row.get::<_, i32>(3)).unwrap_or(0),
            instance: row.get::<_, Option<&str>>(8).map(Instance::trusted),
            dead_after: Some(Duration::from_millis(u64::try_from(row.get::<_, i64>(9)).unwrap_or(0))),
        },
        free_slots: u32::try_from(row.get::<_, i32>(4)).unwrap_or(0),
        directive: directive(row.get(5))?,
        started_at: row.get(6),
        last_seen_at: row.get(7),
        seen_ago: Duration::from_micros(u64::try_from(row.get::<_, i64>(10)).unwrap_or(0)),
    })
}
