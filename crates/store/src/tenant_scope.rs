//! The tenant scope of a call.
//!
//! For a scoped call, what belongs to another tenant does not exist: it is neither returned nor counted nor changed,
//! and no cursor reveals it. A store compares the tenant where it reads or writes the row, under the same lock.
//! Comparing first and writing later could change a row that another tenant has taken over in between.

use orchestrix_core::Tenant;

/// The tenant that a call is limited to; `None` for all tenants.
pub type TenantScope<'a> = Option<&'a Tenant>;

/// Whether something that belongs to `tenant` is visible in `scope`. What belongs to no tenant is visible only to
/// unscoped calls.
pub fn in_scope(tenant: Option<&str>, scope: TenantScope<'_>) -> bool {
    scope.is_none_or(|own| tenant == Some(own.as_str()))
}
