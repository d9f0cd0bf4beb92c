//! Settings of tenants.

use std::{collections::BTreeMap, ops::Bound};

use orchestrix_core::Tenant;
use orchestrix_store::{Page, PageRequest, Result, TenantPatch, TenantSettings};

/// The tenants that have settings.
#[derive(Debug, Default)]
pub(crate) struct Tenants(BTreeMap<Tenant, TenantSettings>);

impl Tenants {
    pub(crate) fn settings(&self, tenant: &Tenant) -> TenantSettings {
        self.0.get(tenant).copied().unwrap_or_default()
    }

    pub(crate) fn set(&mut self, tenant: &Tenant, patch: TenantPatch) -> TenantSettings {
        let settings = self.settings(tenant).patched(patch);
        self.0.insert(tenant.clone(), settings);
        settings
    }

    pub(crate) fn page(&self, page: &PageRequest<Tenant>) -> Result<Page<(Tenant, TenantSettings), Tenant>> {
        page.validate()?;
        let after = page.cursor.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut tenants = self.0.range::<Tenant, _>((after, Bound::Unbounded));
        let items: Vec<_> =
            tenants.by_ref().take(page.limit).map(|(name, settings)| (name.clone(), *settings)).collect();
        let next = tenants.next().and_then(|_| items.last()).map(|(name, _)| name.clone());
        Ok(Page { items, next })
    }
}
