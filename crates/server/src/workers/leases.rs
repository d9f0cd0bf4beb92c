//! `POST /worker/leases`

use std::{sync::Arc, time::Instant};

use axum::{Extension, Json, extract::State};
use orchestrix_api::worker::{Ask, LeaseRequest, LeaseView, Leases};
use orchestrix_store::{Directive, WorkerInfo};

use crate::{
    App,
    body::{ONE, Text},
    gate::Turn,
    refusal::Refusal,
};

/// Leases jobs, at once or as soon as there are any.
#[utoipa::path(
    post,
    path = "/worker/leases",
    tag = "workers",
    operation_id = "leaseJobs",
    request_body = LeaseRequest,
    responses((status = 200, description = "The jobs; none after the wait, if there were none.", body = Leases)),
)]
pub(crate) async fn leases(
    State(app): State<Arc<App>>,
    Extension(turn): Extension<Turn>,
    body: Text<ONE>,
) -> Result<Json<Leases>, Refusal> {
    let arrived = Instant::now();
    let ask = Ask::read(body.as_str()?)?;
    let none = || Json(Leases { leases: Vec::new(), waited_seconds: arrived.elapsed().as_secs_f64() });
    // One that was told to take nothing new is given nothing, whether or not it has heard.
    if shown(&app, &ask).await? != Directive::Run {
        return Ok(none());
    }
    turn.give_back();
    let waits = app.waits.try_acquire();
    let until = match waits {
        Ok(_) => Instant::now() + ask.wait,
        Err(_) => Instant::now(),
    };
    tokio::select! {
        jobs = app.desk.lease(&ask.claim, until) => {
            let jobs = jobs?;
            let waited_seconds = jobs.begun().saturating_duration_since(arrived).as_secs_f64();
            Ok(Json(Leases { leases: jobs.take().into_iter().map(LeaseView::from).collect(), waited_seconds }))
        }
        () = app.closed() => Ok(none()),
    }
}

// Shows that the worker lives, and makes it known if it is not.
async fn shown(app: &App, ask: &Ask) -> Result<Directive, Refusal> {
    let free = u32::try_from(ask.claim.limit).unwrap_or(u32::MAX);
    let known = app.store.heartbeat_worker(&ask.claim.worker, free).await?;
    let vague = app.vague.remove(&ask.claim.worker);
    match known {
        // Made known by a heartbeat, which does not say what it serves.
        Some(Directive::Run) if vague => {}
        Some(directive) => return Ok(directive),
        None => {}
    }
    let info = WorkerInfo {
        name: ask.claim.worker.clone(),
        queues: ask.claim.queues.clone(),
        job_types: ask.claim.job_types.clone(),
        concurrency: ask.slots,
    };
    app.store.register_worker(&info).await?;
    Ok(Directive::Run)
}
