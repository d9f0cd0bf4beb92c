//! `POST /admin/jobs/bulk`

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use orchestrix_api::admin::operation::{self, Begun, Bulk, BulkRequest};
use orchestrix_store::NewOperation;

use crate::{App, api_error::ApiError, auth::principal::Principal, body::JsonBody, openapi::problems::TooManyAtOnce};

/// Begins one action on all jobs that match, which the leader works off; jobs that are recorded later are left alone.
#[utoipa::path(
    post,
    path = "/admin/jobs/bulk",
    tag = "admin",
    operation_id = "beginOperation",
    request_body = BulkRequest,
    responses((status = 202, description = "It is begun.", body = Begun), (status = 409, response = TooManyAtOnce)),
)]
pub(crate) async fn bulk(
    State(app): State<Arc<App>>,
    caller: Principal,
    body: JsonBody,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Begun>), ApiError> {
    let Bulk { action, mut filter, dry_run } = operation::read(body.as_str()?)?;
    caller.restrict(&mut filter)?;
    let (actor, tenant) = (caller.name().to_owned(), caller.tenant().cloned());
    let wanted = NewOperation { action, filter, dry_run, actor, tenant };
    let operation_id = app.store.begin_operation(wanted).await?.id;
    let place = [(header::LOCATION, format!("/admin/operations/{operation_id}"))];
    Ok((StatusCode::ACCEPTED, place, Json(Begun { operation_id })))
}
