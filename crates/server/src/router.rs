//! The routes. Every route of the API also registers its OpenAPI description: see `openapi`.

use std::sync::Arc;

use axum::{
    Router,
    http::{Method, Uri},
    middleware::from_fn_with_state,
};
use orchestrix_api::Code;
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App, admin,
    api_error::ApiError,
    health, jobs, live, metrics,
    middleware::request_middleware,
    openapi::{self, Document, docs_page},
    schedules, workers,
};

/// Builds the router with all routes and middleware.
pub fn router(app: Arc<App>) -> Router {
    let (routes, api) = OpenApiRouter::with_openapi(openapi::Api::openapi())
        .merge(server_routes())
        .merge(client_routes())
        .merge(worker_routes())
        .merge(admin_routes())
        .split_for_parts();
    app.document.get_or_init(|| Document::new(&api));
    routes
        .merge(docs_page::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&app), request_middleware))
        .with_state(app)
}

fn server_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::get_metrics))
        .routes(routes!(openapi::openapi))
}

fn client_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(jobs::create))
        .routes(routes!(jobs::create_batch))
        .routes(routes!(jobs::get))
        .routes(routes!(live::job_events::events))
        .routes(routes!(live::websocket::websocket))
        .routes(routes!(jobs::result))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::release))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::put, schedules::get, schedules::delete))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(schedules::trigger))
        .routes(routes!(schedules::backfill::backfill))
        .routes(routes!(schedules::next_times))
        .routes(routes!(schedules::list_occurrences))
}

fn worker_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(workers::registration::register))
        .routes(routes!(workers::leases::lease))
        .routes(routes!(workers::registration::heartbeat))
        .routes(routes!(workers::registration::leave))
        .routes(routes!(workers::outcomes::complete))
        .routes(routes!(workers::outcomes::fail))
        .routes(routes!(workers::outcomes::snooze))
        .routes(routes!(workers::outcomes::release))
        .routes(routes!(workers::outcomes::finish_batch))
        .routes(routes!(workers::progress::report))
        .routes(routes!(workers::progress::append_logs))
}

fn admin_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(admin::jobs::list))
        .routes(routes!(admin::jobs::get))
        .routes(routes!(admin::jobs::explain))
        .routes(routes!(admin::jobs::list_logs))
        .routes(routes!(admin::jobs::retry))
        .routes(routes!(admin::jobs::cancel))
        .routes(routes!(admin::jobs::set_priority))
        .routes(routes!(admin::operations::begin))
        .routes(routes!(admin::operations::list))
        .routes(routes!(admin::operations::get))
        .routes(routes!(admin::operations::abort))
        .routes(routes!(admin::dlq::list))
        .routes(routes!(admin::dlq::redrive))
        .routes(routes!(admin::dlq::purge))
        .routes(routes!(admin::queues::list))
        .routes(routes!(admin::queues::get, admin::queues::put))
        .routes(routes!(admin::tenants::list))
        .routes(routes!(admin::tenants::get, admin::tenants::put))
        .routes(routes!(admin::workers::list))
        .routes(routes!(admin::workers::drain))
        .routes(routes!(admin::nodes::list))
        .routes(routes!(admin::keys::list, admin::keys::create))
        .routes(routes!(admin::keys::revoke))
        .routes(routes!(admin::stats::get))
        .routes(routes!(admin::audit::list))
}

async fn not_found(uri: Uri) -> ApiError {
    ApiError::new(Code::NotFound, format!("there is nothing at {}", uri.path()))
}

async fn method_not_allowed(method: Method) -> ApiError {
    ApiError::new(Code::MethodNotAllowed, format!("{method} is not allowed here"))
}
