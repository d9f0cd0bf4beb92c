//! Jobs that wait for nobody: a hint for whoever looks at one, or waits for it.

use orchestrix_api::admin::{
    job::JobSummaryView,
    worker::{LaneView, WorkersResponse},
};
use orchestrix_core::JobState;

use crate::api::{Api, Request};

/// Says that jobs of this kind wait in vain.
pub(crate) fn nobody_takes(lane: &LaneView) -> String {
    format!("no live worker takes {} from {}", lane.job_type, lane.queue)
}

/// Says so of this job, if it can be claimed and nobody would. It is a courtesy: where it cannot be told, or may not, nothing is said.
pub(crate) async fn hint(job: &JobSummaryView, api: &Api) -> Option<String> {
    if job.state != JobState::Pending {
        return None;
    }
    // One worker is enough: what nobody takes is told with the first part of the list.
    let workers: WorkersResponse = api.call(Request::get("/admin/workers").part(None, 1)).await.ok()?;
    let lane = workers.unserved.iter().find(|lane| lane.queue == job.queue && lane.job_type == job.job_type);
    lane.map(nobody_takes)
}
