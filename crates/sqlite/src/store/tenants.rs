//! [`TenantStore`] on SQLite.

use async_trait::async_trait;
use orchestrix_core::Tenant;
use orchestrix_store::{Page, PageRequest, Result, TenantPatch, TenantSettings, TenantStore};

use super::SqliteStore;
use crate::tenant;

#[async_trait]
impl TenantStore for SqliteStore {
    async fn tenant_settings(&self, tenant: &Tenant) -> Result<TenantSettings> {
        let tenant = tenant.clone();
        self.database().read(move |session| tenant::find(&session, &tenant)).await
    }

    async fn set_tenant(&self, tenant: &Tenant, patch: TenantPatch) -> Result<TenantSettings> {
        let tenant = tenant.clone();
        self.database().write(move |transaction| transaction.set_tenant(&tenant, patch)).await
    }

    async fn list_tenants(&self, page: &PageRequest<Tenant>) -> Result<Page<(Tenant, TenantSettings), Tenant>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| tenant::list(&session, &page)).await
    }
}
