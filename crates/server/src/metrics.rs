//! `GET /metrics`, and the metrics of HTTP requests.

use std::{fmt, io, sync::Arc, time::Instant};

use axum::{
    Router,
    extract::{MatchedPath, State},
    http::{Method, header},
    response::{IntoResponse, Response},
    routing::get,
};
use orchestrix_api::Code;
use orchestrix_store::metrics;
use tokio::net::TcpListener;

use crate::{
    App,
    api_error::{ApiError, ProblemBody},
    health,
    openapi::{OPERATIONS, problems::NoMetrics},
};

/// Renders all metrics of the process as text.
#[derive(Clone)]
pub struct Metrics(Arc<dyn Fn() -> String + Send + Sync>);

impl Metrics {
    /// `render` returns the metrics in the Prometheus text format.
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(render))
    }

    fn response(&self) -> Response {
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (self.0)()).into_response()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Returns all metrics.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = OPERATIONS,
    operation_id = "getMetrics",
    responses(
        (
            status = 200, content_type = "text/plain", body = String,
            description = "All metrics, in the Prometheus text format.",
        ),
        (status = 404, response = NoMetrics),
    ),
)]
pub(crate) async fn get_metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let metrics = app.options.metrics.as_ref();
    Ok(metrics.ok_or_else(|| ApiError::new(Code::NotFound, "this server exports no metrics"))?.response())
}

/// Serves only `GET /metrics` and `GET /healthz`, for a process without the API. Runs until dropped.
pub async fn serve_metrics(listener: TcpListener, metrics: Metrics) -> io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(move || async move { metrics.response() }))
        .route("/healthz", get(health::health));
    axum::serve(listener, router).await
}

/// The `route` label of a request without a route.
const NO_ROUTE: &str = "none";
/// The `method` label of a non-standard method.
const OTHER_METHOD: &str = metrics::OTHER;

/// Records the metrics of a finished request.
pub(crate) fn record_request(route: Option<&MatchedPath>, method: &Method, response: &Response, started_at: Instant) {
    let lease_lost = |problem: &ProblemBody| problem.0.code == Code::LeaseLost;
    metrics::stale_writes(usize::from(response.extensions().get().is_some_and(lease_lost)));
    let route = route.map_or(NO_ROUTE, MatchedPath::as_str);
    metrics::answered(route, method_label(method), response.status().as_u16(), started_at.elapsed());
}

// Clients may send any method, and each label value costs memory.
fn method_label(method: &Method) -> &'static str {
    let standard = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE"];
    standard.into_iter().find(|name| *name == method.as_str()).unwrap_or(OTHER_METHOD)
}
