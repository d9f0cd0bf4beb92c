//! The store's verbs on jobs.

use async_trait::async_trait;
use orchestrix_core::{Job, JobId, JobState, NewJob, Priority, enqueue::check_job};
use orchestrix_store::{
    ChangesPage, ChangesQuery, Enqueued, JobFilter, JobStore, JobSummary, LogEntry, Page, PageRequest, Result,
};

use crate::{PostgresStore, changes, enqueue, inspect, job_actions};

#[async_trait]
impl JobStore for PostgresStore {
    async fn enqueue_job(&self, job: NewJob) -> Result<Enqueued> {
        let parents = check_job(&job)?;
        if job.depends_on.is_empty() {
            self.0.coalescer.enqueue(job).await
        } else {
            enqueue::enqueue_job(self, &job, parents).await
        }
    }

    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        enqueue::enqueue_jobs(self, &jobs).await
    }

    async fn release_held_job(&self, id: JobId) -> Result<JobState> {
        job_actions::release_held_job(self, id).await
    }

    async fn cancel_job(&self, id: JobId) -> Result<JobState> {
        job_actions::cancel_job(self, id).await
    }

    async fn retry_job(&self, id: JobId) -> Result<JobState> {
        job_actions::retry_job(self, id).await
    }

    async fn retry_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>> {
        job_actions::retry_jobs(self, filter, page).await
    }

    async fn reprioritize_job(&self, id: JobId, priority: Priority) -> Result<JobState> {
        job_actions::reprioritize_job(self, id, priority).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        inspect::job(self, id).await
    }

    async fn job_summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>> {
        inspect::job_summaries(self, ids).await
    }

    async fn job_states(&self, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
        inspect::job_states(self, ids).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        inspect::list_jobs(self, filter, page).await
    }

    async fn job_logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
        inspect::job_logs(self, id, page).await
    }

    async fn logs_after(&self, cursors: &[(JobId, i64)], limit: usize) -> Result<Vec<((JobId, i64), LogEntry)>> {
        inspect::logs_after(self, cursors, limit).await
    }

    async fn recent_changes(&self, query: &ChangesQuery) -> Result<ChangesPage> {
        changes::recent_changes(self, query).await
    }
}
