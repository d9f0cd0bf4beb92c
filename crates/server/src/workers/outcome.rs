//! `POST /worker/leases/{leaseToken}/complete`, `…/fail`, `…/snooze` and `…/release`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Problem,
    job::{self, Accepted},
    schema::Token,
    worker::{
        Ending,
        ending::{CompleteRequest, FailRequest, ReleaseRequest, SnoozeRequest},
        read_outcome,
    },
};
use orchestrix_store::{FinishError, OutcomeReport, StoreError};

use super::token;
use crate::{App, api_error::ApiError, body::JsonBody, openapi::problems::Lost, params::PathParam};

async fn end(app: &App, ending: Ending, text: &str, body: &JsonBody) -> Result<Json<Accepted>, ApiError> {
    // What is wrong with the body is said even to a worker whose lease is lost.
    let outcome = read_outcome(ending, body.as_str()?)?;
    let token = token(text)?;
    match app.store.finish_attempts(vec![OutcomeReport { token, outcome }]).await?.pop() {
        Some(Ok(state)) => Ok(Json(Accepted { job_id: token.job, status: state.status() })),
        Some(Err(FinishError::Invalid(error))) => {
            Err(Problem::from(job::Refusal::from(orchestrix_core::Invalid::from(error))).into())
        }
        Some(Err(_)) | None => Err(StoreError::LeaseLost.into()),
    }
}

macro_rules! endings {
    ($($name:ident = $ending:ident, $path:literal, $id:literal, $body:ty, $doc:literal;)+) => {
        $(
            #[doc = $doc]
            #[utoipa::path(
                post,
                path = $path,
                tag = "workers",
                operation_id = $id,
                params(("leaseToken" = Token, Path, description = "The token that the lease came with.")),
                request_body = $body,
                responses((status = 200, description = "Where the job stands.", body = Accepted), (status = 409, response = Lost)),
            )]
            pub(crate) async fn $name(
                State(app): State<Arc<App>>,
                PathParam(text): PathParam,
                body: JsonBody,
            ) -> Result<Json<Accepted>, ApiError> {
                end(&app, Ending::$ending, &text, &body).await
            }
        )+
    };
}

endings! {
    complete = Complete, "/worker/leases/{leaseToken}/complete", "completeLease", Option<CompleteRequest>, "Ends an attempt that did its work.";
    fail = Fail, "/worker/leases/{leaseToken}/fail", "failLease", FailRequest, "Ends an attempt that went wrong.";
    snooze = Snooze, "/worker/leases/{leaseToken}/snooze", "snoozeLease", SnoozeRequest, "Puts the job off; costs no attempt.";
    release = Release, "/worker/leases/{leaseToken}/release", "releaseLease", Option<ReleaseRequest>, "Hands the job back; costs no attempt.";
}
