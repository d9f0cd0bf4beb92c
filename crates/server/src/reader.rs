//! Reads of single jobs and of their newest log lines. Concurrent reads share one query: see `batch_loader`.

use std::{collections::HashMap, sync::Arc};

use orchestrix_core::JobId;
use orchestrix_store::{JobSummary, LogEntry, Result, Store, StoreError};

use crate::batch_loader::BatchLoader;

/// The most jobs in one query.
const MAX_JOBS: usize = 500;
/// The most logs in one query.
const MAX_LOGS: usize = 10;
/// The most lines of one log in one query.
const MAX_LINES: usize = 200;
/// A log page ends with the line that brings its messages to this size.
const MAX_BYTES: usize = 256 * 1024;

/// Consecutive lines of one log.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogPage {
    pub(crate) lines: Vec<LogEntry>,
    /// Whether more lines may follow.
    pub(crate) more: bool,
    bytes: usize,
}

impl LogPage {
    fn push(&mut self, line: LogEntry) {
        if self.bytes < MAX_BYTES {
            self.bytes += line.message.len();
            self.lines.push(line);
        }
        self.more = self.lines.len() == MAX_LINES || self.bytes >= MAX_BYTES;
    }
}

/// Where a log page starts: after this sequence number of this job's log.
type LogCursor = (JobId, i64);

/// Reads single jobs.
pub(crate) struct JobReader {
    jobs: BatchLoader<JobId, JobSummary>,
    logs: BatchLoader<LogCursor, LogPage>,
}

impl JobReader {
    /// The background tasks end when the reader is dropped.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let log_store = Arc::clone(&store);
        let jobs = BatchLoader::new(MAX_JOBS, move |ids: Vec<JobId>| {
            let store = Arc::clone(&store);
            async move { Ok(store.job_summaries(&ids).await?.into_iter().map(|job| (job.id, job)).collect()) }
        });
        let logs = BatchLoader::new(MAX_LOGS, move |cursors: Vec<LogCursor>| {
            let store = Arc::clone(&log_store);
            async move { fetch_logs(&*store, &cursors).await }
        });
        Self { jobs, logs }
    }

    /// A reader whose every read fails with [`StoreError::Unavailable`].
    #[cfg(test)]
    pub(crate) fn unavailable() -> Self {
        Self { jobs: BatchLoader::unavailable(), logs: BatchLoader::unavailable() }
    }

    /// The job's current summary. Fails with [`StoreError::JobNotFound`] if there is no such job.
    pub(crate) async fn find(&self, id: JobId) -> Result<JobSummary> {
        self.jobs.load(id).await?.ok_or(StoreError::JobNotFound(id))
    }

    /// The log lines after a sequence number; none for an unknown job.
    pub(crate) async fn logs_after(&self, id: JobId, seq: i64) -> Result<LogPage> {
        Ok(self.logs.load((id, seq)).await?.unwrap_or_default())
    }
}

// Several clients may follow one job from different cursors.
async fn fetch_logs(store: &dyn Store, cursors: &[LogCursor]) -> Result<HashMap<LogCursor, LogPage>> {
    let mut pages: HashMap<LogCursor, LogPage> = HashMap::new();
    for (cursor, line) in store.logs_after(cursors, MAX_LINES).await? {
        pages.entry(cursor).or_default().push(line);
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobType, NewJob, Timestamp};
    use orchestrix_memory::MemoryStore;
    use orchestrix_store::LogLevel;

    use super::*;

    #[tokio::test]
    async fn each_of_many_concurrent_reads_gets_its_own_job() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let reader = Arc::new(JobReader::new(Arc::clone(&store)));
        let mut reads = Vec::new();
        for i in 0..3 * MAX_JOBS {
            let job_type = JobType::new(format!("t{i}")).unwrap();
            let id = store.enqueue_job(NewJob::new(job_type.clone())).await.unwrap().id;
            // Two reads of every job, and between them one of an unknown job.
            for _ in 0..2 {
                let (reader, job_type) = (Arc::clone(&reader), job_type.clone());
                reads.push(tokio::spawn(async move {
                    let job = reader.find(id).await.unwrap();
                    assert_eq!((job.id, job.job_type), (id, job_type));
                }));
            }
            let reader = Arc::clone(&reader);
            reads.push(tokio::spawn(async move {
                let unknown = JobId::new(Timestamp::UNIX_EPOCH, [i as u8; 10]);
                assert!(matches!(reader.find(unknown).await, Err(StoreError::JobNotFound(id)) if id == unknown));
            }));
        }
        for read in reads {
            read.await.unwrap();
        }
    }

    #[test]
    fn a_log_page_is_bounded_in_lines_and_bytes_and_never_empty() {
        let line = |bytes: usize| LogEntry {
            seq: 1,
            at: Timestamp::UNIX_EPOCH,
            level: LogLevel::Info,
            attempt: 1,
            message: "x".repeat(bytes),
        };
        let page = |count: usize, bytes: usize| {
            let mut page = LogPage::default();
            (0..count).for_each(|_| page.push(line(bytes)));
            (page.lines.len(), page.more)
        };
        assert_eq!(page(MAX_LINES - 1, 10), (MAX_LINES - 1, false));
        assert_eq!(page(MAX_LINES, 10), (MAX_LINES, true));
        assert_eq!(page(3, MAX_BYTES / 2), (2, true));
        assert_eq!(page(2, 2 * MAX_BYTES), (1, true));
    }
}
