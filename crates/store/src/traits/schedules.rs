//! Schedules and their occurrences.

use async_trait::async_trait;
use orchestrix_core::{NewSchedule, ScheduleName, Timestamp};

use crate::{Backfill, Enqueued, Occurrence, Page, PageRequest, PutResult, Result, Schedule, TenantScope};

/// Keeps schedules and the ledger of their occurrences. Calls with a tenant scope see that tenant's schedules only.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Creates or updates a schedule. Putting the same definition again changes nothing.
    ///
    /// A change of its times (cadence, zone, start, end, jitter) takes effect from now on; nominal times of the old
    /// definition that have passed become one occurrence in the ledger. Any other edit leaves its times alone.
    /// The ledger is kept. A stored definition that this version cannot read is replaced.
    ///
    /// Names are global. A name belongs to the tenant that used it first until the schedule is deleted, and a put for
    /// another tenant is refused. Within a tenant scope, the definition must name that tenant, and a name of another
    /// tenant returns [`StoreError::ScheduleNotFound`](crate::StoreError::ScheduleNotFound).
    async fn put_schedule(&self, scope: TenantScope<'_>, schedule: NewSchedule) -> Result<PutResult>;

    /// Deletes a schedule and its ledger. Its jobs stay. Returns whether it existed.
    async fn delete_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool>;

    /// Pauses a schedule, with a note for operators. Returns whether it was active.
    async fn pause_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool>;

    /// Resumes a schedule from now on. Returns whether it was paused. Nominal times of the pause become one
    /// occurrence.
    async fn resume_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool>;

    /// Enqueues one job of a schedule now, whether or not the schedule is paused and whatever its overlap policy.
    async fn trigger_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued>;

    /// Enqueues jobs for nominal times of a past range that did not fire, all or none. Returns how many.
    ///
    /// Nominal times that the schedule itself will still process are skipped.
    async fn backfill_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize>;

    /// Returns one schedule.
    async fn schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>>;

    /// Lists schedules by name. A definition that this version cannot read is skipped with a warning.
    async fn list_schedules(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>>;

    /// Lists occurrences of a schedule, newest nominal time first.
    async fn list_occurrences(
        &self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>>;
}
