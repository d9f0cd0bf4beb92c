//! Workers: register, heartbeat, direct.

use async_trait::async_trait;
use orchestrix_core::{Instance, WorkerName};

use crate::{Directive, Page, PageRequest, Presence, Result, WorkerInfo, WorkerStatus};

/// Keeps the list of workers and what the operator wants each to do.
#[async_trait]
pub trait WorkerStore: Send + Sync {
    /// Registers or updates a worker and returns its directive.
    ///
    /// A new [instance](WorkerInfo::instance) resets the directive to [`Directive::Run`].
    /// So does a worker without an instance id that was silent long enough to count as dead.
    /// Any other call is an update, which keeps the directive, the free slots and the start time.
    async fn register_worker(&self, worker: &WorkerInfo) -> Result<Directive>;

    /// Records that a worker is alive and returns its directive. Returns `None` if it is not registered or counts as
    /// dead.
    async fn heartbeat_worker(&self, name: &WorkerName, presence: Presence) -> Result<Option<Directive>>;

    /// Removes a worker, unless another instance has taken its name. Returns whether it was removed. Its leases
    /// expire by themselves.
    async fn remove_worker(&self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool>;

    /// Sets the directive that the worker's next heartbeat returns. Returns whether the worker is registered.
    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool>;

    /// Lists workers by name.
    async fn list_workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>>;
}
