//! [`ScheduleStore`] on SQLite.

use async_trait::async_trait;
use orchestrix_core::{NewSchedule, ScheduleName, Timestamp};
use orchestrix_store::{
    Backfill, Enqueued, Occurrence, Page, PageRequest, PutResult, Result, Schedule, ScheduleStore, TenantScope,
    schedule::check_put,
};

use super::SqliteStore;
use crate::{occurrences, schedule, session::Transaction};

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn put_schedule(&self, scope: TenantScope<'_>, schedule: NewSchedule) -> Result<PutResult> {
        check_put(scope, &schedule)?;
        let scope = scope.cloned();
        self.database().write(move |transaction| transaction.put_schedule(scope.as_ref(), schedule)).await
    }

    async fn delete_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        loop {
            let (scope, name) = (scope.cloned(), name.clone());
            let delete = move |transaction: &mut Transaction<'_>| transaction.delete_schedule(scope.as_ref(), &name);
            if let Some(existed) = self.database().write(delete).await? {
                return Ok(existed);
            }
        }
    }

    async fn pause_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool> {
        let (scope, name) = (scope.cloned(), name.clone());
        self.database().write(move |transaction| transaction.pause_schedule(scope.as_ref(), &name, note)).await
    }

    async fn resume_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        let (scope, name) = (scope.cloned(), name.clone());
        self.database().write(move |transaction| transaction.resume_schedule(scope.as_ref(), &name)).await
    }

    async fn trigger_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued> {
        let (scope, name) = (scope.cloned(), name.clone());
        self.database().write(move |transaction| transaction.trigger_schedule(scope.as_ref(), &name)).await
    }

    async fn backfill_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize> {
        let (scope, name, range) = (scope.cloned(), name.clone(), range.clone());
        self.database().write(move |transaction| transaction.backfill_schedule(scope.as_ref(), &name, &range)).await
    }

    async fn schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
        let (scope, name) = (scope.cloned(), name.clone());
        self.database().read(move |session| schedule::find(&session, scope.as_ref(), &name)).await
    }

    async fn list_schedules(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>> {
        page.validate()?;
        let (scope, page) = (scope.cloned(), page.clone());
        self.database().read(move |session| schedule::list(&session, scope.as_ref(), &page)).await
    }

    async fn list_occurrences(
        &self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>> {
        page.validate()?;
        let (scope, name, page) = (scope.cloned(), name.clone(), page.clone());
        self.database().read(move |session| occurrences::list(&session, scope.as_ref(), &name, &page)).await
    }
}
