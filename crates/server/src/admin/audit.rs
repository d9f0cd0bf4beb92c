//! `/admin/audit`: lists audit entries.

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    ListResponse,
    admin::{
        audit::{self, AuditEntryView, AuditFilterRequest},
        page::PageParams,
    },
};

use crate::{App, api_error::ApiError, auth::principal::Principal, params::QueryParams};

/// Lists audit entries, newest first.
#[utoipa::path(
    get,
    path = "/admin/audit",
    tag = "admin",
    operation_id = "listAudit",
    params(AuditFilterRequest, PageParams),
    responses((status = 200, description = "A page of audit entries.", body = ListResponse<AuditEntryView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Principal,
    query: QueryParams,
) -> Result<Json<ListResponse<AuditEntryView>>, ApiError> {
    let (mut filter, page) = audit::parse_list(&query.0)?;
    if let Some(tenant) = &filter.tenant {
        caller.require_tenant(tenant)?;
    }
    if let Some(own) = caller.tenant() {
        filter.tenant = Some(own.clone());
    }
    Ok(Json(ListResponse::from_page(app.store.list_audit_entries(&filter, &page).await?, AuditEntryView::from)))
}
