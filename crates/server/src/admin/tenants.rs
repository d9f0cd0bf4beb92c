//! `/admin/tenants`: lists, shows and changes the settings of tenants.

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Code, ListResponse, Problem,
    admin::{
        page::{self, PageParams},
        tenant::{self, TenantRequest, TenantView},
    },
    schema::Name,
};
use orchestrix_core::{FieldError, Invalid, Tenant};
use orchestrix_store::{Page, PageRequest, TenantSettings};

use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    body::JsonBody,
    openapi::problems::TenantNotFound,
    params::{PathParam, QueryParams},
};

/// Lists tenants whose settings were set, ordered by name.
///
/// All other tenants have the defaults. For a key that is bound to a tenant, lists that tenant only.
#[utoipa::path(
    get,
    path = "/admin/tenants",
    tag = "admin",
    operation_id = "listTenants",
    params(PageParams),
    responses((status = 200, description = "A page of tenants.", body = ListResponse<TenantView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Principal,
    query: QueryParams,
) -> Result<Json<ListResponse<TenantView>>, ApiError> {
    let page = page::parse_page(&query.0, |text| Tenant::new(text).ok())?;
    let tenants = match caller.tenant() {
        Some(own) => own_page(&app, own, &page).await?,
        None => app.store.list_tenants(&page).await?,
    };
    Ok(Json(ListResponse::from_page(tenants, |(name, settings)| TenantView::new(name, settings))))
}

/// The page that a key bound to `own` may see: one tenant, unless the cursor is past it.
async fn own_page(
    app: &App,
    own: &Tenant,
    page: &PageRequest<Tenant>,
) -> Result<Page<(Tenant, TenantSettings), Tenant>, ApiError> {
    let mut items = Vec::new();
    if page.cursor.as_ref().is_none_or(|cursor| cursor < own) {
        items.push((own.clone(), app.store.tenant_settings(own).await?));
    }
    Ok(Page { items, next: None })
}

/// Retrieves the settings of a tenant.
///
/// Every valid name is a tenant. A tenant whose settings were never set has the defaults.
#[utoipa::path(
    get,
    path = "/admin/tenants/{name}",
    tag = "admin",
    operation_id = "getTenant",
    params(("name" = Name, Path, description = "The tenant's name.")),
    responses(
        (status = 200, description = "The tenant.", body = TenantView),
        (status = 404, response = TenantNotFound),
    ),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<TenantView>, ApiError> {
    let name = Tenant::new(&text).ok().filter(|name| caller.may_see(name));
    let name = name.ok_or_else(|| ApiError::new(Code::NotFound, "there is no tenant with this name"))?;
    let settings = app.store.tenant_settings(&name).await?;
    Ok(Json(TenantView::new(name, settings)))
}

/// Changes settings of a tenant.
///
/// Tenants of one priority take turns, and a tenant gets jobs started in proportion to its weight. Workers use a new
/// weight within a second. A key that is bound to a tenant may not change settings, not even those of its own tenant.
#[utoipa::path(
    put,
    path = "/admin/tenants/{name}",
    tag = "admin",
    operation_id = "putTenant",
    params(("name" = Name, Path, description = "The tenant's name.")),
    request_body = TenantRequest,
    responses((status = 200, description = "The tenant.", body = TenantView)),
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<TenantView>, ApiError> {
    let patch = tenant::parse_tenant(body.as_str()?)?;
    let name =
        Tenant::new(&text).map_err(|error| Problem::invalid(Invalid::from(FieldError::new("name", error.message))))?;
    let settings = app.store.set_tenant(&name, patch).await?;
    Ok(Json(TenantView::new(name, settings)))
}
