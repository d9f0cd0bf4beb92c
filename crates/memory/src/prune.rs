//! Deletes what is past its retention.

use orchestrix_core::{JobId, JobState, Timestamp};

use crate::tables::Tables;
use orchestrix_store::{
    Pruned, Result, Retention,
    changes::REDRIVEN_RETENTION,
    clock::earlier,
    housekeeping::{MAX_SWEEP, check_limit},
};

impl Tables {
    pub(crate) fn prune(&mut self, retention: &Retention, limit: usize, now: Timestamp) -> Result<Pruned> {
        check_limit(limit, MAX_SWEEP)?;
        let kept = [
            (JobState::Completed, retention.completed),
            (JobState::Cancelled, retention.cancelled),
            (JobState::Dead, retention.dead),
        ];
        let mut left = limit;
        for (state, kept) in kept {
            let past = self.finished_until(state, earlier(now, kept), left);
            left -= past.len();
            for id in past {
                self.forget(id);
            }
        }
        let oldest_line = earlier(now, retention.logs);
        left -= self.logs.prune(oldest_line, left);
        let oldest_occurrence = earlier(now, retention.occurrences);
        left -= self.schedules.prune(oldest_occurrence, left);
        let oldest_entry = earlier(now, retention.audit);
        left -= self.audit.prune(oldest_entry, left);
        let oldest_operation = earlier(now, retention.operations);
        left -= self.operations.prune(oldest_operation, left);
        let oldest_redrive = earlier(now, REDRIVEN_RETENTION);
        left -= self.redriven.prune(oldest_redrive, left);
        let more = self.logs.has_any(oldest_line)
            || self.redriven.has_any(oldest_redrive)
            || self.schedules.has_any(oldest_occurrence)
            || self.audit.has_any(oldest_entry)
            || self.operations.has_any(oldest_operation)
            || kept.iter().any(|(state, kept)| !self.finished_until(*state, earlier(now, *kept), 1).is_empty());
        Ok(Pruned { count: limit - left, more })
    }

    fn finished_until(&self, state: JobState, until: Timestamp, limit: usize) -> Vec<JobId> {
        let finished = self.index.finished.get(&state).into_iter().flatten();
        finished.take_while(|(time, _)| *time <= until).take(limit).map(|(_, id)| *id).collect()
    }
}
