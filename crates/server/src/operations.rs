//! `GET /healthz` and `GET /readyz`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{App, openapi::OPERATIONS, readiness::Sight};

/// Whether the process is up.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    #[schema(pattern = "^ok$")]
    status: &'static str,
}

/// Says that the process is up.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = OPERATIONS,
    operation_id = "getHealth",
    responses((status = 200, description = "The process is up.", body = Health)),
)]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the server can do its work.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// `degraded` while nobody leads or nobody works; it answers all the same.
    status: Standing,
    components: Components,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Standing {
    /// As it should be.
    Ok,
    /// Not as it should be, but good enough to go on.
    Degraded,
    /// Not there.
    Unavailable,
    /// Nobody can tell, because the database is away.
    Unknown,
}

/// What a server consists of.
#[derive(Debug, Serialize, ToSchema)]
struct Components {
    persistence: Component,
    transport: Component,
    coordinator: Component,
    workers: Component,
}

/// One part of it.
#[derive(Debug, Serialize, ToSchema)]
struct Component {
    status: Standing,
    /// Why it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Component {
    fn is(status: Standing, detail: &str) -> Self {
        Self { status, detail: (!detail.is_empty()).then(|| detail.to_owned()) }
    }
}

/// Says whether the database answers, somebody leads, and anybody works.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = OPERATIONS,
    operation_id = "getReadiness",
    responses(
        (status = 200, description = "It can do its work.", body = Ready),
        (status = 503, description = "It cannot: its database is away.", body = Ready),
    ),
)]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> (StatusCode, Json<Ready>) {
    let good_if = |good: bool, otherwise: &str| match good {
        true => Component::is(Standing::Ok, ""),
        false => Component::is(Standing::Degraded, otherwise),
    };
    let (persistence, coordinator, workers) = match app.readiness.see().await {
        Sight::There { led, worked } => {
            (Component::is(Standing::Ok, ""), good_if(led, "nobody leads"), good_if(worked, "no worker is there"))
        }
        Sight::Away => away("the database is away"),
        Sight::Late => away("the database does not answer in time"),
    };
    let status = match (persistence.status, coordinator.status, workers.status) {
        (Standing::Ok, Standing::Ok, Standing::Ok) => Standing::Ok,
        (Standing::Ok, ..) => Standing::Degraded,
        _ => Standing::Unavailable,
    };
    let code = if status == Standing::Unavailable { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let transport = Component::is(Standing::Ok, "none is configured");
    (code, Json(Ready { status, components: Components { persistence, transport, coordinator, workers } }))
}

fn away(why: &str) -> (Component, Component, Component) {
    let unknown = || Component::is(Standing::Unknown, "");
    (Component::is(Standing::Unavailable, why), unknown(), unknown())
}
