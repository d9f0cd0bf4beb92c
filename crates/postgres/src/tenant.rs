//! Settings of tenants.

use async_trait::async_trait;
use orchestrix_core::{Tenant, Weight};
use orchestrix_store::{Page, PageRequest, Result, TenantPatch, TenantSettings, TenantStore};
use tokio_postgres::Row;

use crate::{
    PostgresStore,
    row::corrupt,
    statement::{FIND_TENANT, LIST_TENANTS, SET_TENANT},
};

#[async_trait]
impl TenantStore for PostgresStore {
    async fn tenant_settings(&self, tenant: &Tenant) -> Result<TenantSettings> {
        let rows = self.database().query(&FIND_TENANT, &[&tenant.as_str()]).await?;
        rows.first().map_or_else(|| Ok(TenantSettings::default()), settings)
    }

    async fn set_tenant(&self, tenant: &Tenant, patch: TenantPatch) -> Result<TenantSettings> {
        let weight = patch.weight.map(|weight| i32::from(weight.get()));
        let rows = self.database().query(&SET_TENANT, &[&tenant.as_str(), &weight]).await?;
        rows.first().map_or_else(|| Ok(TenantSettings::default()), settings)
    }

    async fn list_tenants(&self, page: &PageRequest<Tenant>) -> Result<Page<(Tenant, TenantSettings), Tenant>> {
        page.validate()?;
        let after = page.cursor.as_ref().map_or("", Tenant::as_str);
        let rows = self.database().query(&LIST_TENANTS, &[&after, &(page.limit as i64 + 1)]).await?;
        let read = |row: &Row| Ok((Tenant::trusted(row.get("name")), settings(row)?));
        let items: Vec<(Tenant, TenantSettings)> = rows.iter().take(page.limit).map(read).collect::<Result<_>>()?;
        let next = (rows.len() > page.limit).then(|| items.last().map(|(name, _)| name.clone())).flatten();
        Ok(Page { items, next })
    }
}

fn settings(row: &Row) -> Result<TenantSettings> {
    let weight = Weight::new(row.get::<_, i32>("weight").into()).map_err(|error| corrupt("weight", error))?;
    Ok(TenantSettings { weight })
}
