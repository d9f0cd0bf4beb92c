//! Settings of tenants.

use orchestrix_core::{Tenant, Weight};
use orchestrix_store::{Page, PageRequest, TenantPatch, TenantSettings};
use rusqlite::{Row, params};

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    session::{Session, Transaction},
    statement::{FIND_TENANT, LIST_TENANTS, SET_TENANT},
};

columns! {
    mod tenant of LIST_TENANTS, FIND_TENANT {
        name, weight,
    }
}

pub(crate) fn find(session: &Session<'_>, name: &Tenant) -> Result<TenantSettings> {
    let found = session.first(FIND_TENANT, [name.as_str()], read)?;
    Ok(found.map(|(_, settings)| settings).unwrap_or_default())
}

pub(crate) fn list(
    session: &Session<'_>,
    page: &PageRequest<Tenant>,
) -> Result<Page<(Tenant, TenantSettings), Tenant>> {
    let after = page.cursor.as_ref().map_or("", Tenant::as_str);
    let mut items = session.all(LIST_TENANTS, params![after, page.limit + 1], read)?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|(name, _)| name.clone()).filter(|_| more);
    Ok(Page { items, next })
}

fn read(row: &Row<'_>) -> Result<(Tenant, TenantSettings)> {
    let row = Columns(row);
    let weight = Weight::new(row.get(tenant::weight)?).map_err(|error| corrupt("weight", error))?;
    Ok((Tenant::trusted(row.text(tenant::name)?), TenantSettings { weight }))
}

impl Transaction<'_> {
    pub(crate) fn set_tenant(&mut self, name: &Tenant, patch: TenantPatch) -> Result<TenantSettings> {
        let settings = find(self, name)?.patched(patch);
        self.write_one(SET_TENANT, params![name.as_str(), settings.weight.get()])?;
        Ok(settings)
    }
}
