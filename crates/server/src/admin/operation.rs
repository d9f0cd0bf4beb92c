//! `GET /admin/operations/{id}` and `POST /admin/operations/{id}/abort`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{Code, admin::operation::OperationView, schema::Id};
use orchestrix_core::OperationId;
use orchestrix_store::{Operation, StoreError};

use crate::{App, auth::caller::Caller, openapi::problems::NoSuchOperation, params::Named, refusal::Refusal};

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
    caller: Caller,
    Named(text): Named,
) -> Result<Json<OperationView>, Refusal> {
    let id = id(&text)?;
    Ok(Json(OperationView::from(find(&app, &caller, id).await?)))
}

// One that somebody began who acts in the same tenant.
async fn find(app: &App, caller: &Caller, id: OperationId) -> Result<Operation, Refusal> {
    let found = app.store.operation(id).await?.filter(|operation| caller.began(operation));
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
    caller: Caller,
    Named(text): Named,
) -> Result<(StatusCode, Json<OperationView>), Refusal> {
    let id = id(&text)?;
    find(&app, &caller, id).await?;
    let operation = app.store.abort_operation(id).await?;
    Ok((StatusCode::ACCEPTED, Json(OperationView::from(operation))))
}

// What is no id belongs to no operation.
fn id(text: &str) -> Result<OperationId, Refusal> {
    let id = (text.len() == ID).then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| Refusal::new(Code::OperationNotFound, "there is no such operation"))
}
