//! From a URL to a store. Nothing here, errors least of all, shows a password.

use std::{fmt, path::Path, str::FromStr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::{Store, StoreError};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tokio_postgres::config::Host;

use crate::{arguments::Global, failure::Failure};

/// Where jobs are kept.
pub(crate) enum Database {
    Postgres { options: PostgresOptions, place: String },
    Sqlite(SqliteOptions),
    Memory,
}

// Never the URL: it holds the password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres { place, .. } => f.write_str(place),
            Self::Sqlite(options) => write!(f, "{}", options.path.display()),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

impl Database {
    /// The database that was asked for, where a server would do as well.
    pub(crate) fn of(global: &Global) -> Result<Self> {
        Self::read(global, "; or --server http://…, or ORCHESTRIX_SERVER_URL")
    }

    /// The database that was asked for, where nothing else will do.
    pub(crate) fn alone(global: &Global) -> Result<Self> {
        Self::read(global, "")
    }

    fn read(global: &Global, instead: &str) -> Result<Self> {
        let url = global.database.as_deref().filter(|url| !url.is_empty()).ok_or_else(|| {
            let text = "no database: give --database postgres://… or sqlite:PATH, or set ORCHESTRIX_DATABASE_URL";
            usage(format!("{text}{instead}"))
        })?;
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            "postgres" | "postgresql" => {
                let (url, pooled) = pooled(url)?;
                let config = tokio_postgres::Config::from_str(&url)
                    .map_err(|error| usage(format!("--database is not a valid PostgreSQL URL: {}", causes(&error))))?;
                let defaults = if pooled { PostgresOptions::pooled(url) } else { PostgresOptions::new(url) };
                let options = PostgresOptions {
                    // One command at a time asks, and nobody waits for jobs.
                    connections: 2,
                    listen: false,
                    connect_timeout: global.connect_timeout.min(defaults.connect_timeout),
                    startup_timeout: global.connect_timeout,
                    migrate: !global.no_migrate,
                    ..defaults
                };
                Ok(Self::Postgres { options, place: place(&config) })
            }
            "sqlite" => Ok(Self::Sqlite(SqliteOptions::from_url(url).map_err(StoreError::from)?)),
            "memory" => Ok(Self::Memory),
            _ => Err(usage("--database must be postgres://USER:PASSWORD@HOST/NAME, sqlite:PATH or memory:")),
        }
    }

    /// The same for a process that stays: it does much at once, and wants to hear of new jobs, which it cannot through a pooler.
    pub(crate) fn staying(self) -> Self {
        match self {
            Self::Postgres { options, place } => {
                let PostgresOptions { connections, .. } = PostgresOptions::new("");
                let listen = options.prepare;
                Self::Postgres { options: PostgresOptions { connections, listen, ..options }, place }
            }
            other => other,
        }
    }

    /// How many migrations it lacks; changes nothing. A file that does not exist lacks all of them.
    pub(crate) async fn pending_migrations(&self) -> Result<usize> {
        match self {
            Self::Postgres { options, place } => {
                PostgresStore::pending_migrations(options.clone()).await.with_context(|| place.clone())
            }
            Self::Sqlite(options) => {
                let (version, known) = (sqlite_version(&options.path)?, orchestrix_sqlite::SCHEMA_VERSION);
                usize::try_from(known - version).map_err(|_| {
                    let text = format!(
                        "{self} has schema version {version}, this program knows {known}: run a newer orchestrix"
                    );
                    StoreError::Schema(text).into()
                })
            }
            Self::Memory => Ok(0),
        }
    }
}

/// A store for the time of one command.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    file: Option<SqliteStore>,
    /// The same store, to tell others of what was recorded.
    server: Option<PostgresStore>,
}

impl Opened {
    /// Opens this database. A file that is not there is made only if `makes_files`.
    pub(crate) async fn of(database: Database, global: &Global, makes_files: bool) -> Result<Self> {
        match database {
            Database::Postgres { options, place } => {
                let store = PostgresStore::open(options).await.map_err(how_to_migrate).context(place)?;
                Ok(Self { store: Arc::new(store.clone()), file: None, server: Some(store) })
            }
            Database::Sqlite(options) => {
                let path = options.path.display();
                if !makes_files && !options.path.try_exists().with_context(|| path.to_string())? {
                    let text =
                        format!("there is no file {path}: is the path right? `orchestrix migrate` would make it");
                    return Err(Failure::Unreachable(text).into());
                }
                if global.no_migrate && sqlite_version(&options.path)? < orchestrix_sqlite::SCHEMA_VERSION {
                    let text = format!("{path} lacks migrations: run `orchestrix migrate`, or leave out --no-migrate");
                    return Err(Failure::Failed(text).into());
                }
                let store = SqliteStore::open(options).await?;
                Ok(Self { store: Arc::new(store.clone()), file: Some(store), server: None })
            }
            Database::Memory => Err(usage(
                "memory: ends with the process that opened it, so this command would find nothing there: \
                 name a database that is shared, sqlite:PATH or postgres://…",
            )),
        }
    }

    /// Ends what is under way: workers elsewhere are told of new jobs, and an SQLite database is left in one file.
    pub(crate) async fn close(self) {
        if let Some(server) = self.server {
            // Those who are not told in time find the jobs by themselves.
            let _ = tokio::time::timeout(Duration::from_secs(1), server.flush()).await;
        }
        if let Some(file) = self.file {
            file.close().await;
        }
    }
}

// The store says what is missing; the command for it is ours.
fn how_to_migrate(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Schema(text) if text.contains("apply the migrations") => {
            Failure::Failed(format!("{text}: run `orchestrix migrate`, or leave out --no-migrate")).into()
        }
        error => error.into(),
    }
}

/// The version of the schema in the file; 0 where there is no file, or none of ours yet. The store itself would make it.
fn sqlite_version(path: &Path) -> Result<i32> {
    if !path.try_exists().with_context(|| path.display().to_string())? {
        return Ok(0);
    }
    let read = || -> rusqlite::Result<i32> {
        // Only a connection that may write takes the log with it when it closes.
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(SqliteOptions::new(path).busy_timeout)?;
        let ledger = "SELECT 1 FROM sqlite_schema WHERE name = 'migration'";
        if connection.query_row(ledger, (), |_| Ok(())).optional()?.is_none() {
            return Ok(0);
        }
        connection.query_row("SELECT coalesce(max(version), 0) FROM migration", (), |row| row.get(0))
    };
    read().with_context(|| format!("cannot read {}", path.display()))
}

/// What a URL says where a pooler in transaction mode is in between.
pub(crate) const POOLED: &str = "?pgbouncer=true";

/// The URL without what is not PostgreSQL's to know, and whether a pooler is in between.
fn pooled(url: &str) -> Result<(String, bool)> {
    let Some((place, settings)) = url.split_once('?') else { return Ok((url.to_owned(), false)) };
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        settings.split('&').partition(|setting| setting.starts_with("pgbouncer="));
    let pooled = match ours[..] {
        [] | ["pgbouncer=false"] => false,
        ["pgbouncer=true"] => true,
        _ => return Err(usage(format!("--database: pgbouncer is true or false, once, as in {POOLED}"))),
    };
    Ok((if theirs.is_empty() { place.to_owned() } else { format!("{place}?{}", theirs.join("&")) }, pooled))
}

fn place(config: &tokio_postgres::Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "no host".into(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("PostgreSQL at {host}:{port}/{name}")
}

fn usage(text: impl Into<String>) -> anyhow::Error {
    Failure::Usage(text.into()).into()
}

fn causes(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pooler_is_named_in_the_url_and_the_server_does_not_hear_of_it() {
        let read = |settings: &str| pooled(&format!("postgres://u@h/d{settings}"));
        for (settings, left, is) in [
            ("", "", false),
            ("?pgbouncer=true", "", true),
            ("?pgbouncer=false", "", false),
            ("?sslmode=disable", "?sslmode=disable", false),
            ("?a=1&pgbouncer=true&b=2", "?a=1&b=2", true),
        ] {
            assert_eq!(read(settings).unwrap(), (format!("postgres://u@h/d{left}"), is), "{settings}");
        }
        for bad in ["?pgbouncer=yes", "?pgbouncer=", "?pgbouncer=true&pgbouncer=true"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
