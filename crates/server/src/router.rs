//! Which request goes where.

use std::sync::Arc;

use axum::{
    Router,
    http::{Method, Uri},
    middleware::from_fn_with_state,
    routing::{delete, get, post, put},
};
use orchestrix_api::Code;

use crate::{App, gate, jobs, operations, refusal::Refusal, schedules, trace, workers};

/// All requests that the server answers.
pub fn router(app: Arc<App>) -> Router {
    let worked_on = Router::new()
        .route("/jobs", post(jobs::create::create))
        .route("/jobs/batch", post(jobs::batch::batch))
        .route("/jobs/{jobId}", get(jobs::get::get))
        .route("/jobs/{jobId}/result", get(jobs::result::result))
        .route("/jobs/{jobId}/cancel", post(jobs::cancel::cancel))
        .route("/jobs/{jobId}/release", post(jobs::release::release))
        .route("/schedules", get(schedules::list::list))
        .route("/schedules/{name}", put(schedules::put::put).get(schedules::get::get))
        .route("/schedules/{name}", delete(schedules::delete::delete))
        .route("/schedules/{name}/pause", post(schedules::switch::pause))
        .route("/schedules/{name}/resume", post(schedules::switch::resume))
        .route("/schedules/{name}/trigger", post(schedules::trigger::trigger))
        .route("/schedules/{name}/backfill", post(schedules::backfill::backfill))
        .route("/schedules/{name}/next", get(schedules::next::next))
        .route("/schedules/{name}/occurrences", get(schedules::occurrences::occurrences))
        .route("/worker/leases", post(workers::leases::leases))
        .route("/worker/heartbeat", post(workers::heartbeat::heartbeat))
        .route("/worker/leave", post(workers::leave::leave))
        .route("/worker/leases/complete-batch", post(workers::outcomes::outcomes))
        .route("/worker/leases/{leaseToken}/complete", post(workers::outcome::complete))
        .route("/worker/leases/{leaseToken}/fail", post(workers::outcome::fail))
        .route("/worker/leases/{leaseToken}/snooze", post(workers::outcome::snooze))
        .route("/worker/leases/{leaseToken}/release", post(workers::outcome::release))
        .route("/worker/leases/{leaseToken}/progress", post(workers::progress::progress))
        .route("/worker/leases/{leaseToken}/logs", post(workers::logs::logs))
        .route_layer(from_fn_with_state(Arc::clone(&app), gate::gate));
    Router::new()
        .route("/healthz", get(operations::health))
        .route("/readyz", get(operations::ready))
        .merge(worked_on)
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_this_method)
        .layer(from_fn_with_state(Arc::clone(&app), trace::trace))
        .with_state(app)
}

async fn nothing_here(uri: Uri) -> Refusal {
    Refusal::new(Code::NotFound, format!("there is nothing at {}", uri.path()))
}

async fn not_this_method(method: Method) -> Refusal {
    Refusal::new(Code::MethodNotAllowed, format!("{method} is not allowed here"))
}
