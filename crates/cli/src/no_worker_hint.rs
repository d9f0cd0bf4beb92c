//! A hint that a pending job waits because no live worker serves it.

use orchestrix_api::admin::{
    job::JobSummaryView,
    worker::{LaneView, WorkersResponse},
};
use orchestrix_core::JobState;

use crate::api::{ApiClient, Request};

/// The hint for a lane that no worker serves.
pub(crate) fn describe(lane: &LaneView) -> String {
    format!("no live worker serves job type {} in queue {}", lane.job_type, lane.queue)
}

/// The hint for a pending job that no worker serves. `None` if a worker does, or if the key may not list workers.
pub(crate) async fn for_job(job: &JobSummaryView, api: &ApiClient) -> Option<String> {
    if job.state != JobState::Pending {
        return None;
    }
    // The first page holds all unserved lanes, whatever its size.
    let workers: WorkersResponse = api.call(Request::get("/admin/workers").page(None, 1)).await.ok()?;
    let lane = workers.unserved.iter().find(|lane| lane.queue == job.queue && lane.job_type == job.job_type);
    lane.map(describe)
}
