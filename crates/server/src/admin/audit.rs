//! `GET /admin/audit`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{
        audit::{self, AuditRequest, AuditView},
        page::PartRequest,
    },
};

use crate::{App, api_error::ApiError, auth::principal::Principal, params::QueryParams};

/// Lists who did what, the newest first.
#[utoipa::path(
    get,
    path = "/admin/audit",
    tag = "admin",
    operation_id = "listAudit",
    params(AuditRequest, PartRequest),
    responses((status = 200, description = "Entries that match, the newest first.", body = Listed<AuditView>)),
)]
pub(crate) async fn audit(
    State(app): State<Arc<App>>,
    caller: Principal,
    asked: QueryParams,
) -> Result<Json<Listed<AuditView>>, ApiError> {
    let (mut filter, page) = audit::read_list(&asked.0)?;
    if let Some(asked) = &filter.tenant {
        caller.require_tenant(asked)?;
    }
    if let Some(own) = caller.tenant() {
        filter.tenant = Some(own.clone());
    }
    Ok(Json(Listed::of(app.store.list_audit_entries(&filter, &page).await?, AuditView::from)))
}
