//! `GET /admin/stats`

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use orchestrix_api::{
    admin::stats::{QueueStats, Stats, WorkerStats},
    seconds::seconds,
};
use orchestrix_store::{Directive, NewOperation, PageRequest, Result, Store};

use crate::{App, api_error::ApiError};

/// The most of anything that is looked at: so many of a page, and so many pages of workers.
const PAGE: usize = PageRequest::<()>::MAX_LIMIT;
const PAGES: usize = 10;

/// Shows how the whole stands, in a few numbers. The cost is bounded: see what each of them counts.
#[utoipa::path(
    get,
    path = "/admin/stats",
    tag = "admin",
    operation_id = "getStats",
    responses((status = 200, description = "How the whole stands.", body = Stats)),
)]
pub(crate) async fn stats(State(app): State<Arc<App>>) -> Result<Json<Stats>, ApiError> {
    let store = &*app.store;
    Ok(Json(Stats {
        queues: queues(store).await?,
        workers: workers(store).await?,
        nodes: store.list_nodes(&PageRequest::first(PAGE)).await?.items.len(),
        // Not by the nodes: it may be one beyond those that are counted.
        leader: store.leader().await?,
        open_operations: store.open_operations(NewOperation::MAX_OPEN).await?.len(),
    }))
}

async fn queues(store: &dyn Store) -> Result<QueueStats> {
    let page = store.queue_depths(&PageRequest::first(PAGE)).await?;
    let mut stats = QueueStats { count: page.items.len(), more: page.next.is_some(), ..QueueStats::default() };
    let mut oldest: Option<Duration> = None;
    for depth in page.items {
        stats.paused += usize::from(depth.paused);
        oldest = oldest.max(depth.oldest);
        for (state, n) in depth.counts {
            *stats.counts.entry(state).or_default() += n;
        }
    }
    stats.oldest_seconds = oldest.map(seconds);
    Ok(stats)
}

async fn workers(store: &dyn Store) -> Result<WorkerStats> {
    let mut stats = WorkerStats::default();
    let mut page = PageRequest::first(PAGE);
    for _ in 0..PAGES {
        let found = store.list_workers(&page).await?;
        for worker in found.items {
            let kind = match worker.directive {
                _ if !worker.is_live() => &mut stats.silent,
                Directive::Run => &mut stats.live,
                Directive::Drain => &mut stats.draining,
                Directive::Stop => &mut stats.stopping,
            };
            *kind += 1;
        }
        match found.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => break,
        }
    }
    Ok(stats)
}
