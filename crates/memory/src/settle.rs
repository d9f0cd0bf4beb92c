//! What the end of a job does to those that wait for it.

use std::collections::VecDeque;

use orchestrix_core::{Event, JobId, JobState, OnDependencyFailure, Readiness, Timestamp};

use crate::tables::Tables;
use orchestrix_store::Result;

impl Tables {
    /// Moves on whoever waits for one of `touched` that is over. Cancelled children are over too and are settled in
    /// turn; a queue of them rather than a recursion, since chains may be long.
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
        // Whoever was cancelled meanwhile stays so, and whoever was redriven has stopped waiting.
        let waits = |state| matches!(state, JobState::Created | JobState::Blocked);
        let Some(row) = self.find(id).filter(|row| waits(row.job.state)) else { return Ok(()) };
        let blocked = row.job.state == JobState::Blocked;
        let event = match row.job.on_dependency_failure {
            OnDependencyFailure::Cancel if !met => {
                self.give_up(id, Event::Cancel, "dependency_failed", now)?;
                return Ok(());
            }
            OnDependencyFailure::Hold if !met && blocked => Some(Event::Hold),
            _ if blocked && row.unmet == 1 => Some(Event::Unblock(Readiness::of(false, row.job.eligible_at > now))),
            _ => None,
        };
        let decided = event.map(|event| row.lifecycle().apply(event)).transpose()?;
        self.update(id, |row| {
            row.unmet -= 1;
            let Some(decided) = decided else { return };
            row.decide(decided, now);
            row.wait_from(now);
        })
    }
}
