//! `GET /metrics`, and what is counted of requests.

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
    openapi::{OPERATIONS, problems::NoMetrics},
    operations,
    refusal::{ProblemBody, Refusal},
};

/// All metrics of the process as text, whoever keeps them.
#[derive(Clone)]
pub struct Metrics(Arc<dyn Fn() -> String + Send + Sync>);

impl Metrics {
    /// Metrics that are written down by this, in the text format of Prometheus.
    pub fn new(write: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    fn answer(&self) -> Response {
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (self.0)()).into_response()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Shows all metrics.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = OPERATIONS,
    operation_id = "getMetrics",
    responses(
        (status = 200, description = "All metrics, in the text format of Prometheus.", body = String, content_type = "text/plain"),
        (status = 404, response = NoMetrics),
    ),
)]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    let metrics = app.options.metrics.as_ref();
    Ok(metrics.ok_or_else(|| Refusal::new(Code::NotFound, "this server keeps no metrics"))?.answer())
}

/// Answers `GET /metrics` and `GET /healthz` and nothing else, for a process that has no other requests to answer; until it is
/// dropped.
pub async fn serve_metrics(listener: TcpListener, metrics: Metrics) -> io::Result<()> {
    let shown = Router::new()
        .route("/metrics", get(move || async move { metrics.answer() }))
        .route("/healthz", get(operations::health));
    axum::serve(listener, shown).await
}

/// What stands for requests that no route was found for, and for methods that nobody knows.
const NONE: &str = "none";
const OTHER: &str = metrics::OTHER;

/// Counts a request, now that it is answered.
pub(crate) fn answered(route: Option<&MatchedPath>, asked: &Method, response: &Response, begun: Instant) {
    let late = |problem: &ProblemBody| problem.0.code == Code::LeaseLost;
    metrics::stale_writes(usize::from(response.extensions().get().is_some_and(late)));
    let route = route.map_or(NONE, MatchedPath::as_str);
    metrics::answered(route, method(asked), response.status().as_u16(), begun.elapsed());
}

// A client may invent methods.
fn method(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or(OTHER)
}
