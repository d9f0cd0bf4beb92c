//! What operators ask: one file for each request.

pub(crate) mod cancel;
pub(crate) mod dlq;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod priority;
pub(crate) mod purge;
pub(crate) mod queue;
pub(crate) mod queues;
pub(crate) mod redrive;
pub(crate) mod retry;
pub(crate) mod workers;

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post},
};

use crate::App;

/// All requests of operators.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/admin/jobs", get(jobs::jobs))
        .route("/admin/jobs/{jobId}", get(job::job))
        .route("/admin/jobs/{jobId}/logs", get(logs::logs))
        .route("/admin/jobs/{jobId}/retry", post(retry::retry))
        .route("/admin/jobs/{jobId}/cancel", post(cancel::cancel))
        .route("/admin/jobs/{jobId}/priority", post(priority::priority))
        .route("/admin/dlq", get(dlq::dlq))
        .route("/admin/dlq/redrive", post(redrive::redrive))
        .route("/admin/dlq/purge", post(purge::purge))
        .route("/admin/queues", get(queues::queues))
        .route("/admin/queues/{name}", get(queue::get).put(queue::put))
        .route("/admin/workers", get(workers::workers))
        .route("/admin/nodes", get(nodes::nodes))
}
