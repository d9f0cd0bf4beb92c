//! [`JobStore`] on SQLite.

use async_trait::async_trait;
use orchestrix_core::{Job, JobId, JobState, NewJob, Priority};
use orchestrix_store::{
    BulkAction, ChangesPage, ChangesQuery, Enqueued, JobFilter, JobStore, JobSummary, LogEntry, Page, PageRequest,
    Result, StoreError,
};

use super::SqliteStore;
use crate::{changes, enqueue, inspect};

#[async_trait]
impl JobStore for SqliteStore {
    async fn enqueue_job(&self, job: NewJob) -> Result<Enqueued> {
        let checked = enqueue::check_one(job)?;
        let enqueued = self.database().write(move |transaction| transaction.enqueue(&checked)).await?;
        enqueued.first().copied().ok_or_else(|| StoreError::Backend("the writer enqueued no job".into()))
    }

    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let checked = enqueue::check_many(jobs)?;
        self.database().write(move |transaction| transaction.enqueue(&checked)).await
    }

    async fn release_held_job(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.release_held_job(id)).await
    }

    async fn cancel_job(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.cancel_job(id)).await
    }

    async fn retry_job(&self, id: JobId) -> Result<JobState> {
        self.database().write(move |transaction| transaction.retry_job(id)).await
    }

    // Lists the jobs on a reader: matching jobs may lie behind many others, and the writer must not be held up.
    async fn retry_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>> {
        page.validate()?;
        let Some(filter) = BulkAction::Retry.narrow(filter) else { return Ok(Page::empty()) };
        let Page { items, next } = self.list_jobs(&filter, page).await?;
        if items.is_empty() {
            return Ok(Page { items: Vec::new(), next });
        }
        let ids: Vec<JobId> = items.into_iter().map(|job| job.id).collect();
        let items = self.database().write(move |transaction| transaction.retry_jobs(&ids)).await?;
        Ok(Page { items, next })
    }

    async fn reprioritize_job(&self, id: JobId, priority: Priority) -> Result<JobState> {
        self.database().write(move |transaction| transaction.reprioritize_job(id, priority)).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        self.database().read(move |session| inspect::job(&session, id)).await
    }

    async fn job_summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>> {
        let ids = ids.to_vec();
        self.database().read(move |session| inspect::job_summaries(&session, &ids)).await
    }

    async fn job_states(&self, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
        let ids = ids.to_vec();
        self.database().read(move |session| inspect::job_states(&session, &ids)).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        page.validate()?;
        let (filter, page) = (filter.clone(), page.clone());
        self.database().read(move |session| inspect::list_jobs(&session, &filter, &page)).await
    }

    async fn job_logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| inspect::job_logs(&session, id, &page)).await
    }

    async fn recent_changes(&self, query: &ChangesQuery) -> Result<ChangesPage> {
        query.validate()?;
        let query = *query;
        self.database().read(move |session| changes::recent_changes(&session, &query)).await
    }
}
