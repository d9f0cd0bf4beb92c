//! What write operations change besides their rows.
//!
//! The writer gathers the effects of all operations of a transaction. Changes of depths and lanes are rows too: it
//! writes them once, right before the commit, instead of once per job. Metrics and wake-ups leave the process: it publishes them once
//! the commit is durable, and drops them if the transaction rolls back.

use std::collections::BTreeMap;

use orchestrix_core::{JobState, Queue};
use orchestrix_store::CommitEffects;

use crate::{
    error::Result,
    lanes::LaneChanges,
    session::Session,
    statement::{CHANGE_DEPTH, DELETE_DEPTH},
};

/// The effects of one operation, or of all operations of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Written with the commit: how the number of unfinished jobs changes, by queue and state.
    depth_changes: BTreeMap<(Queue, JobState), i64>,
    /// Written with the commit, or before a claim of the same transaction.
    pub(crate) lanes: LaneChanges,
    /// Published after the commit: metrics and wake-ups.
    pub(crate) commit: CommitEffects,
}

impl Effects {
    /// Counts a job of `queue` that moved between states. `from` is `None` for a job that was not counted before.
    pub(crate) fn state_changed(&mut self, queue: &Queue, from: Option<JobState>, to: JobState) {
        if from == Some(to) {
            return;
        }
        let unfinished = |state: &JobState| !state.is_terminal();
        if let Some(from) = from.filter(unfinished) {
            *self.depth_changes.entry((queue.clone(), from)).or_default() -= 1;
        }
        if unfinished(&to) {
            *self.depth_changes.entry((queue.clone(), to)).or_default() += 1;
        }
        self.commit.state_entered(queue, to);
    }

    /// Adds the effects of a later operation of the same transaction.
    pub(crate) fn merge(&mut self, later: Self) {
        for (key, change) in later.depth_changes {
            *self.depth_changes.entry(key).or_default() += change;
        }
        self.lanes.merge(later.lanes);
        self.commit.merge(later.commit);
    }

    /// Writes the changes of depths and lanes. What remains is to publish once the transaction has committed.
    pub(crate) fn write(self, session: Session<'_>) -> Result<CommitEffects> {
        for ((queue, state), change) in self.depth_changes.iter().filter(|(_, change)| **change != 0) {
            session.execute(CHANGE_DEPTH, (queue.as_str(), state.as_str(), change))?;
            if *change < 0 {
                session.execute(DELETE_DEPTH, (queue.as_str(), state.as_str()))?;
            }
        }
        self.lanes.write(&session)?;
        Ok(self.commit)
    }
}
