//! `GET /healthz` and `GET /readyz`

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_store::{PageRequest, Store};
use serde::Serialize;

use crate::App;

/// How long a component may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the process is up.
#[derive(Debug, Serialize)]
pub(crate) struct Health {
    status: &'static str,
}

/// Says that the process is up.
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the server can do its work.
#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    /// `ok`, `degraded` or `unavailable`.
    status: &'static str,
    components: Components,
}

#[derive(Debug, Serialize)]
struct Components {
    persistence: Component,
    transport: Component,
    coordinator: Component,
    workers: Component,
}

#[derive(Debug, Serialize)]
struct Component {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Component {
    fn is(status: &'static str, detail: &str) -> Self {
        Self { status, detail: (!detail.is_empty()).then(|| detail.to_owned()) }
    }
}

/// Says whether the database answers, somebody leads, and anybody works.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> (StatusCode, Json<Ready>) {
    let looks = tokio::time::timeout(PATIENCE, look(&*app.store)).await;
    let (persistence, coordinator, workers) = match looks {
        Ok(Ok((leader, workers))) => (
            Component::is("ok", ""),
            if leader { Component::is("ok", "") } else { Component::is("degraded", "nobody leads") },
            if workers { Component::is("ok", "") } else { Component::is("degraded", "no worker is there") },
        ),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store is away");
            away("the database is away")
        }
        Err(_) => away("the database does not answer in time"),
    };
    let status = match (persistence.status, coordinator.status, workers.status) {
        ("ok", "ok", "ok") => "ok",
        ("ok", ..) => "degraded",
        _ => "unavailable",
    };
    let code = if status == "unavailable" { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let transport = Component::is("ok", "none is configured");
    (code, Json(Ready { status, components: Components { persistence, transport, coordinator, workers } }))
}

fn away(why: &str) -> (Component, Component, Component) {
    let unknown = || Component::is("unknown", "");
    (Component::is("unavailable", why), unknown(), unknown())
}

async fn look(store: &dyn Store) -> orchestrix_store::Result<(bool, bool)> {
    let nodes = store.nodes(&PageRequest::first(1_000)).await?;
    let workers = store.workers(&PageRequest::first(1)).await?;
    Ok((nodes.items.iter().any(|node| node.leads), !workers.items.is_empty()))
}
