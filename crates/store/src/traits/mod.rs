//! The traits that a backend implements, one for each concern. [`Store`] is their sum.

mod admin;
mod coordination;
mod jobs;
mod leases;
mod queues;
mod schedules;
mod tenants;
mod workers;

use std::{any::Any, sync::Arc};

use async_trait::async_trait;
use orchestrix_core::Timestamp;

pub use admin::AdminStore;
pub use coordination::CoordinationStore;
pub use jobs::JobStore;
pub use leases::LeaseStore;
pub use queues::QueueStore;
pub use schedules::ScheduleStore;
pub use tenants::TenantStore;
pub use workers::WorkerStore;

use crate::{Result, Wakeups};

/// Durable storage of jobs. The [crate documentation](crate) lists what every implementation guarantees.
///
/// A `&dyn Store` is also a `&dyn Any`, so that code which knows a backend can downcast to it.
#[async_trait]
pub trait Store:
    JobStore + LeaseStore + WorkerStore + QueueStore + TenantStore + ScheduleStore + AdminStore + CoordinationStore + Any
{
    /// Returns the store's own time, by which leases expire and jobs fall due.
    async fn now(&self) -> Result<Timestamp>;

    /// Subscribes to hints that jobs became claimable, in this process and, where the backend can, in others.
    fn job_wakeups(&self) -> Wakeups;

    /// Subscribes to hints that a job or a schedule began to wait for a time. The leader sleeps on these.
    fn timer_wakeups(&self) -> Wakeups;

    /// Opens a second handle with up to `connections` connections of its own, for a thread that runs its own tokio
    /// runtime.
    ///
    /// Calls through the new handle proceed while the runtime of this store is blocked.
    /// Call this on the runtime that will use the handle. Wake-ups sent through either handle reach subscribers of
    /// both.
    fn dedicated_handle(&self, connections: usize) -> Result<Arc<dyn Store>>;
}
