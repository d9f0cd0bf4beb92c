//! Which request goes where. What is not described cannot be served: see `openapi`.

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
    openapi::{self, Document, docs},
    schedules, workers,
};

/// All requests that the server answers.
pub fn router(app: Arc<App>) -> Router {
    let (described, api) = OpenApiRouter::with_openapi(openapi::Api::openapi())
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::get_metrics))
        .routes(routes!(openapi::openapi))
        .routes(routes!(jobs::create::create))
        .routes(routes!(jobs::batch::batch))
        .routes(routes!(jobs::get::get))
        .routes(routes!(live::job_events::events))
        .routes(routes!(live::websocket::websocket))
        .routes(routes!(jobs::result::result))
        .routes(routes!(jobs::cancel::cancel))
        .routes(routes!(jobs::release::release))
        .routes(routes!(schedules::list::list))
        .routes(routes!(schedules::put::put, schedules::get::get, schedules::delete::delete))
        .routes(routes!(schedules::switch::pause))
        .routes(routes!(schedules::switch::resume))
        .routes(routes!(schedules::trigger::trigger))
        .routes(routes!(schedules::backfill::backfill))
        .routes(routes!(schedules::next::next))
        .routes(routes!(schedules::occurrences::occurrences))
        .routes(routes!(workers::register::register))
        .routes(routes!(workers::leases::leases))
        .routes(routes!(workers::heartbeat::heartbeat))
        .routes(routes!(workers::leave::leave))
        .routes(routes!(workers::outcome::complete))
        .routes(routes!(workers::outcome::fail))
        .routes(routes!(workers::outcome::snooze))
        .routes(routes!(workers::outcome::release))
        .routes(routes!(workers::outcomes::outcomes))
        .routes(routes!(workers::progress::progress))
        .routes(routes!(workers::logs::logs))
        .merge(admin::routes())
        .split_for_parts();
    app.document.get_or_init(|| Document::of(&api));
    described
        .merge(docs::routes())
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_this_method)
        .layer(from_fn_with_state(Arc::clone(&app), request_middleware))
        .with_state(app)
}

async fn nothing_here(uri: Uri) -> ApiError {
    ApiError::new(Code::NotFound, format!("there is nothing at {}", uri.path()))
}

async fn not_this_method(method: Method) -> ApiError {
    ApiError::new(Code::MethodNotAllowed, format!("{method} is not allowed here"))
}
