//! `POST /admin/dlq/purge`

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use orchestrix_api::admin::dlq::{self, PurgeRequest, Purged};
use orchestrix_core::{JobState, Timestamp};
use orchestrix_store::{Fence, JobFilter, JobSummary, PageRequest, Retention, Store, housekeeping::MAX_SWEEP};

use crate::{App, api_error::ApiError, body::JsonBody};

/// As many pages of dead jobs as one request looks at to count them.
const MAX_PAGES: usize = 10;
/// No store has kept anything for so long.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Forgets dead jobs for good, as many as one step does; or only counts them.
#[utoipa::path(
    post,
    path = "/admin/dlq/purge",
    tag = "admin",
    operation_id = "purgeDead",
    request_body = PurgeRequest,
    responses((status = 200, description = "How many are forgotten, or would be.", body = Purged)),
)]
pub(crate) async fn purge(State(app): State<Arc<App>>, body: JsonBody) -> Result<Json<Purged>, ApiError> {
    let (older_than, dry_run) = dlq::read_purge(body.as_str()?)?;
    if dry_run {
        return Ok(Json(count(&*app.store, older_than).await?));
    }
    let retention = Retention {
        completed: FOR_EVER,
        cancelled: FOR_EVER,
        dead: older_than,
        logs: FOR_EVER,
        occurrences: FOR_EVER,
        audit: FOR_EVER,
        operations: FOR_EVER,
    };
    // In nobody's name: an operator decides, whoever leads.
    let step = app.store.prune_history(Fence::NONE, &retention, MAX_SWEEP).await?;
    Ok(Json(Purged { count: step.count, more: step.more && step.count > 0 }))
}

async fn count(store: &dyn Store, older_than: Duration) -> orchestrix_store::Result<Purged> {
    let filter = JobFilter { states: vec![JobState::Dead], ..JobFilter::default() };
    let now = Timestamp::now();
    let is_older = |job: &JobSummary| {
        let died = job.finished_at.map(|died| Duration::try_from(now.duration_since(died)).unwrap_or_default());
        older_than.is_zero() || died.is_some_and(|ago| ago >= older_than)
    };
    let mut count = 0;
    let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    for _ in 0..MAX_PAGES {
        let found = store.list_jobs(&filter, &page).await?;
        count += found.items.iter().filter(|job| is_older(job)).count();
        match found.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(Purged { count, more: false }),
        }
    }
    Ok(Purged { count, more: true })
}
