//! Administration: bulk operations, API keys, the audit log.

use async_trait::async_trait;
use orchestrix_core::{KeyId, OperationId};

use crate::{
    ApiKey, AuditEntry, AuditFilter, KeyRecord, NewAuditEntry, NewKey, NewOperation, Operation, Page, PageRequest,
    Result, TenantScope,
};

/// Keeps bulk operations, API keys and the audit log.
#[async_trait]
pub trait AdminStore: Send + Sync {
    /// Begins a bulk operation on jobs enqueued until now.
    ///
    /// At most [`NewOperation::MAX_OPEN`] operations run at once, and at most [`NewOperation::MAX_OPEN_EACH`] per
    /// tenant. Operations of callers that are bound to no tenant share one such quota.
    async fn begin_operation(&self, operation: NewOperation) -> Result<Operation>;

    /// Aborts a running operation and returns it. Waits for a step in progress; no step happens after the answer.
    async fn abort_operation(&self, id: OperationId) -> Result<Operation>;

    /// Returns one operation.
    async fn operation(&self, id: OperationId) -> Result<Option<Operation>>;

    /// Lists operations, newest first. One that this version cannot read is skipped with a warning.
    async fn list_operations(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>>;

    /// Returns up to `limit` running operations, least recently advanced first. One that this version cannot read is
    /// skipped with a warning.
    async fn open_operations(&self, limit: usize) -> Result<Vec<Operation>>;

    /// Creates an API key.
    async fn create_key(&self, key: NewKey) -> Result<ApiKey>;

    /// Revokes a key. Returns whether it exists. A second call keeps the time of the first.
    async fn revoke_key(&self, id: &KeyId) -> Result<bool>;

    /// Returns one key with what is needed to verify its secret.
    async fn key(&self, id: &KeyId) -> Result<Option<KeyRecord>>;

    /// Lists keys by id.
    async fn list_keys(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>>;

    /// Writes an audit entry before its action is performed. Returns the entry's sequence number.
    async fn begin_audit_entry(&self, entry: NewAuditEntry) -> Result<i64>;

    /// Records the outcome of an audited action. Returns whether the entry was still open.
    async fn finish_audit_entry(&self, seq: i64, outcome: &str) -> Result<bool>;

    /// Lists audit entries that match, newest first.
    ///
    /// The rows scanned for one page are bounded, so a page may hold fewer items than requested, even none, and still
    /// have a next one.
    async fn list_audit_entries(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>>;
}
