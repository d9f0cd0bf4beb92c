//! `/admin/stats`: statistics of the whole system.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use orchestrix_api::{
    admin::stats::{QueueStats, Stats, WorkerStats},
    seconds::seconds,
};
use orchestrix_store::{Directive, NewOperation, PageRequest, Result, Store};

use crate::{App, api_error::ApiError};

/// The page size, and the most queues and nodes that are counted.
const PAGE_SIZE: usize = PageRequest::<()>::MAX_LIMIT;
/// The most pages of workers that are counted.
const MAX_WORKER_PAGES: usize = 10;

/// Retrieves statistics of the whole system.
///
/// Each number counts a bounded number of items, so the cost is bounded.
#[utoipa::path(
    get,
    path = "/admin/stats",
    tag = "admin",
    operation_id = "getStats",
    responses((status = 200, description = "The statistics.", body = Stats)),
)]
pub(crate) async fn get(State(app): State<Arc<App>>) -> Result<Json<Stats>, ApiError> {
    let store = &*app.store;
    Ok(Json(Stats {
        queues: count_queues(store).await?,
        workers: count_workers(store).await?,
        nodes: store.list_nodes(&PageRequest::first(PAGE_SIZE)).await?.items.len(),
        // Read separately: the leader may not be among the nodes counted.
        leader: store.leader().await?,
        open_operations: store.open_operations(NewOperation::MAX_OPEN).await?.len(),
    }))
}

async fn count_queues(store: &dyn Store) -> Result<QueueStats> {
    let page = store.queue_depths(&PageRequest::first(PAGE_SIZE)).await?;
    let mut stats = QueueStats { count: page.items.len(), more: page.next.is_some(), ..QueueStats::default() };
    let mut oldest: Option<Duration> = None;
    for depth in page.items {
        stats.paused += usize::from(depth.paused);
        oldest = oldest.max(depth.oldest);
        for (state, count) in depth.counts {
            *stats.counts.entry(state).or_default() += count;
        }
    }
    stats.oldest_seconds = oldest.map(seconds);
    Ok(stats)
}

async fn count_workers(store: &dyn Store) -> Result<WorkerStats> {
    let mut stats = WorkerStats::default();
    let mut page = PageRequest::first(PAGE_SIZE);
    for _ in 0..MAX_WORKER_PAGES {
        let workers = store.list_workers(&page).await?;
        for worker in workers.items {
            let count = match worker.directive {
                _ if !worker.is_live() => &mut stats.silent,
                Directive::Run => &mut stats.live,
                Directive::Drain => &mut stats.draining,
                Directive::Stop => &mut stats.stopping,
            };
            *count += 1;
        }
        match workers.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => break,
        }
    }
    Ok(stats)
}
