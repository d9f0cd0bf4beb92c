//! What operators ask: one file for each request.

pub(crate) mod audit;
pub(crate) mod bulk;
pub(crate) mod cancel;
pub(crate) mod dlq;
pub(crate) mod drain;
pub(crate) mod explain;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod operation;
pub(crate) mod operations;
pub(crate) mod priority;
pub(crate) mod purge;
pub(crate) mod queue;
pub(crate) mod queues;
pub(crate) mod redrive;
pub(crate) mod retry;
pub(crate) mod stats;
pub(crate) mod workers;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// All requests of operators.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(jobs::jobs))
        .routes(routes!(job::job))
        .routes(routes!(explain::explain))
        .routes(routes!(logs::logs))
        .routes(routes!(retry::retry))
        .routes(routes!(cancel::cancel))
        .routes(routes!(priority::priority))
        .routes(routes!(bulk::bulk))
        .routes(routes!(operations::operations))
        .routes(routes!(operation::get))
        .routes(routes!(operation::abort))
        .routes(routes!(dlq::dlq))
        .routes(routes!(redrive::redrive))
        .routes(routes!(purge::purge))
        .routes(routes!(queues::queues))
        .routes(routes!(queue::get, queue::put))
        .routes(routes!(workers::workers))
        .routes(routes!(drain::drain))
        .routes(routes!(nodes::nodes))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(stats::stats))
        .routes(routes!(audit::audit))
}
