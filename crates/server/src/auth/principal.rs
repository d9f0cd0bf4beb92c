//! The authenticated caller of a request, and what its tenant allows.
//!
//! A caller that is bound to a tenant acts within it. A request that names another tenant gets 403; another tenant's
//! data looks absent.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use orchestrix_api::Code;
use orchestrix_core::{JobId, KeyId, Role, Tenant};
use orchestrix_store::{JobFilter, Operation, StoreError};

use crate::{App, api_error::ApiError};

/// The authenticated caller of a request. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Principal(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    name: String,
    key: Option<KeyId>,
    role: Role,
    tenant: Option<Tenant>,
}

impl Principal {
    /// An admin without a key, bound to no tenant.
    pub(crate) fn unrestricted(name: String) -> Self {
        Self(Arc::new(Identity { name, key: None, role: Role::Admin, tenant: None }))
    }

    /// The holder of a key.
    pub(crate) fn from_key(key: KeyId, role: Role, tenant: Option<Tenant>) -> Self {
        Self(Arc::new(Identity { name: format!("key:{key}"), key: Some(key), role, tenant }))
    }

    /// The actor of the caller's audit entries.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// The key of the request; `None` if the server requires none.
    pub(crate) fn key(&self) -> Option<&KeyId> {
        self.0.key.as_ref()
    }

    pub(crate) fn role(&self) -> Role {
        self.0.role
    }

    /// The tenant that the caller is bound to.
    pub(crate) fn tenant(&self) -> Option<&Tenant> {
        self.0.tenant.as_ref()
    }

    /// The tenant of a new job or schedule that names none.
    pub(crate) fn default_tenant(&self) -> Tenant {
        self.tenant().cloned().unwrap_or_default()
    }

    /// Whether the caller may see this tenant's data.
    pub(crate) fn may_see(&self, tenant: &Tenant) -> bool {
        self.tenant().is_none_or(|own| own == tenant)
    }

    /// Fails with 404 if the job belongs to a tenant that the caller may not see.
    pub(crate) async fn require_job(&self, app: &App, id: JobId) -> Result<(), ApiError> {
        // A job never changes its tenant, so the check holds for whatever the handler does next.
        if self.tenant().is_some() && !self.may_see(&app.reader.find(id).await?.tenant) {
            return Err(StoreError::JobNotFound(id).into());
        }
        Ok(())
    }

    /// Whether the caller may see this bulk operation: a caller of the same tenant began it, or the caller is bound to
    /// none.
    pub(crate) fn may_see_operation(&self, operation: &Operation) -> bool {
        self.tenant().is_none_or(|own| operation.tenant.as_ref() == Some(own))
    }

    /// Fails with 403 if the caller may not act for this tenant.
    pub(crate) fn require_tenant(&self, tenant: &Tenant) -> Result<(), ApiError> {
        match self.may_see(tenant) {
            true => Ok(()),
            false => Err(ApiError::new(Code::Forbidden, "the key is bound to another tenant")),
        }
    }

    /// Restricts a filter to the caller's tenant. Fails with 403 if it names another one.
    pub(crate) fn restrict(&self, filter: &mut JobFilter) -> Result<(), ApiError> {
        if let Some(tenant) = &filter.tenant {
            self.require_tenant(tenant)?;
        }
        if let Some(own) = self.tenant() {
            filter.tenant = Some(own.clone());
        }
        Ok(())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // The middleware has authenticated every request that reaches a handler.
        let caller = parts.extensions.get().cloned();
        caller.ok_or_else(|| ApiError::new(Code::Internal, "internal error: request was not authenticated"))
    }
}
