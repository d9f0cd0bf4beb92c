//! `GET /admin/operations/{id}` and `POST /admin/operations/{id}/abort`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{Code, admin::operation::OperationView, schema::Id};
use orchestrix_core::OperationId;
use orchestrix_store::{Operation, StoreError};

use crate::{
    App, api_error::ApiError, auth::principal::Principal, openapi::problems::NoSuchOperation, params::PathParam,
};

/// The length of an id as it is written everywhere: one operation has one address.
const ID: usize = 36;

/// Shows how far an operation has come.
#[utoipa::path(
    get,
    path = "/admin/operations/{id}",
    tag = "admin",
    operation_id = "getOperation",
    params(("id" = Id, Path, description = "The operation's id.")),
    responses((status = 200, description = "The operation.", body = OperationView), (status = 404, response = NoSuchOperation)),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<OperationView>, ApiError> {
    let id = id(&text)?;
    Ok(Json(OperationView::from(find(&app, &caller, id).await?)))
}

// One that somebody began who acts in the same tenant.
async fn find(app: &App, caller: &Principal, id: OperationId) -> Result<Operation, ApiError> {
    let found = app.store.operation(id).await?.filter(|operation| caller.may_see_operation(operation));
    Ok(found.ok_or(StoreError::OperationNotFound(id))?)
}

/// Stops an operation. What it has done stays done; one that is over stays as it is.
#[utoipa::path(
    post,
    path = "/admin/operations/{id}/abort",
    tag = "admin",
    operation_id = "abortOperation",
    params(("id" = Id, Path, description = "The operation's id.")),
    responses((status = 202, description = "How it stands.", body = OperationView), (status = 404, response = NoSuchOperation)),
)]
pub(crate) async fn abort(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<OperationView>), ApiError> {
    let id = id(&text)?;
    find(&app, &caller, id).await?;
    let operation = app.store.abort_operation(id).await?;
    Ok((StatusCode::ACCEPTED, Json(OperationView::from(operation))))
}

// What is no id belongs to no operation.
fn id(text: &str) -> Result<OperationId, ApiError> {
    let id = (text.len() == ID).then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| ApiError::new(Code::OperationNotFound, "there is no such operation"))
}
