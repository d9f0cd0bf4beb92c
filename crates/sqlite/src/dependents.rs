//! Resolves the dependents of finished jobs: unblocks, holds or cancels them.
//!
//! The operation that finishes a job resolves its dependents, up to a limit. The table `settled` lists the finished
//! jobs with dependents left, and the `unblock_jobs` sweep resolves these.

use std::time::Duration;

use orchestrix_core::{Event, JobId, JobState, OnDependencyFailure, Readiness};
use orchestrix_store::SweepResult;
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::{JobRow, micros, options},
    session::Transaction,
    statement::{FORGET_SETTLED_PARENT, MARK_DEPENDENCY_MET, NEXT_SETTLED, OPEN_DEPENDENCIES, UNBLOCK_JOB},
};

/// The maximum number of dependents that the operation which finished their parents resolves.
const MAX_DEPENDENTS_AT_ONCE: usize = 10_000;

columns! {
    mod settled of NEXT_SETTLED { id, failed }
}

impl Transaction<'_> {
    pub(crate) fn unblock_jobs(&mut self, limit: usize) -> Result<SweepResult> {
        let count = self.resolve_dependents(limit)?;
        let more = self.first(NEXT_SETTLED, (), |_| Ok(()))?;
        Ok(SweepResult { count, next_in: more.map(|()| Duration::ZERO) })
    }

    /// Resolves the dependents of the jobs that this operation finished, and theirs in turn where they are cancelled.
    pub(crate) fn resolve_pending_dependents(&mut self) -> Result<()> {
        if self.dependents_pending {
            self.resolve_dependents(MAX_DEPENDENTS_AT_ONCE)?;
        }
        Ok(())
    }

    /// Resolves up to `limit` dependents of finished jobs. Returns how many.
    fn resolve_dependents(&mut self, limit: usize) -> Result<usize> {
        let mut resolved = 0;
        while resolved < limit {
            let next = self.first(NEXT_SETTLED, (), |row| {
                let row = Columns(row);
                Ok((row.id(settled::id)?, row.get::<bool>(settled::failed)?))
            })?;
            let Some((parent, failed)) = next else { break };
            let left = limit - resolved;
            let children = self.all(OPEN_DEPENDENCIES, params![parent.as_uuid(), left], |row| Columns(row).id(0))?;
            for child in &children {
                self.resolve_dependent(*child, failed)?;
                self.write_one(MARK_DEPENDENCY_MET, params![child.as_uuid(), parent.as_uuid()])?;
            }
            resolved += children.len();
            if children.len() < left {
                self.write_one(FORGET_SETTLED_PARENT, [parent.as_uuid()])?;
            }
        }
        Ok(resolved)
    }

    fn resolve_dependent(&mut self, id: JobId, parent_failed: bool) -> Result<()> {
        // A job that was cancelled or redriven meanwhile no longer waits.
        let waits = |job: &JobRow| matches!(job.lifecycle.state, JobState::Created | JobState::Blocked);
        let Some(job) = JobRow::find(self, id)?.filter(waits) else { return Ok(()) };
        let before = job.lifecycle.state;
        let blocked = before == JobState::Blocked;
        let event = match options(job.options.as_deref())?.on_dependency_failure {
            OnDependencyFailure::Cancel if parent_failed => {
                self.cancel_unleased(&job, "dependency_failed")?;
                return Ok(());
            }
            OnDependencyFailure::Hold if parent_failed && blocked => Some(Event::Hold),
            _ if blocked && job.waits_for == 1 => {
                Some(Event::Unblock(Readiness::of(false, job.eligible_at > self.now)))
            }
            _ => None,
        };
        let state = event.map_or(Ok(before), |event| job.lifecycle.apply(event).map(|after| after.state))?;
        // A job that waited for its parents became eligible only when they had finished.
        let eligible_at = if state == JobState::Pending { job.eligible_at.max(self.now) } else { job.eligible_at };
        let updated_at = (state != before).then_some(micros(self.now));
        self.write_one(
            UNBLOCK_JOB,
            params![id.as_uuid(), state.as_str(), job.waits_for.saturating_sub(1), micros(eligible_at), updated_at],
        )?;
        self.state_changed(&job.lane, job.claim_key(eligible_at), Some(before), state);
        Ok(())
    }
}
