//! `GET /admin/workers`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::admin::{
    page::{self, PartRequest},
    worker::{LaneView, WorkerView, Workers},
};
use orchestrix_core::WorkerName;
use orchestrix_store::{PageRequest, Store};

use crate::{App, api_error::ApiError, params::QueryParams};

/// Lanes that are looked at for jobs that nobody takes, and pages of workers that are looked at for it.
const MAX_LANES: usize = 1_000;
const MAX_PAGES: usize = 100;

/// Lists workers by name, and with the first of them the kinds of jobs that no living worker takes.
#[utoipa::path(
    get,
    path = "/admin/workers",
    tag = "admin",
    operation_id = "listWorkers",
    params(PartRequest),
    responses((status = 200, description = "Workers by name.", body = Workers)),
)]
pub(crate) async fn workers(State(app): State<Arc<App>>, asked: QueryParams) -> Result<Json<Workers>, ApiError> {
    let page = page::read(&asked.0, |text| WorkerName::new(text).ok())?;
    let unserved = match page.cursor {
        None => unserved(&*app.store).await?,
        Some(_) => Vec::new(),
    };
    let found = app.store.list_workers(&page).await?;
    Ok(Json(Workers {
        items: found.items.into_iter().map(WorkerView::from).collect(),
        next_cursor: found.next.map(|name| name.to_string()),
        unserved,
    }))
}

async fn unserved(store: &dyn Store) -> orchestrix_store::Result<Vec<LaneView>> {
    let lanes = store.claimable_lanes(MAX_LANES).await?;
    let mut lanes: Vec<LaneView> = lanes.into_iter().map(|(queue, job_type)| LaneView { queue, job_type }).collect();
    let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    for _ in 0..MAX_PAGES {
        if lanes.is_empty() {
            return Ok(lanes);
        }
        let found = store.list_workers(&page).await?;
        let workers: Vec<WorkerView> = found.items.into_iter().map(WorkerView::from).collect();
        lanes.retain(|lane| !workers.iter().any(|worker| worker.takes(&lane.queue, &lane.job_type)));
        match found.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(lanes),
        }
    }
    // So many workers that one of the others may take them: nothing is known to be left out.
    Ok(Vec::new())
}
