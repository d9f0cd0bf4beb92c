//! The store's verbs on workers.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_core::{Instance, JobType, Queue, WorkerName};
use orchestrix_store::{
    Directive, Fence, Page, PageRequest, Presence, Queues, Result, WorkerInfo, WorkerStatus, WorkerStore,
};
use tokio_postgres::Row;

use crate::{
    PostgresStore,
    database::Params,
    job_columns::millis,
    row::{corrupt, sweep_limit},
    statement::{DIRECT_WORKER, FORGET_WORKERS, HEARTBEAT_WORKER, LIST_WORKERS, REGISTER_WORKER, REMOVE_WORKER},
};

#[async_trait]
impl WorkerStore for PostgresStore {
    async fn register_worker(&self, worker: &WorkerInfo) -> Result<Directive> {
        let queues: Option<Vec<&str>> = match &worker.queues {
            Queues::All => None,
            Queues::Named(names) => Some(names.iter().map(Queue::as_str).collect()),
        };
        let types: Option<Vec<&str>> =
            worker.job_types.as_ref().map(|types| types.iter().map(JobType::as_str).collect());
        let concurrency = i32::try_from(worker.concurrency).unwrap_or(i32::MAX);
        let instance = worker.instance.as_ref().map(Instance::as_str);
        let (dead_after, default) = (worker.silence().map(millis), millis(WorkerInfo::DEAD_AFTER));
        let params: Params<'_> =
            &[&worker.name.as_str(), &queues, &types, &concurrency, &instance, &dead_after, &default];
        let rows = self.database().query(&REGISTER_WORKER, params).await?;
        rows.first().map_or(Ok(Directive::Run), |row| directive(row.get("directive")))
    }

    async fn heartbeat_worker(&self, name: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        let free_slots = presence.free_slots.map(|slots| i32::try_from(slots).unwrap_or(i32::MAX));
        let instance = presence.instance.as_ref().map(Instance::as_str);
        let params: Params<'_> = &[&name.as_str(), &free_slots, &presence.draining, &instance];
        let rows = self.database().query(&HEARTBEAT_WORKER, params).await?;
        rows.first().map(|row| directive(row.get("directive"))).transpose()
    }

    async fn remove_worker(&self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool> {
        let instance = instance.map(Instance::as_str);
        Ok(!self.database().query(&REMOVE_WORKER, &[&name.as_str(), &instance]).await?.is_empty())
    }

    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool> {
        Ok(!self.database().query(&DIRECT_WORKER, &[&name.as_str(), &directive.as_str()]).await?.is_empty())
    }

    async fn list_workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>> {
        page.validate()?;
        let after = page.cursor.as_ref().map_or("", WorkerName::as_str);
        let rows = self.database().query(&LIST_WORKERS, &[&after, &(page.limit as i64 + 1)]).await?;
        let items: Vec<WorkerStatus> = rows.iter().take(page.limit).map(status).collect::<Result<_>>()?;
        let next = (rows.len() > page.limit).then(|| items.last().map(|worker| worker.info.name.clone())).flatten();
        Ok(Page { items, next })
    }
}

pub(crate) async fn forget_workers(
    store: &PostgresStore,
    fence: Fence,
    silence: Duration,
    limit: usize,
) -> Result<usize> {
    let limit = sweep_limit(limit)?;
    let tx = store.database().fenced(fence).await?;
    let forgotten = tx.query(&FORGET_WORKERS, &[&millis(silence), &limit]).await?.len();
    tx.commit().await?;
    Ok(forgotten)
}

fn directive(text: &str) -> Result<Directive> {
    text.parse().map_err(|error| corrupt("directive", error))
}

/// Reads a row of `list_workers.sql`.
pub(crate) fn status(row: &Row) -> Result<WorkerStatus> {
    let queues: Option<Vec<&str>> = row.get("queues");
    let types: Option<Vec<&str>> = row.get("job_types");
    Ok(WorkerStatus {
        info: WorkerInfo {
            name: WorkerName::trusted(row.get("name")),
            queues: queues.map_or(Queues::All, |names| Queues::Named(names.into_iter().map(Queue::trusted).collect())),
            job_types: types.map(|types| types.into_iter().map(JobType::trusted).collect()),
            concurrency: u32::try_from(row.get::<_, i32>("concurrency")).unwrap_or(0),
            instance: row.get::<_, Option<&str>>("instance").map(Instance::trusted),
            dead_after: Some(Duration::from_millis(u64::try_from(row.get::<_, i64>("dead_after_ms")).unwrap_or(0))),
        },
        free_slots: u32::try_from(row.get::<_, i32>("free_slots")).unwrap_or(0),
        directive: directive(row.get("directive"))?,
        started_at: row.get("started_at"),
        last_seen_at: row.get("last_seen_at"),
        seen_ago: Duration::from_micros(u64::try_from(row.get::<_, i64>("seen_ago_us")).unwrap_or(0)),
    })
}
