//! `/admin/operations` and `/admin/jobs/bulk`: starts, shows and aborts bulk operations.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use orchestrix_api::{
    Code, ListResponse,
    admin::{
        operation::{self, BulkRequest, BulkResponse, BulkSpec, OperationView},
        page::{self, PageParams},
    },
    schema::Id,
};
use orchestrix_core::OperationId;
use orchestrix_store::{NewOperation, Operation, StoreError};

use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    body::JsonBody,
    openapi::problems::{OperationNotFound, TooManyOperations},
    params::{PathParam, QueryParams},
};

/// The length of an id in its canonical form. Other forms are rejected, so that an operation has one URL.
const ID_LENGTH: usize = 36;

/// Starts a bulk operation.
///
/// The leader applies one action to all matching jobs. Jobs enqueued later are not affected.
#[utoipa::path(
    post,
    path = "/admin/jobs/bulk",
    tag = "admin",
    operation_id = "beginOperation",
    request_body = BulkRequest,
    responses(
        (status = 202, description = "The operation has started.", body = BulkResponse),
        (status = 409, response = TooManyOperations),
    ),
)]
pub(crate) async fn begin(
    State(app): State<Arc<App>>,
    caller: Principal,
    body: JsonBody,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<BulkResponse>), ApiError> {
    let BulkSpec { action, mut filter, dry_run } = operation::parse_bulk(body.as_str()?)?;
    caller.restrict(&mut filter)?;
    let (actor, tenant) = (caller.name().to_owned(), caller.tenant().cloned());
    let operation = NewOperation { action, filter, dry_run, actor, tenant };
    let operation_id = app.store.begin_operation(operation).await?.id;
    let location = [(header::LOCATION, format!("/admin/operations/{operation_id}"))];
    Ok((StatusCode::ACCEPTED, location, Json(BulkResponse { operation_id })))
}

/// Lists bulk operations, newest first.
#[utoipa::path(
    get,
    path = "/admin/operations",
    tag = "admin",
    operation_id = "listOperations",
    params(PageParams),
    responses((status = 200, description = "A page of operations.", body = ListResponse<OperationView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Principal,
    query: QueryParams,
) -> Result<Json<ListResponse<OperationView>>, ApiError> {
    let page = page::parse_page(&query.0, |text| text.parse().ok())?;
    let operations = app.store.list_operations(caller.tenant(), &page).await?;
    Ok(Json(ListResponse::from_page(operations, OperationView::from)))
}

/// Retrieves a bulk operation and its progress.
#[utoipa::path(
    get,
    path = "/admin/operations/{id}",
    tag = "admin",
    operation_id = "getOperation",
    params(("id" = Id, Path, description = "The operation's id.")),
    responses(
        (status = 200, description = "The operation.", body = OperationView),
        (status = 404, response = OperationNotFound),
    ),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<OperationView>, ApiError> {
    let id = parse_id(&text)?;
    Ok(Json(OperationView::from(find(&app, &caller, id).await?)))
}

/// Aborts a bulk operation.
///
/// Jobs that were already changed stay changed. A finished operation is not affected.
#[utoipa::path(
    post,
    path = "/admin/operations/{id}/abort",
    tag = "admin",
    operation_id = "abortOperation",
    params(("id" = Id, Path, description = "The operation's id.")),
    responses(
        (status = 202, description = "The operation.", body = OperationView),
        (status = 404, response = OperationNotFound),
    ),
)]
pub(crate) async fn abort(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<OperationView>), ApiError> {
    let id = parse_id(&text)?;
    find(&app, &caller, id).await?;
    let operation = app.store.abort_operation(id).await?;
    Ok((StatusCode::ACCEPTED, Json(OperationView::from(operation))))
}

/// Parses the id in a path. A malformed id gets the same 404 as an unknown one.
fn parse_id(text: &str) -> Result<OperationId, ApiError> {
    let id = (text.len() == ID_LENGTH).then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| ApiError::new(Code::OperationNotFound, "there is no such operation"))
}

// A caller bound to a tenant finds only operations that its tenant started.
async fn find(app: &App, caller: &Principal, id: OperationId) -> Result<Operation, ApiError> {
    let operation = app.store.operation(id).await?.filter(|operation| caller.may_see_operation(operation));
    Ok(operation.ok_or(StoreError::OperationNotFound(id))?)
}
