//! `POST /worker/leases/complete-batch`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Code,
    worker::{OutcomeAnswer, OutcomesAnswer, OutcomesRequest, read_outcomes},
};
use orchestrix_store::{FinishError, OutcomeReport, metrics};

use crate::{App, api_error::ApiError, body::JsonBody};

/// Ends many attempts, each by itself.
#[utoipa::path(
    post,
    path = "/worker/leases/complete-batch",
    tag = "workers",
    operation_id = "completeLeases",
    request_body = OutcomesRequest,
    responses((status = 200, description = "What came of each, in the order of the request.", body = OutcomesAnswer)),
)]
pub(crate) async fn outcomes(State(app): State<Arc<App>>, body: JsonBody) -> Result<Json<OutcomesAnswer>, ApiError> {
    let items = body.read(read_outcomes).await?;
    let (mut texts, mut known) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for (text, token, outcome) in items {
        texts.push((text, token.is_some()));
        known.extend(token.map(|token| OutcomeReport { token, outcome }));
    }
    let mut answers = app.store.finish_attempts(known).await?.into_iter();
    let answer = |(lease_token, known): (String, bool)| {
        let answer = if known { answers.next() } else { None };
        let refused = |code, detail: String| (None, Some(code), Some(detail));
        let (status, code, detail) = match answer {
            Some(Ok(state)) => (Some(state.status()), None, None),
            Some(Err(FinishError::Invalid(error))) => refused(Code::ValidationFailed, error.to_string()),
            Some(Err(_)) | None => refused(Code::LeaseLost, "the token does not own its job any more".into()),
        };
        OutcomeAnswer { lease_token, status, code, detail }
    };
    let items: Vec<OutcomeAnswer> = texts.into_iter().map(answer).collect();
    metrics::stale_writes(items.iter().filter(|item| item.code == Some(Code::LeaseLost)).count());
    Ok(Json(OutcomesAnswer { items }))
}
