//! The stores that are measured. A URL says which one and where: `postgres://…/DATABASE` or `sqlite:PATH`.

use std::sync::Arc;

use anyhow::Result;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::Store;

use crate::{figure::Figure, postgres, sqlite};

/// What keeps the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Postgres,
    Sqlite,
}

impl Backend {
    /// Whose database `url` names.
    pub(crate) fn of(url: &str) -> Self {
        if url.starts_with("sqlite:") { Self::Sqlite } else { Self::Postgres }
    }

    /// What is measured of it. SQLite cleans up nothing that a snapshot could hold back.
    pub(crate) fn figures(self) -> Vec<Figure> {
        let measured = |figure: &Figure| self == Self::Postgres || *figure != Figure::Xmin;
        Figure::STORE.into_iter().filter(measured).collect()
    }

    /// How many jobs a claim asks for, unless a figure says otherwise: without a server to travel to, fewer will do.
    pub(crate) const fn batch(self) -> usize {
        match self {
            Self::Postgres => 1_000,
            Self::Sqlite => 100,
        }
    }
}

/// Opens our store.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>> {
    Ok(match Backend::of(url) {
        Backend::Postgres => Arc::new(PostgresStore::open(PostgresOptions::new(url)).await?),
        Backend::Sqlite => Arc::new(SqliteStore::open(SqliteOptions::from_url(url)?).await?),
    })
}

/// Adds completed jobs to the tables of our store, faster than doing them would.
pub(crate) async fn fill_finished(url: &str, count: usize) -> Result<()> {
    match Backend::of(url) {
        Backend::Postgres => postgres::fill_finished(url, count).await,
        Backend::Sqlite => sqlite::fill_finished(url, count),
    }
}
