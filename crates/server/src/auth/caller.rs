//! Who asks, as handlers know them, and what they keep them to.
//!
//! A caller that is bound to a tenant acts in it alone. What names another is forbidden; what is another's is not there.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use orchestrix_api::Code;
use orchestrix_core::{JobId, KeyId, Role, Tenant};
use orchestrix_store::{JobFilter, Operation, StoreError};

use crate::{App, refusal::Refusal};

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Arc<Who>);

#[derive(Debug)]
struct Who {
    name: String,
    key: Option<KeyId>,
    role: Role,
    tenant: Option<Tenant>,
}

impl Caller {
    /// Somebody who may do whatever is there to do.
    pub(crate) fn anything(name: String) -> Self {
        Self(Arc::new(Who { name, key: None, role: Role::Admin, tenant: None }))
    }

    /// The holder of a key, who is called by it.
    pub(crate) fn of(key: KeyId, role: Role, tenant: Option<Tenant>) -> Self {
        Self(Arc::new(Who { name: format!("key:{key}"), key: Some(key), role, tenant }))
    }

    /// What they are called in the audit.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// The key that they showed, where keys are asked for.
    pub(crate) fn key(&self) -> Option<&KeyId> {
        self.0.key.as_ref()
    }

    pub(crate) fn role(&self) -> Role {
        self.0.role
    }

    /// The tenant that they are bound to.
    pub(crate) fn tenant(&self) -> Option<&Tenant> {
        self.0.tenant.as_ref()
    }

    /// The tenant of what names none.
    pub(crate) fn home(&self) -> Tenant {
        self.tenant().cloned().unwrap_or_default()
    }

    /// Whether what is this tenant's is theirs to see.
    pub(crate) fn sees(&self, tenant: &Tenant) -> bool {
        self.tenant().is_none_or(|own| own == tenant)
    }

    /// Refuses a job of another tenant, as if there were none.
    pub(crate) async fn owns(&self, app: &App, id: JobId) -> Result<(), Refusal> {
        // A job stays its tenant's, so what is seen here holds for whatever follows.
        if self.tenant().is_some() && !self.sees(&app.reader.find(id).await?.tenant) {
            return Err(StoreError::JobNotFound(id).into());
        }
        Ok(())
    }

    /// Whether somebody who acts in the same tenant began this; whoever is bound to none sees all.
    pub(crate) fn began(&self, operation: &Operation) -> bool {
        self.tenant().is_none_or(|own| operation.tenant.as_ref() == Some(own))
    }

    /// Refuses to act for another tenant.
    pub(crate) fn acts_for(&self, tenant: &Tenant) -> Result<(), Refusal> {
        match self.sees(tenant) {
            true => Ok(()),
            false => Err(Refusal::new(Code::Forbidden, "the key is bound to another tenant")),
        }
    }

    /// Keeps a filter to their own.
    pub(crate) fn keep(&self, filter: &mut JobFilter) -> Result<(), Refusal> {
        if let Some(asked) = &filter.tenant {
            self.acts_for(asked)?;
        }
        if let Some(own) = self.tenant() {
            filter.tenant = Some(own.clone());
        }
        Ok(())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        // Whoever is let in was asked who they are: see `around`.
        let caller = parts.extensions.get().cloned();
        caller.ok_or_else(|| Refusal::new(Code::Internal, "nobody asked who is there"))
    }
}
