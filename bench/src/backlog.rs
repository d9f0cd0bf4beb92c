//! Drains of our store in different surroundings: alone, over much history, from a large backlog, under a held snapshot.

use anyhow::Result;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use tokio_postgres::Client;

use crate::{
    arguments::Scale,
    drain::{BATCH, JOBS, WARM, drain},
    jobs::fill,
    measure::Side,
    server::connect,
};

const MILLION: usize = 1_000_000;

/// What is drained, and what is there besides.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// How many jobs a claim asks for.
    batch: usize,
    /// Jobs drained before the clock starts.
    warm: usize,
    /// Jobs drained while it runs.
    jobs: usize,
    /// Jobs pending at first, if more than are drained.
    pending: usize,
    /// Jobs in history at first.
    finished: usize,
    /// Whether an old snapshot is held, so that nothing that died since can be cleaned up.
    snapshot_held: bool,
}

/// Nothing but the jobs that are drained.
pub(crate) fn empty(scale: Scale) -> Surroundings {
    Surroundings { batch: BATCH, warm: WARM, jobs: scale.of(JOBS), pending: 0, finished: 0, snapshot_held: false }
}

/// A million finished jobs.
pub(crate) fn finished(scale: Scale) -> Surroundings {
    Surroundings { finished: scale.of(MILLION), ..empty(scale) }
}

/// The first of a million pending jobs.
pub(crate) fn pending(scale: Scale) -> Surroundings {
    Surroundings { pending: scale.of(MILLION), ..empty(scale) }
}

/// After 300,000 jobs in small batches, under a snapshot from before the first.
pub(crate) fn held(scale: Scale) -> Surroundings {
    Surroundings { snapshot_held: true, ..not_held(scale) }
}

/// The same without the snapshot.
pub(crate) fn not_held(scale: Scale) -> Surroundings {
    Surroundings { batch: 100, warm: scale.of(300_000), jobs: scale.of(50_000), ..empty(scale) }
}

/// A store, and the transaction that holds a snapshot.
pub(crate) struct Session {
    store: PostgresStore,
    _snapshot: Option<Client>,
}

impl Side for Surroundings {
    type Session = Session;

    async fn prepare(&self, url: &str) -> Result<()> {
        let store = PostgresStore::open(PostgresOptions::new(url)).await?;
        if self.finished > 0 {
            let sql = include_str!("sql/fill_history.sql");
            connect(url).await?.execute(sql, &[&(self.finished as i64)]).await?;
        }
        fill(&store, self.pending.max(self.warm + self.jobs)).await
    }

    async fn open(&self, url: &str) -> Result<Session> {
        let store = PostgresStore::open(PostgresOptions::new(url)).await?;
        let snapshot = if self.snapshot_held {
            let client = connect(url).await?;
            client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1").await?;
            Some(client)
        } else {
            None
        };
        Ok(Session { store, _snapshot: snapshot })
    }

    async fn warm(&self, session: &mut Session) -> Result<u64> {
        drain(&session.store, self.batch, self.warm).await
    }

    async fn run(&self, session: &mut Session) -> Result<u64> {
        drain(&session.store, self.batch, self.jobs).await
    }
}
