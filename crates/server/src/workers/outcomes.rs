//! Outcomes of attempts: `/worker/leases/{leaseToken}/complete`, `…/fail`, `…/snooze`, `…/release`, and
//! `/worker/leases/complete-batch`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Code, Problem, RequestError,
    job::JobStatusView,
    schema::Token,
    worker::{
        CompleteRequest, FailRequest, OutcomeKind, OutcomeResponse, OutcomesRequest, OutcomesResponse, ReleaseRequest,
        SnoozeRequest, parse_outcome, parse_outcomes,
    },
};
use orchestrix_core::Invalid;
use orchestrix_store::{FinishError, OutcomeReport, StoreError, metrics};

use super::parse_token;
use crate::{App, api_error::ApiError, body::JsonBody, openapi::problems::LeaseLost, params::PathParam};

async fn finish(app: &App, kind: OutcomeKind, text: &str, body: &JsonBody) -> Result<Json<JobStatusView>, ApiError> {
    // An invalid body is reported even if the lease is lost.
    let outcome = parse_outcome(kind, body.as_str()?)?;
    let token = parse_token(text)?;
    match app.store.finish_attempts(vec![OutcomeReport { token, outcome }]).await?.pop() {
        Some(Ok(state)) => Ok(Json(JobStatusView { job_id: token.job, status: state.status() })),
        Some(Err(FinishError::Invalid(error))) => Err(Problem::from(RequestError::from(Invalid::from(error))).into()),
        Some(Err(_)) | None => Err(StoreError::LeaseLost.into()),
    }
}

macro_rules! outcome_handlers {
    ($($(#[doc = $doc:literal])+ $name:ident = $kind:ident, $path:literal, $id:literal, $body:ty;)+) => {
        $(
            $(#[doc = $doc])+
            #[utoipa::path(
                post,
                path = $path,
                tag = "workers",
                operation_id = $id,
                params(("leaseToken" = Token, Path, description = "The token of the lease.")),
                request_body = $body,
                responses(
                    (status = 200, description = "The status of the job.", body = JobStatusView),
                    (status = 409, response = LeaseLost),
                ),
            )]
            pub(crate) async fn $name(
                State(app): State<Arc<App>>,
                PathParam(text): PathParam,
                body: JsonBody,
            ) -> Result<Json<JobStatusView>, ApiError> {
                finish(&app, OutcomeKind::$kind, &text, &body).await
            }
        )+
    };
}

outcome_handlers! {
    /// Completes an attempt.
    complete = Complete, "/worker/leases/{leaseToken}/complete", "completeLease", Option<CompleteRequest>;
    /// Fails an attempt.
    ///
    /// The job is retried after its backoff, unless the error is not retryable or no attempts are left.
    fail = Fail, "/worker/leases/{leaseToken}/fail", "failLease", FailRequest;
    /// Snoozes a job.
    ///
    /// The job becomes claimable again after the delay. The attempt does not count.
    snooze = Snooze, "/worker/leases/{leaseToken}/snooze", "snoozeLease", SnoozeRequest;
    /// Releases a job.
    ///
    /// The job becomes claimable again at once. The attempt does not count.
    release = Release, "/worker/leases/{leaseToken}/release", "releaseLease", Option<ReleaseRequest>;
}

/// Reports the outcomes of a batch of attempts.
///
/// Each outcome succeeds or fails independently.
#[utoipa::path(
    post,
    path = "/worker/leases/complete-batch",
    tag = "workers",
    operation_id = "completeLeases",
    request_body = OutcomesRequest,
    responses((status = 200, description = "The results, in the order of the request.", body = OutcomesResponse)),
)]
pub(crate) async fn finish_batch(
    State(app): State<Arc<App>>,
    body: JsonBody,
) -> Result<Json<OutcomesResponse>, ApiError> {
    let items = body.read(parse_outcomes).await?;
    let (mut texts, mut reports) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for (text, token, outcome) in items {
        texts.push((text, token.is_some()));
        reports.extend(token.map(|token| OutcomeReport { token, outcome }));
    }
    let mut results = app.store.finish_attempts(reports).await?.into_iter();
    let response = |(lease_token, is_token): (String, bool)| {
        let result = if is_token { results.next() } else { None };
        let rejected = |code, detail: String| (None, Some(code), Some(detail));
        let (status, code, detail) = match result {
            Some(Ok(state)) => (Some(state.status()), None, None),
            Some(Err(FinishError::Invalid(error))) => rejected(Code::ValidationFailed, error.to_string()),
            Some(Err(_)) | None => rejected(Code::LeaseLost, "the token no longer owns the job".into()),
        };
        OutcomeResponse { lease_token, status, code, detail }
    };
    let items: Vec<OutcomeResponse> = texts.into_iter().map(response).collect();
    metrics::stale_writes(items.iter().filter(|item| item.code == Some(Code::LeaseLost)).count());
    Ok(Json(OutcomesResponse { items }))
}
