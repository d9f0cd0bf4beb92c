//! `/worker/leases`: leases jobs by long poll.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Extension, Json, extract::State};
use orchestrix_api::{
    seconds::seconds,
    worker::{LeasePoll, LeaseRequest, LeaseResponse, LeaseView},
};
use orchestrix_store::{Directive, Presence, WorkerInfo};

use super::registration_cache::Fingerprint;
use crate::{App, admission::AdmissionPermit, api_error::ApiError, auth::principal::Principal, body::JsonBody};

/// How often a waiting request sends a heartbeat for its worker.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Leases jobs.
///
/// With `waitSeconds`, a long poll: responds as soon as jobs are claimable, or when the time is over.
#[utoipa::path(
    post,
    path = "/worker/leases",
    tag = "workers",
    operation_id = "leaseJobs",
    request_body = LeaseRequest,
    responses((
        status = 200, description = "The leased jobs. Empty if no job became claimable within the wait.",
        body = LeaseResponse
    )),
)]
pub(crate) async fn lease(
    State(app): State<Arc<App>>,
    caller: Principal,
    Extension(permit): Extension<AdmissionPermit>,
    body: JsonBody,
) -> Result<Json<LeaseResponse>, ApiError> {
    let arrived = Instant::now();
    let poll = LeasePoll::parse(body.as_str()?)?;
    let no_jobs = || Json(LeaseResponse { leases: Vec::new(), waited_seconds: seconds(arrived.elapsed()) });
    let directive = heartbeat(&app, &poll).await?;
    // A waiting request must not hold an admission permit.
    permit.release();
    let permit = app.long_polls.try_acquire();
    let deadline = match permit {
        Ok(_) => Instant::now() + poll.wait,
        Err(_) => Instant::now(),
    };
    let key_revoked = app.authenticator.revoked(&caller);
    tokio::pin!(key_revoked);
    // A draining worker gets no jobs, whether or not it knows the directive. It still waits: a worker that got an empty
    // response at once would poll in a tight loop.
    let mut draining = directive != Directive::Run;
    while draining {
        tokio::select! {
            () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {
                // Without a heartbeat the store would forget the worker, and with it the directive to drain.
                draining = !matches!(heartbeat(&app, &poll).await, Ok(Directive::Run));
            }
            () = tokio::time::sleep_until(deadline.into()) => return Ok(no_jobs()),
            error = &mut key_revoked => return Err(error),
            () = app.shutdown_requested() => return Ok(no_jobs()),
        }
    }
    let leasing = app.lease_hub.lease(&poll.claim, deadline);
    tokio::pin!(leasing);
    loop {
        tokio::select! {
            jobs = &mut leasing => {
                let jobs = jobs?;
                if !jobs.is_empty() {
                    // The key may have been revoked during the wait. Undelivered jobs are released.
                    app.authenticator.recheck(&caller).await?;
                }
                let waited_seconds = seconds(jobs.claim_started_at().saturating_duration_since(arrived));
                let leases = jobs.into_jobs().into_iter().map(LeaseView::from).collect();
                return Ok(Json(LeaseResponse { leases, waited_seconds }));
            }
            // An error of the store is left to the claim, which reports it.
            () = tokio::time::sleep(HEARTBEAT_INTERVAL) => match heartbeat(&app, &poll).await {
                Ok(Directive::Run) | Err(_) => {}
                Ok(_) => return Ok(no_jobs()),
            },
            error = &mut key_revoked => return Err(error),
            () = app.shutdown_requested() => return Ok(no_jobs()),
        }
    }
}

// Sends a heartbeat for the worker. Registers the worker if it is unknown or its queues, job types or slots changed.
async fn heartbeat(app: &App, poll: &LeasePoll) -> Result<Directive, ApiError> {
    let claim = &poll.claim;
    let free = u32::try_from(claim.limit).unwrap_or(u32::MAX);
    let fingerprint = Fingerprint::new(&claim.queues, claim.job_types.as_deref(), poll.slots);
    if let Some(directive) = app.store.heartbeat_worker(&claim.worker, Presence::free(free)).await?
        && (directive != Directive::Run || app.registrations.contains(&claim.worker, fingerprint))
    {
        return Ok(directive);
    }
    let info = WorkerInfo {
        queues: claim.queues.clone(),
        job_types: claim.job_types.clone(),
        concurrency: poll.slots.unwrap_or(free),
        ..WorkerInfo::any(claim.worker.clone())
    };
    let _guard = app.registrations.write_lock().await;
    // The registration returns the directive: an operator may have changed it since the heartbeat.
    let directive = app.store.register_worker(&info).await?;
    app.registrations.insert(&info.name, fingerprint);
    Ok(directive)
}
