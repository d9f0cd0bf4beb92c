//! What the end of a job does to its dependents.

use std::collections::VecDeque;

use orchestrix_core::{Event, JobId, JobState, OnDependencyFailure, Readiness, Timestamp};

use crate::tables::Tables;
use orchestrix_store::Result;

impl Tables {
    /// Settles the dependents of those of `touched` that have finished. A dependent that is cancelled has dependents
    /// to settle in turn; chains may be long, so this is a queue and not a recursion.
    pub(crate) fn settle(&mut self, touched: Vec<JobId>, now: Timestamp) -> Result<()> {
        let mut touched = VecDeque::from(touched);
        while let Some(parent) = touched.pop_front() {
            let Some(state) = self.find(parent).map(|row| row.job.state).filter(|state| state.is_terminal()) else {
                continue;
            };
            for child in self.children.remove(&parent).unwrap_or_default() {
                self.settle_child(child, state == JobState::Completed, now)?;
                touched.push_back(child);
            }
        }
        Ok(())
    }

    fn settle_child(&mut self, id: JobId, met: bool, now: Timestamp) -> Result<()> {
        // A dependent that was cancelled stays cancelled, and one that was redriven no longer waits.
        let waits = |state| matches!(state, JobState::Created | JobState::Blocked);
        let Some(row) = self.find(id).filter(|row| waits(row.job.state)) else { return Ok(()) };
        let blocked = row.job.state == JobState::Blocked;
        let event = match row.job.on_dependency_failure {
            OnDependencyFailure::Cancel if !met => {
                self.end_waiting(id, Event::Cancel, "dependency_failed", now)?;
                return Ok(());
            }
            OnDependencyFailure::Hold if !met && blocked => Some(Event::Hold),
            _ if blocked && row.unmet == 1 => Some(Event::Unblock(Readiness::of(false, row.job.eligible_at > now))),
            _ => None,
        };
        let next = event.map(|event| row.lifecycle().apply(event)).transpose()?;
        self.update(id, |row| {
            row.unmet -= 1;
            let Some(next) = next else { return };
            row.apply(next, now);
            row.wait_from(now);
        })
    }
}
