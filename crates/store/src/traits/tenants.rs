//! Tenants: their shares.

use async_trait::async_trait;
use orchestrix_core::Tenant;

use crate::{Page, PageRequest, Result, TenantPatch, TenantSettings};

/// Keeps the settings of tenants. A tenant without settings has the defaults.
#[async_trait]
pub trait TenantStore: Send + Sync {
    /// Returns the settings of a tenant.
    async fn tenant_settings(&self, tenant: &Tenant) -> Result<TenantSettings>;

    /// Changes settings of a tenant and returns all of them. Claims use them within a second.
    async fn set_tenant(&self, tenant: &Tenant, patch: TenantPatch) -> Result<TenantSettings>;

    /// Lists the tenants that have settings, by name.
    async fn list_tenants(&self, page: &PageRequest<Tenant>) -> Result<Page<(Tenant, TenantSettings), Tenant>>;
}
