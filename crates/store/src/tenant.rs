//! Settings of tenants.

use orchestrix_core::Weight;

/// What an operator set for a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantSettings {
    /// The tenant's share among the tenants of one priority.
    pub weight: Weight,
}

/// A change of a tenant's settings: what is absent stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantPatch {
    /// The new weight.
    pub weight: Option<Weight>,
}

impl TenantSettings {
    /// The settings after `patch`.
    pub fn patched(self, patch: TenantPatch) -> Self {
        Self { weight: patch.weight.unwrap_or(self.weight) }
    }
}
