//! Drains of the store in different scenarios: empty, with a long history, with a large backlog, under an old snapshot,
//! and over many lanes.

use std::{collections::HashSet, sync::Arc};

use anyhow::{Result, ensure};
use orchestrix_core::{JobId, JobType, NewJob, Priority, WorkerName};
use orchestrix_store::{ClaimRequest, Queues, Store};
use tokio_postgres::Client;

use crate::{
    arguments::Scale,
    backend::{self, Backend},
    drain::{JOBS, drain_matching, warm},
    jobs::{fill_with, unfinished},
    layout::Layout,
    measure::Workload,
    postgres::hold_snapshot,
};

const MILLION: usize = 1_000_000;

/// What a drain finds in the database, and what it claims.
#[derive(Debug)]
pub(crate) struct DrainScenario {
    /// Jobs per claim.
    pub(crate) batch: usize,
    /// Jobs drained before the clock starts.
    pub(crate) warm: usize,
    /// Jobs drained while it runs.
    pub(crate) jobs: usize,
    /// Pending jobs at the start, if more than are drained.
    pub(crate) pending: usize,
    /// Finished jobs at the start.
    pub(crate) finished: usize,
    /// Whether an old snapshot is open, so that vacuum can remove no rows that died since.
    pub(crate) snapshot_held: bool,
    /// The lanes and tenants of the drained jobs.
    pub(crate) layout: Layout,
    /// The queues that claims name.
    pub(crate) queues: Queues,
    /// The types that claims name; `None` for any.
    pub(crate) job_types: Option<Vec<JobType>>,
    /// Pending jobs that no claim may return, although they come first in the order.
    pub(crate) ahead: Option<JobsAhead>,
}

/// Pending jobs that are older than the drained ones and have a higher priority.
#[derive(Debug)]
pub(crate) struct JobsAhead {
    pub(crate) jobs: usize,
    pub(crate) layout: Layout,
    /// Whether their queues are paused.
    pub(crate) paused: bool,
}

impl JobsAhead {
    async fn fill(&self, store: &Arc<dyn Store>) -> Result<()> {
        let (layout, priority) = (self.layout, Priority::new(10)?);
        fill_with(store, self.jobs, move |n| NewJob { priority, ..layout.job(n) }).await?;
        if self.paused {
            for queue in layout.queue_names() {
                store.pause_queue(&queue).await?;
            }
        }
        Ok(())
    }
}

/// Only the jobs that are drained.
pub(crate) fn empty(backend: Backend, scale: Scale) -> DrainScenario {
    one_lane(backend.batch(), scale)
}

/// The same with another batch size.
pub(crate) fn one_lane(batch: usize, scale: Scale) -> DrainScenario {
    DrainScenario {
        batch,
        warm: warm(batch),
        jobs: scale.of(JOBS),
        pending: 0,
        finished: 0,
        snapshot_held: false,
        layout: Layout::ONE_LANE,
        queues: Queues::All,
        job_types: None,
        ahead: None,
    }
}

/// With a million finished jobs.
pub(crate) fn finished(backend: Backend, scale: Scale) -> DrainScenario {
    DrainScenario { finished: scale.of(MILLION), ..empty(backend, scale) }
}

/// The first of a million pending jobs.
pub(crate) fn pending(backend: Backend, scale: Scale) -> DrainScenario {
    DrainScenario { pending: scale.of(MILLION), ..empty(backend, scale) }
}

/// PostgreSQL after 300,000 jobs in small batches, under a snapshot older than the first job.
pub(crate) fn held(scale: Scale) -> DrainScenario {
    DrainScenario { snapshot_held: true, ..not_held(scale) }
}

/// The same without the snapshot.
pub(crate) fn not_held(scale: Scale) -> DrainScenario {
    DrainScenario { batch: 100, warm: scale.of(300_000), jobs: scale.of(50_000), ..empty(Backend::Postgres, scale) }
}

impl DrainScenario {
    /// The number of pending jobs that claims may return, at the start.
    fn claimable(&self) -> usize {
        self.pending.max(self.warm + self.jobs)
    }

    /// The number of jobs that the drain leaves.
    fn left(&self) -> usize {
        self.claimable() - self.warm - self.jobs + self.ahead.as_ref().map_or(0, |ahead| ahead.jobs)
    }

    /// Drains `jobs`; returns their number.
    async fn drain(&self, session: &mut Session, jobs: usize) -> Result<u64> {
        let request = ClaimRequest {
            worker: WorkerName::trusted("bench"),
            queues: self.queues.clone(),
            job_types: self.job_types.clone(),
            limit: self.batch,
        };
        let claimed = drain_matching(&session.store, &request, jobs).await?;
        let drained = claimed.len() as u64;
        session.claimed.extend(claimed);
        Ok(drained)
    }
}

/// A store, the transaction with the snapshot, and the jobs that were claimed.
pub(crate) struct Session {
    store: Arc<dyn Store>,
    _snapshot: Option<Client>,
    claimed: Vec<JobId>,
}

impl Workload for DrainScenario {
    type Session = Session;

    async fn prepare(&self, url: &str) -> Result<()> {
        let store = backend::open(url).await?;
        if self.finished > 0 {
            backend::fill_finished(url, self.finished).await?;
        }
        if let Some(ahead) = &self.ahead {
            ahead.fill(&store).await?;
        }
        let layout = self.layout;
        fill_with(&store, self.claimable(), move |n| layout.job(n)).await
    }

    async fn open(&self, url: &str) -> Result<Session> {
        let store = backend::open(url).await?;
        let snapshot = if self.snapshot_held { Some(hold_snapshot(url).await?) } else { None };
        Ok(Session { store, _snapshot: snapshot, claimed: Vec::new() })
    }

    async fn warm(&self, session: &mut Session) -> Result<u64> {
        self.drain(session, self.warm).await
    }

    async fn run(&self, session: &mut Session) -> Result<u64> {
        self.drain(session, self.jobs).await
    }

    fn check_session(&self, session: &Session) -> Result<()> {
        let (claimed, expected) = (session.claimed.len(), self.warm + self.jobs);
        ensure!(claimed == expected, "{claimed} jobs were claimed instead of {expected}");
        let once = session.claimed.iter().collect::<HashSet<_>>().len();
        ensure!(once == claimed, "{} claims returned a job a second time", claimed - once);
        Ok(())
    }

    async fn check_database(&self, url: &str) -> Result<()> {
        let (left, expected) = (unfinished(&backend::open(url).await?).await?, self.left());
        ensure!(left == expected as u64, "{left} jobs are left instead of {expected}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_leaves_what_it_does_not_claim() {
        let scale = Scale::FULL;
        assert_eq!(empty(Backend::Postgres, scale).left(), 0);
        assert_eq!(pending(Backend::Sqlite, scale).left(), MILLION - JOBS - warm(100));
        let ahead = JobsAhead { jobs: 500, layout: Layout::ONE_LANE, paused: true };
        assert_eq!(DrainScenario { ahead: Some(ahead), ..one_lane(10, scale) }.left(), 500);
    }
}
