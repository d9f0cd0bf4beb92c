//! The stores under test. The URL selects one: `postgres://…/DATABASE` or `sqlite:PATH`.

use std::sync::Arc;

use anyhow::Result;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::Store;

use crate::{figure::Figure, postgres, sqlite};

/// A database system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Postgres,
    Sqlite,
}

impl Backend {
    /// The backend that `url` belongs to.
    pub(crate) fn of(url: &str) -> Self {
        if url.starts_with("sqlite:") { Self::Sqlite } else { Self::Postgres }
    }

    /// The figures of this backend. SQLite has no `xmin`: it has no dead rows that a snapshot could hold back.
    pub(crate) fn figures(self) -> Vec<Figure> {
        let measured = |figure: &Figure| self == Self::Postgres || *figure != Figure::Xmin;
        Figure::STORE.into_iter().filter(measured).collect()
    }

    /// The default batch size of claims; without a network round trip smaller batches suffice.
    pub(crate) const fn batch(self) -> usize {
        match self {
            Self::Postgres => 1_000,
            Self::Sqlite => 100,
        }
    }
}

/// Opens the store.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>> {
    Ok(match Backend::of(url) {
        Backend::Postgres => Arc::new(PostgresStore::open(PostgresOptions::new(url)).await?),
        Backend::Sqlite => Arc::new(SqliteStore::open(SqliteOptions::from_url(url)?).await?),
    })
}

/// Inserts completed jobs directly, which is faster than running them.
pub(crate) async fn fill_finished(url: &str, count: usize) -> Result<()> {
    match Backend::of(url) {
        Backend::Postgres => postgres::fill_finished(url, count).await,
        Backend::Sqlite => sqlite::fill_finished(url, count),
    }
}
