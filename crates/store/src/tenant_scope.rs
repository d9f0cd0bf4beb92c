//! Whose things a verb acts on.
//!
//! What belongs to another tenant is not there: it is neither shown nor counted nor changed, and no cursor names it. Stores compare the
//! tenant where they read or write the row, under the same lock: whoever compares first and acts afterwards may act on what has become
//! another's meanwhile.

use orchestrix_core::Tenant;

/// The tenant that a verb keeps to; `None` acts on all, whosever they are.
pub type TenantScope<'a> = Option<&'a Tenant>;

/// Whether what belongs to `tenant` is there. What is nobody's is there for those who keep to none.
pub fn in_scope(tenant: Option<&str>, within: TenantScope<'_>) -> bool {
    within.is_none_or(|own| tenant == Some(own.as_str()))
}
