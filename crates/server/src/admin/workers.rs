//! `/admin/workers`: lists and drains workers.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    Code,
    admin::{
        page::{self, PageParams},
        worker::{DrainResponse, LaneView, WorkerView, WorkersResponse},
    },
    schema::WorkerId,
};
use orchestrix_core::WorkerName;
use orchestrix_store::{Directive, PageRequest, Store};

use crate::{
    App,
    api_error::ApiError,
    openapi::problems::WorkerNotFound,
    params::{PathParam, QueryParams},
};

/// The most lanes checked for missing workers.
const MAX_LANES: usize = 1_000;
/// The most pages of workers read for that check.
const MAX_PAGES: usize = 100;

/// Lists workers, ordered by name.
///
/// The first page also lists the lanes with claimable jobs that no live worker serves.
#[utoipa::path(
    get,
    path = "/admin/workers",
    tag = "admin",
    operation_id = "listWorkers",
    params(PageParams),
    responses((status = 200, description = "A page of workers.", body = WorkersResponse)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>, query: QueryParams) -> Result<Json<WorkersResponse>, ApiError> {
    let page = page::parse_page(&query.0, |text| WorkerName::new(text).ok())?;
    let unserved = match page.cursor {
        None => unserved_lanes(&*app.store).await?,
        Some(_) => Vec::new(),
    };
    let workers = app.store.list_workers(&page).await?;
    Ok(Json(WorkersResponse {
        items: workers.items.into_iter().map(WorkerView::from).collect(),
        next_cursor: workers.next.map(|name| name.to_string()),
        unserved,
    }))
}

async fn unserved_lanes(store: &dyn Store) -> orchestrix_store::Result<Vec<LaneView>> {
    let lanes = store.claimable_lanes(MAX_LANES).await?;
    let mut lanes: Vec<LaneView> = lanes.into_iter().map(|(queue, job_type)| LaneView { queue, job_type }).collect();
    let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    for _ in 0..MAX_PAGES {
        if lanes.is_empty() {
            return Ok(lanes);
        }
        let workers = store.list_workers(&page).await?;
        let views: Vec<WorkerView> = workers.items.into_iter().map(WorkerView::from).collect();
        lanes.retain(|lane| !views.iter().any(|worker| worker.serves(&lane.queue, &lane.job_type)));
        match workers.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(lanes),
        }
    }
    // The workers not read may serve the remaining lanes, so none is reported.
    Ok(Vec::new())
}

/// Drains a worker.
///
/// The worker claims no more jobs and exits when its running jobs are done.
#[utoipa::path(
    post,
    path = "/admin/workers/{workerId}/drain",
    tag = "admin",
    operation_id = "drainWorker",
    params(("workerId" = WorkerId, Path, description = "The worker's name.")),
    responses(
        (
            status = 202, description = "The worker receives the directive with its next heartbeat.",
            body = DrainResponse
        ),
        (status = 404, response = WorkerNotFound),
    ),
)]
pub(crate) async fn drain(
    State(app): State<Arc<App>>,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<DrainResponse>), ApiError> {
    let not_found = || ApiError::new(Code::WorkerNotFound, "there is no such worker");
    let worker_id = WorkerName::new(&text).map_err(|_| not_found())?;
    if !app.store.direct_worker(&worker_id, Directive::Drain).await? {
        return Err(not_found());
    }
    Ok((StatusCode::ACCEPTED, Json(DrainResponse { worker_id, directive: Directive::Drain.as_str().into() })))
}
