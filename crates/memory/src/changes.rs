//! Recent changes.

use std::{collections::BTreeSet, ops::Bound};

use orchestrix_core::{JobId, JobState, Timestamp};

use crate::{row::Row, tables::Tables};
use orchestrix_store::{
    ChangesPage, ChangesQuery, JobChange, Result,
    changes::{ENQUEUED_FACTOR, LeaseCursor, MAX_CHANGE_IDS},
};

impl Tables {
    pub(crate) fn recent_changes(&self, query: &ChangesQuery, now: Timestamp) -> Result<ChangesPage> {
        query.validate()?;
        let limit = query.limit;
        let mut changes = ChangesPage::none(now);
        let after =
            query.leased_after.map_or(Bound::Unbounded, |cursor| Bound::Excluded((cursor.expires_at, cursor.id)));
        let mut leases = self.index.leases.range((after, Bound::Unbounded));
        let mut last = None;
        for (expires_at, id) in leases.by_ref().take(limit) {
            changes.leased_from.get_or_insert(*expires_at);
            last = Some(LeaseCursor { expires_at: *expires_at, id: *id });
            changes.jobs.extend(self.find(*id).map(|row| JobChange::from(row.summary())));
        }
        changes.leased_next = last.filter(|_| leases.next().is_some());
        let mut add = |limit: usize, mut rows: &mut dyn Iterator<Item = &Row>| {
            changes.jobs.extend((&mut rows).take(limit).map(|row| JobChange::from(row.summary())));
            changes.more |= rows.next().is_some();
        };
        if let Some(since) = query.enqueued_since {
            add(ENQUEUED_FACTOR * limit, &mut self.newest_since(JobId::floor(since)));
        }
        for (state, ended) in &self.index.finished {
            let reach = query.cancelled_since.filter(|_| *state == JobState::Cancelled);
            if let Some(since) = query.finished_since.into_iter().chain(reach).min() {
                let ended = ended.iter().rev().take_while(|(at, _)| *at >= since);
                add(limit, &mut ended.filter_map(|(_, id)| self.find(*id)));
            }
        }
        if let Some(since) = query.redriven_since {
            let unfinished = |(_, id): &(Timestamp, JobId)| self.find(*id).filter(|row| !row.job.state.is_terminal());
            let mut redriven = self.redriven.iter().rev().take_while(|(at, _)| *at >= since);
            add(limit, &mut redriven.by_ref().take(limit).filter_map(unfinished));
            changes.more |= redriven.next().is_some();
        }
        if let Some(after) = query.ids_after {
            let mut rows = self.after(after);
            for row in rows.by_ref().take(MAX_CHANGE_IDS) {
                changes.ids_next = Some(row.job.id);
                changes.ids.extend(Some(row.job.id).filter(|_| !row.job.state.is_terminal()));
            }
            changes.ids_next = changes.ids_next.filter(|_| rows.next().is_some());
        }
        Ok(changes)
    }
}

/// Redriven jobs, by when they were redriven.
#[derive(Debug, Default)]
pub(crate) struct Redriven(BTreeSet<(Timestamp, JobId)>);

impl Redriven {
    pub(crate) fn add(&mut self, now: Timestamp, id: JobId) {
        self.0.insert((now, id));
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &(Timestamp, JobId)> {
        self.0.iter()
    }

    /// Deletes up to `limit` redrives up to and including `until`. Returns how many.
    pub(crate) fn prune(&mut self, until: Timestamp, limit: usize) -> usize {
        let past: Vec<_> = self.0.iter().take_while(|(at, _)| *at <= until).take(limit).copied().collect();
        for one in &past {
            self.0.remove(one);
        }
        past.len()
    }

    /// Whether there are redrives up to and including `until`.
    pub(crate) fn has_any(&self, until: Timestamp) -> bool {
        self.0.first().is_some_and(|(at, _)| *at <= until)
    }
}
