//! `POST /worker/leases`

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Extension, Json, extract::State};
use orchestrix_api::{
    seconds::seconds,
    worker::{Ask, LeaseRequest, LeaseView, Leases},
};
use orchestrix_store::{Directive, Presence, WorkerInfo};

use super::Said;
use crate::{App, admission::AdmissionPermit, api_error::ApiError, auth::principal::Principal, body::JsonBody};

/// How often one that waits shows that it lives.
const SHOW: Duration = Duration::from_secs(10);

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
    caller: Principal,
    Extension(permit): Extension<AdmissionPermit>,
    body: JsonBody,
) -> Result<Json<Leases>, ApiError> {
    let arrived = Instant::now();
    let ask = Ask::read(body.as_str()?)?;
    let none = || Json(Leases { leases: Vec::new(), waited_seconds: seconds(arrived.elapsed()) });
    let directive = shown(&app, &ask).await?;
    permit.release();
    let waits = app.long_polls.try_acquire();
    let until = match waits {
        Ok(_) => Instant::now() + ask.wait,
        Err(_) => Instant::now(),
    };
    let ended = app.authenticator.revoked(&caller);
    tokio::pin!(ended);
    // One that was told to take nothing new is given nothing, whether or not it has heard, and waits for it like others: one that asks again and
    // again would be at it all the time.
    let mut drains = directive != Directive::Run;
    while drains {
        tokio::select! {
            () = tokio::time::sleep(SHOW) => {
                // It lives: one that was not heard of for long would be taken for another, and run.
                drains = !matches!(shown(&app, &ask).await, Ok(Directive::Run));
            }
            () = tokio::time::sleep_until(until.into()) => return Ok(none()),
            refusal = &mut ended => return Err(refusal),
            () = app.shutdown_requested() => return Ok(none()),
        }
    }
    let leasing = app.lease_hub.lease(&ask.claim, until);
    tokio::pin!(leasing);
    loop {
        tokio::select! {
            jobs = &mut leasing => {
                let jobs = jobs?;
                if !jobs.is_empty() {
                    // It may have been taken back meanwhile. What is not delivered is handed back.
                    app.authenticator.recheck(&caller).await?;
                }
                let waited_seconds = seconds(jobs.claim_started_at().saturating_duration_since(arrived));
                return Ok(Json(Leases { leases: jobs.into_jobs().into_iter().map(LeaseView::from).collect(), waited_seconds }));
            }
            // One that waits lives, and may be told to take nothing new. A store that is away is noticed by the claim.
            () = tokio::time::sleep(SHOW) => match shown(&app, &ask).await {
                Ok(Directive::Run) | Err(_) => {}
                Ok(_) => return Ok(none()),
            },
            refusal = &mut ended => return Err(refusal),
            () = app.shutdown_requested() => return Ok(none()),
        }
    }
}

// Shows that the worker lives, and makes it known if it is not, or not as it is now.
async fn shown(app: &App, ask: &Ask) -> Result<Directive, ApiError> {
    let claim = &ask.claim;
    let free = u32::try_from(claim.limit).unwrap_or(u32::MAX);
    let said = Said::of(&claim.queues, claim.job_types.as_deref(), ask.slots);
    if let Some(directive) = app.store.heartbeat_worker(&claim.worker, Presence::free(free)).await?
        && (directive != Directive::Run || app.roster.has(&claim.worker, said))
    {
        return Ok(directive);
    }
    let info = WorkerInfo {
        queues: claim.queues.clone(),
        job_types: claim.job_types.clone(),
        concurrency: ask.slots.unwrap_or(free),
        ..WorkerInfo::any(claim.worker.clone())
    };
    let _alone = app.roster.alone().await;
    // An operator may have said something meanwhile.
    let directive = app.store.register_worker(&info).await?;
    app.roster.add(&info.name, said);
    Ok(directive)
}
