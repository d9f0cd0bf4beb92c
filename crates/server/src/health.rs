//! Health checks: `GET /healthz` (liveness) and `GET /readyz` (readiness).

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{App, openapi::OPERATIONS, readiness::StoreStatus};

/// The process is alive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    #[schema(pattern = "^ok$")]
    status: &'static str,
}

/// Answers that the process is alive.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = OPERATIONS,
    operation_id = "getHealth",
    responses((status = 200, description = "The process is alive.", body = Health)),
)]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the server can serve requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// `degraded` without a leader or without workers; the server still serves requests then.
    status: HealthStatus,
    components: Components,
}

/// The status of the server or of one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum HealthStatus {
    /// Fully operational.
    Ok,
    /// Impaired, but requests are served.
    Degraded,
    /// Not reachable.
    Unavailable,
    /// Cannot be determined because the database is unavailable.
    Unknown,
}

/// The server's components.
#[derive(Debug, Serialize, ToSchema)]
struct Components {
    persistence: Component,
    transport: Component,
    coordinator: Component,
    workers: Component,
}

/// The status of one component.
#[derive(Debug, Serialize, ToSchema)]
struct Component {
    status: HealthStatus,
    /// Why the component has this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Component {
    fn new(status: HealthStatus, detail: &str) -> Self {
        Self { status, detail: (!detail.is_empty()).then(|| detail.to_owned()) }
    }
}

/// Answers whether the database responds, a leader is elected, and workers are registered.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = OPERATIONS,
    operation_id = "getReadiness",
    responses(
        (status = 200, description = "The server can serve requests.", body = Ready),
        (status = 503, description = "The server cannot serve requests: its database is unavailable.", body = Ready),
    ),
)]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> (StatusCode, Json<Ready>) {
    let ok_if = |ok: bool, otherwise: &str| match ok {
        true => Component::new(HealthStatus::Ok, ""),
        false => Component::new(HealthStatus::Degraded, otherwise),
    };
    let (persistence, coordinator, workers) = match app.readiness.status().await {
        StoreStatus::Available { has_leader, has_workers } => (
            Component::new(HealthStatus::Ok, ""),
            ok_if(has_leader, "no leader is elected"),
            ok_if(has_workers, "no worker is registered"),
        ),
        StoreStatus::Unavailable => unavailable("the database is unavailable"),
        StoreStatus::TimedOut => unavailable("the database does not answer in time"),
    };
    let status = match (persistence.status, coordinator.status, workers.status) {
        (HealthStatus::Ok, HealthStatus::Ok, HealthStatus::Ok) => HealthStatus::Ok,
        (HealthStatus::Ok, ..) => HealthStatus::Degraded,
        _ => HealthStatus::Unavailable,
    };
    let code = if status == HealthStatus::Unavailable { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let transport = Component::new(HealthStatus::Ok, "none is configured");
    (code, Json(Ready { status, components: Components { persistence, transport, coordinator, workers } }))
}

fn unavailable(reason: &str) -> (Component, Component, Component) {
    let unknown = || Component::new(HealthStatus::Unknown, "");
    (Component::new(HealthStatus::Unavailable, reason), unknown(), unknown())
}
