//! Drains of the store in different scenarios: empty, with a long history, with a large drain_scenarios, under an old
//! snapshot.

use std::sync::Arc;

use anyhow::Result;
use orchestrix_store::Store;
use tokio_postgres::Client;

use crate::{
    arguments::Scale,
    backend::{self, Backend},
    drain::{JOBS, drain, warm},
    jobs::fill,
    measure::Workload,
    postgres::hold_snapshot,
};

const MILLION: usize = 1_000_000;

/// What a drain finds in the database.
#[derive(Debug)]
pub(crate) struct DrainScenario {
    /// Jobs per claim.
    batch: usize,
    /// Jobs drained before the clock starts.
    warm: usize,
    /// Jobs drained while it runs.
    jobs: usize,
    /// Pending jobs at the start, if more than are drained.
    pending: usize,
    /// Finished jobs at the start.
    finished: usize,
    /// Whether an old snapshot is open, so that vacuum can remove no rows that died since.
    snapshot_held: bool,
}

/// Only the jobs that are drained.
pub(crate) fn empty(backend: Backend, scale: Scale) -> DrainScenario {
    let batch = backend.batch();
    DrainScenario { batch, warm: warm(batch), jobs: scale.of(JOBS), pending: 0, finished: 0, snapshot_held: false }
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

/// A store, and the transaction with the snapshot.
pub(crate) struct Session {
    store: Arc<dyn Store>,
    _snapshot: Option<Client>,
}

impl Workload for DrainScenario {
    type Session = Session;

    async fn prepare(&self, url: &str) -> Result<()> {
        let store = backend::open(url).await?;
        if self.finished > 0 {
            backend::fill_finished(url, self.finished).await?;
        }
        fill(&store, self.pending.max(self.warm + self.jobs)).await
    }

    async fn open(&self, url: &str) -> Result<Session> {
        let store = backend::open(url).await?;
        let snapshot = if self.snapshot_held { Some(hold_snapshot(url).await?) } else { None };
        Ok(Session { store, _snapshot: snapshot })
    }

    async fn warm(&self, session: &mut Session) -> Result<u64> {
        drain(&session.store, self.batch, self.warm).await
    }

    async fn run(&self, session: &mut Session) -> Result<u64> {
        drain(&session.store, self.batch, self.jobs).await
    }
}
