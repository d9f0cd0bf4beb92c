//! The store's verbs on operations, API keys and audit entries.

use async_trait::async_trait;
use orchestrix_core::{KeyId, OperationId};
use orchestrix_store::{
    AdminStore, ApiKey, AuditEntry, AuditFilter, KeyRecord, NewAuditEntry, NewKey, NewOperation, Operation, Page,
    PageRequest, Result, TenantScope,
};

use crate::{PostgresStore, audit, key, operation};

#[async_trait]
impl AdminStore for PostgresStore {
    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation> {
        operation::begin(self, operation).await
    }

    async fn abort_operation(&self, id: OperationId) -> Result<Operation> {
        operation::abort(self, id).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>> {
        operation::find(self, id).await
    }

    async fn list_operations(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>> {
        operation::list(self, scope, page).await
    }

    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>> {
        operation::open(self, limit).await
    }

    async fn create_key(&self, key: NewKey) -> Result<ApiKey> {
        key::create(self, &key).await
    }

    async fn revoke_key(&self, id: &KeyId) -> Result<bool> {
        key::revoke(self, id).await
    }

    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>> {
        key::find(self, id).await
    }

    async fn list_keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
        key::list(self, page).await
    }

    async fn begin_audit_entry(&self, entry: NewAuditEntry) -> Result<i64> {
        audit::begin(self, &entry).await
    }

    async fn finish_audit_entry(&self, seq: i64, outcome: &str) -> Result<bool> {
        audit::finish(self, seq, outcome).await
    }

    async fn list_audit_entries(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        audit::list(self, filter, page).await
    }
}
