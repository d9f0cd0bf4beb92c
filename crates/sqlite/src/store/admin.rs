//! [`AdminStore`] on SQLite.

use async_trait::async_trait;
use orchestrix_core::{KeyId, OperationId};
use orchestrix_store::{
    AdminStore, ApiKey, AuditEntry, AuditFilter, KeyRecord, NewAuditEntry, NewKey, NewOperation, Operation, Page,
    PageRequest, Result, StoreError, TenantScope, audit::check_outcome, housekeeping::check_limit,
};

use super::SqliteStore;
use crate::{
    audit, key,
    operation::{self, ListedOperation},
};

impl SqliteStore {
    // Omits operations that this program cannot read, so that they do not hide the others. Warns once about each.
    fn readable(&self, listed: Vec<ListedOperation>) -> Vec<Operation> {
        let warn = |id, error: &StoreError| {
            if self.0.unreadable.is_new(id) {
                tracing::warn!(operation = %id, %error, "an operation that cannot be read was omitted from a list");
            }
        };
        listed.into_iter().filter_map(|(id, read)| read.inspect_err(|error| warn(id, error)).ok()).collect()
    }
}

#[async_trait]
impl AdminStore for SqliteStore {
    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation> {
        operation.validate()?;
        self.database().write(move |transaction| transaction.begin_operation(operation)).await
    }

    async fn abort_operation(&self, id: OperationId) -> Result<Operation> {
        self.database().write(move |transaction| transaction.abort_operation(id)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>> {
        self.database().read(move |session| operation::find(&session, id)).await
    }

    async fn list_operations(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>> {
        page.validate()?;
        let (scope, page) = (scope.cloned(), page.clone());
        let (listed, next) =
            self.database().read(move |session| operation::list(&session, scope.as_ref(), &page)).await?;
        Ok(Page { items: self.readable(listed), next })
    }

    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>> {
        check_limit(limit, NewOperation::MAX_OPEN)?;
        let listed = self.database().read(|session| operation::open(&session)).await?;
        let mut open = self.readable(listed);
        open.truncate(limit);
        Ok(open)
    }

    async fn create_key(&self, key: NewKey) -> Result<ApiKey> {
        key.validate()?;
        self.database().write(move |transaction| transaction.create_key(key)).await
    }

    async fn revoke_key(&self, id: &KeyId) -> Result<bool> {
        let id = id.clone();
        self.database().write(move |transaction| transaction.revoke_key(&id)).await
    }

    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>> {
        let id = id.clone();
        self.database().read(move |session| key::find(&session, &id)).await
    }

    async fn list_keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| key::list(&session, &page)).await
    }

    async fn begin_audit_entry(&self, entry: NewAuditEntry) -> Result<i64> {
        entry.validate()?;
        self.database().write(move |transaction| transaction.begin_audit_entry(&entry)).await
    }

    async fn finish_audit_entry(&self, seq: i64, outcome: &str) -> Result<bool> {
        check_outcome(outcome)?;
        let outcome = outcome.to_owned();
        self.database().write(move |transaction| transaction.finish_audit_entry(seq, &outcome)).await
    }

    async fn list_audit_entries(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        page.validate()?;
        let (filter, page) = (filter.clone(), page.clone());
        self.database().read(move |session| audit::list(&session, &filter, &page)).await
    }
}
