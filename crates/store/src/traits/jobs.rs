//! Jobs: enqueue, cancel, retry, read.

use async_trait::async_trait;
use orchestrix_core::{Job, JobId, JobState, NewJob, Priority};

use crate::{
    ChangesPage, ChangesQuery, Enqueued, JobFilter, JobSummary, LogEntry, Page, PageRequest, Result, StoreError,
};

/// Enqueues, changes and reads jobs.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Enqueues one job. Concurrent calls may share a transaction.
    ///
    /// Each call returns after the commit, and a job that is refused fails alone.
    async fn enqueue_job(&self, job: NewJob) -> Result<Enqueued>;

    /// Enqueues all of `jobs` or none. They may depend on each other by [`NewJob::reference`].
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>>;

    /// Releases a held job.
    async fn release_held_job(&self, id: JobId) -> Result<JobState>;

    /// Cancels a waiting job at once. For a running job, requests cancellation: the owner's next heartbeat reports it.
    ///
    /// Cancelling a cancelled job succeeds.
    async fn cancel_job(&self, id: JobId) -> Result<JobState>;

    /// Retries a dead or cancelled job. It gets at least one more attempt.
    async fn retry_job(&self, id: JobId) -> Result<JobState>;

    /// Retries the dead and cancelled jobs on one page of [`list_jobs`](JobStore::list_jobs), newest first.
    ///
    /// A page may be empty and still have a next one. A caller that follows the cursors retries every matching job
    /// once, whatever happens to it in between.
    async fn retry_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobId, JobId>>;

    /// Changes the priority of an unfinished job.
    async fn reprioritize_job(&self, id: JobId, priority: Priority) -> Result<JobState>;

    /// Returns one job with its payload, result and attempts.
    async fn job(&self, id: JobId) -> Result<Option<Job>>;

    /// Returns summaries of several jobs, in any order, without payload, result and attempts. Unknown ids are left
    /// out.
    async fn job_summaries(&self, ids: &[JobId]) -> Result<Vec<JobSummary>>;

    /// Returns the summary of one job.
    async fn job_summary(&self, id: JobId) -> Result<Option<JobSummary>> {
        Ok(self.job_summaries(&[id]).await?.pop())
    }

    /// Returns the states of several jobs, in any order. Unknown ids are left out.
    async fn job_states(&self, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
        Ok(self.job_summaries(ids).await?.into_iter().map(|job| (job.id, job.state)).collect())
    }

    /// Lists jobs that match, newest first.
    ///
    /// The rows scanned for one page are bounded, so a page may hold fewer items than requested, even none, and still
    /// have a next one.
    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>>;

    /// Returns lines of a job's log, oldest first.
    async fn job_logs(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>>;

    /// Returns log lines of several jobs, each after a cursor of its own, oldest first, at most `limit` per cursor.
    ///
    /// Unknown jobs are left out.
    async fn logs_after(&self, cursors: &[(JobId, i64)], limit: usize) -> Result<Vec<((JobId, i64), LogEntry)>> {
        let mut lines = Vec::new();
        for cursor @ (id, after) in cursors {
            match self.job_logs(*id, &PageRequest::after(*after, limit)).await {
                Ok(page) => lines.extend(page.items.into_iter().map(|line| (*cursor, line))),
                Err(StoreError::JobNotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(lines)
    }

    /// Returns jobs that changed recently, for live updates: leased jobs, a page at a time, and jobs that were
    /// enqueued or finished since the times in the query.
    ///
    /// All of it is read in one snapshot, in any order; a job may appear more than once.
    /// Each kind is limited, and the answer says whether a limit cut it.
    /// The cost grows with what is returned, not with the backlog or the history.
    ///
    /// A job whose finishing transaction took longer than the query reaches back stays in the leased pages until the
    /// commit and then disappears from them: the caller looks it up by id.
    /// Only a cancel finishes a job that is not leased, and [`ChangesQuery::cancelled_since`] may reach back further.
    /// A job counts as enqueued at the time in its id, which comes from the clock of the process that made it.
    async fn recent_changes(&self, query: &ChangesQuery) -> Result<ChangesPage>;
}
