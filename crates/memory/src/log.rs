//! Log lines of jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use orchestrix_core::{JobId, Timestamp};

use crate::tables::Tables;
use orchestrix_store::{LogEntry, LogLine, Page, PageRequest, Result, clock::cut};

/// Log lines, by job and by age.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    /// The last sequence number. Numbers grow over the whole store.
    last: i64,
    by_job: HashMap<JobId, BTreeMap<i64, LogEntry>>,
    by_time: BTreeSet<(Timestamp, i64, JobId)>,
}

impl Logs {
    pub(crate) fn append(&mut self, id: JobId, attempt: u16, lines: Vec<LogLine>, now: Timestamp) {
        let log = self.by_job.entry(id).or_default();
        for LogLine { at, level, message } in lines {
            self.last += 1;
            let at = at.map_or(now, cut);
            log.insert(self.last, LogEntry { seq: self.last, at, level, attempt, message });
            self.by_time.insert((at, self.last, id));
        }
    }

    /// Deletes the log of a job.
    pub(crate) fn forget(&mut self, id: JobId) {
        for (seq, entry) in self.by_job.remove(&id).unwrap_or_default() {
            self.by_time.remove(&(entry.at, seq, id));
        }
    }

    /// Deletes up to `limit` lines up to and including `until`. Returns how many.
    pub(crate) fn prune(&mut self, until: Timestamp, limit: usize) -> usize {
        let mut count = 0;
        while count < limit && self.has_any(until) {
            let Some((_, seq, id)) = self.by_time.pop_first() else { break };
            count += 1;
            if let Some(log) = self.by_job.get_mut(&id) {
                log.remove(&seq);
            }
        }
        count
    }

    /// Whether there are lines up to and including `until`.
    pub(crate) fn has_any(&self, until: Timestamp) -> bool {
        self.by_time.first().is_some_and(|(at, _, _)| *at <= until)
    }
}

impl Tables {
    pub(crate) fn log_page(&self, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
        page.validate()?;
        self.row(id)?;
        let from = page.cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let mut entries = self.logs.by_job.get(&id).into_iter().flat_map(|log| log.range((from, Bound::Unbounded)));
        let items: Vec<LogEntry> = entries.by_ref().take(page.limit).map(|(_, entry)| entry.clone()).collect();
        let next = entries.next().and_then(|_| items.last()).map(|entry| entry.seq);
        Ok(Page { items, next })
    }
}
