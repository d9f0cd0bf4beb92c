//! Reads of single jobs, and of the ends of their logs. Those that come at the same time share one look at the store: see `gather`.

use std::{collections::HashMap, sync::Arc};

use orchestrix_core::JobId;
use orchestrix_store::{JobSummary, LogEntry, Result, Store, StoreError};

use crate::gather::Gather;

/// The most jobs of one look, and the most logs.
const MOST: usize = 500;
const MOST_LOGS: usize = 10;
/// The most lines of one log, and bytes of their texts but for the last one's.
const LINES: usize = 200;
const BYTES: usize = 256 * 1024;

/// Lines of a log, as many as are read at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub(crate) lines: Vec<LogEntry>,
    /// Whether there may be more.
    pub(crate) more: bool,
    bytes: usize,
}

impl Tail {
    fn push(&mut self, line: LogEntry) {
        if self.bytes < BYTES {
            self.bytes += line.message.len();
            self.lines.push(line);
        }
        self.more = self.lines.len() == LINES || self.bytes >= BYTES;
    }
}

/// Reads single jobs.
pub(crate) struct Reader {
    jobs: Gather<JobId, JobSummary>,
    tails: Gather<(JobId, i64), Tail>,
}

impl Reader {
    /// Ends when it is dropped.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let tails = Arc::clone(&store);
        let jobs = Gather::new(MOST, move |ids: Vec<JobId>| {
            let store = Arc::clone(&store);
            async move { Ok(store.job_summaries(&ids).await?.into_iter().map(|job| (job.id, job)).collect()) }
        });
        let tails = Gather::new(MOST_LOGS, move |places: Vec<(JobId, i64)>| {
            let store = Arc::clone(&tails);
            async move { lines(&*store, &places).await }
        });
        Self { jobs, tails }
    }

    /// One that nobody answers.
    #[cfg(test)]
    pub(crate) fn away() -> Self {
        Self { jobs: Gather::away(), tails: Gather::away() }
    }

    /// The job as it stands.
    pub(crate) async fn find(&self, id: JobId) -> Result<JobSummary> {
        self.jobs.ask(id).await?.ok_or(StoreError::JobNotFound(id))
    }

    /// Lines of a job's log after this one; none of a job that is not there.
    pub(crate) async fn tail(&self, id: JobId, after: i64) -> Result<Tail> {
        Ok(self.tails.ask((id, after)).await?.unwrap_or_default())
    }
}

// One job may be followed from several places.
async fn lines(store: &dyn Store, places: &[(JobId, i64)]) -> Result<HashMap<(JobId, i64), Tail>> {
    let mut found: HashMap<(JobId, i64), Tail> = HashMap::new();
    for (place, line) in store.logs_after(places, LINES).await? {
        found.entry(place).or_default().push(line);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobType, NewJob, Timestamp};
    use orchestrix_memory::MemoryStore;
    use orchestrix_store::LogLevel;

    use super::*;

    #[tokio::test]
    async fn each_is_answered_about_its_own_job_however_many_ask() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let reader = Arc::new(Reader::new(Arc::clone(&store)));
        let mut asking = Vec::new();
        for i in 0..3 * MOST {
            let kind = JobType::new(format!("t{i}")).unwrap();
            let id = store.enqueue_job(NewJob::new(kind.clone())).await.unwrap().id;
            // Every job by two, and between them one that nobody knows.
            for _ in 0..2 {
                let (reader, kind) = (Arc::clone(&reader), kind.clone());
                asking.push(tokio::spawn(async move {
                    let job = reader.find(id).await.unwrap();
                    assert_eq!((job.id, job.job_type), (id, kind));
                }));
            }
            let reader = Arc::clone(&reader);
            asking.push(tokio::spawn(async move {
                let unknown = JobId::new(Timestamp::UNIX_EPOCH, [i as u8; 10]);
                assert!(matches!(reader.find(unknown).await, Err(StoreError::JobNotFound(id)) if id == unknown));
            }));
        }
        for one in asking {
            one.await.unwrap();
        }
    }

    #[test]
    fn of_long_lines_fewer_are_read_at_once_and_never_none() {
        let line = |bytes: usize| LogEntry {
            seq: 1,
            at: Timestamp::UNIX_EPOCH,
            level: LogLevel::Info,
            attempt: 1,
            message: "x".repeat(bytes),
        };
        let tail = |count: usize, bytes: usize| {
            let mut tail = Tail::default();
            (0..count).for_each(|_| tail.push(line(bytes)));
            (tail.lines.len(), tail.more)
        };
        assert_eq!(tail(LINES - 1, 10), (LINES - 1, false));
        assert_eq!(tail(LINES, 10), (LINES, true));
        assert_eq!(tail(3, BYTES / 2), (2, true));
        assert_eq!(tail(2, 2 * BYTES), (1, true));
    }
}
