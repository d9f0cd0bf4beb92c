//! Opens the store that a database URL names. No message shows a password.

use std::{fmt, path::Path, str::FromStr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::{Store, StoreError};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tokio_postgres::config::Host;

use crate::{arguments::Global, error::CliError};

/// A database, parsed from its URL.
pub(crate) enum Database {
    Postgres { options: PostgresOptions, label: String },
    Sqlite(SqliteOptions),
    Memory,
}

// Never shows the URL, which holds the password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres { label, .. } => f.write_str(label),
            Self::Sqlite(options) => write!(f, "{}", options.path.display()),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

impl Database {
    /// The database of a command that also works with `--server`.
    pub(crate) fn from_arguments(global: &Global) -> Result<Self> {
        Self::parse(global, "; or set --server http://… or ORCHESTRIX_SERVER_URL")
    }

    /// The database of a command that works with a database only.
    pub(crate) fn required(global: &Global) -> Result<Self> {
        Self::parse(global, "")
    }

    fn parse(global: &Global, alternative: &str) -> Result<Self> {
        let url = global.database.as_deref().filter(|url| !url.is_empty()).ok_or_else(|| {
            let text = "no database: set --database or ORCHESTRIX_DATABASE_URL to postgres://… or sqlite:PATH";
            usage(format!("{text}{alternative}"))
        })?;
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            "postgres" | "postgresql" => {
                let (url, pooled) = split_pgbouncer_param(url)?;
                let config = tokio_postgres::Config::from_str(&url).map_err(|error| {
                    usage(format!("--database is not a valid PostgreSQL URL: {}", innermost(&error)))
                })?;
                let defaults = if pooled { PostgresOptions::pooled(url) } else { PostgresOptions::new(url) };
                let options = PostgresOptions {
                    // A command sends one request at a time and does not wait for jobs.
                    connections: 2,
                    listen: false,
                    connect_timeout: global.connect_timeout.min(defaults.connect_timeout),
                    startup_timeout: global.connect_timeout,
                    migrate: !global.no_migrate,
                    ..defaults
                };
                Ok(Self::Postgres { options, label: label(&config) })
            }
            "sqlite" => Ok(Self::Sqlite(SqliteOptions::from_url(url).map_err(StoreError::from)?)),
            "memory" => Ok(Self::Memory),
            _ => Err(usage("--database must be postgres://USER:PASSWORD@HOST/NAME, sqlite:PATH or memory:")),
        }
    }

    /// The same database for a server or a worker: with a full pool, and with LISTEN unless a pooler prevents it.
    pub(crate) fn for_long_running_process(self) -> Self {
        match self {
            Self::Postgres { options, label } => {
                let PostgresOptions { connections, .. } = PostgresOptions::new("");
                let listen = options.prepare;
                Self::Postgres { options: PostgresOptions { connections, listen, ..options }, label }
            }
            other => other,
        }
    }

    /// The number of pending migrations. Changes nothing. For a file that does not exist, all of them.
    pub(crate) async fn pending_migrations(&self) -> Result<usize> {
        match self {
            Self::Postgres { options, label } => {
                PostgresStore::pending_migrations(options.clone()).await.with_context(|| label.clone())
            }
            Self::Sqlite(options) => {
                let (version, supported) = (sqlite_version(&options.path)?, orchestrix_sqlite::SCHEMA_VERSION);
                usize::try_from(supported - version).map_err(|_| {
                    let text = format!(
                        "{self} has schema version {version}, this program supports {supported}: use a newer orchestrix"
                    );
                    StoreError::Schema(text).into()
                })
            }
            Self::Memory => Ok(0),
        }
    }
}

/// The open store of a command.
pub(crate) struct OpenDatabase {
    pub(crate) store: Arc<dyn Store>,
    /// Closed at the end, so that the database is left in one file.
    sqlite: Option<SqliteStore>,
    /// Flushed at the end, so that workers are notified of new jobs.
    postgres: Option<PostgresStore>,
}

impl OpenDatabase {
    /// Opens the database. Creates a missing file only if `creates_file`.
    pub(crate) async fn open(database: Database, global: &Global, creates_file: bool) -> Result<Self> {
        match database {
            Database::Postgres { options, label } => {
                let store = PostgresStore::open(options).await.map_err(advise_migration).context(label)?;
                Ok(Self { store: Arc::new(store.clone()), sqlite: None, postgres: Some(store) })
            }
            Database::Sqlite(options) => {
                let path = options.path.display();
                if !creates_file && !options.path.try_exists().with_context(|| path.to_string())? {
                    let text = format!(
                        "the file {path} does not exist: check the path, or create it with `orchestrix migrate`"
                    );
                    return Err(CliError::Unreachable(text).into());
                }
                if global.no_migrate && sqlite_version(&options.path)? < orchestrix_sqlite::SCHEMA_VERSION {
                    let text =
                        format!("{path} has pending migrations: run `orchestrix migrate`, or leave out --no-migrate");
                    return Err(CliError::Failed(text).into());
                }
                let store = SqliteStore::open(options).await?;
                Ok(Self { store: Arc::new(store.clone()), sqlite: Some(store), postgres: None })
            }
            Database::Memory => Err(usage(
                "memory: exists only inside one process, so this command would find nothing in it: \
                 use a shared database, sqlite:PATH or postgres://…",
            )),
        }
    }

    /// Notifies workers of new jobs, and closes an SQLite file.
    pub(crate) async fn close(self) {
        if let Some(postgres) = self.postgres {
            // Workers that are not notified in time find the jobs by polling.
            let _ = tokio::time::timeout(Duration::from_secs(1), postgres.flush()).await;
        }
        if let Some(sqlite) = self.sqlite {
            sqlite.close().await;
        }
    }
}

// Adds the command that applies the migrations to the store's error.
fn advise_migration(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Schema(text) if text.contains("apply the migrations") => {
            CliError::Failed(format!("{text}: run `orchestrix migrate`, or leave out --no-migrate")).into()
        }
        error => error.into(),
    }
}

/// The schema version of a file; 0 if there is no file or no schema. Opening the store would create both.
fn sqlite_version(path: &Path) -> Result<i32> {
    if !path.try_exists().with_context(|| path.display().to_string())? {
        return Ok(0);
    }
    let read = || -> rusqlite::Result<i32> {
        // Only a read-write connection removes the write-ahead log when it closes.
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(SqliteOptions::new(path).busy_timeout)?;
        let migration_table = "SELECT 1 FROM sqlite_schema WHERE name = 'migration'";
        if connection.query_row(migration_table, (), |_| Ok(())).optional()?.is_none() {
            return Ok(0);
        }
        connection.query_row("SELECT coalesce(max(version), 0) FROM migration", (), |row| row.get(0))
    };
    read().with_context(|| format!("cannot read {}", path.display()))
}

/// The URL parameter for a connection through a pooler in transaction mode.
pub(crate) const PGBOUNCER_PARAM: &str = "?pgbouncer=true";

/// The URL without the `pgbouncer` parameter, which PostgreSQL does not know, and the parameter's value.
fn split_pgbouncer_param(url: &str) -> Result<(String, bool)> {
    let Some((base, params)) = url.split_once('?') else { return Ok((url.to_owned(), false)) };
    let (ours, theirs): (Vec<&str>, Vec<&str>) = params.split('&').partition(|param| param.starts_with("pgbouncer="));
    let pooled = match ours[..] {
        [] | ["pgbouncer=false"] => false,
        ["pgbouncer=true"] => true,
        _ => {
            return Err(usage(format!(
                "--database: the parameter pgbouncer must be true or false and may occur once, as in {PGBOUNCER_PARAM}"
            )));
        }
    };
    Ok((if theirs.is_empty() { base.to_owned() } else { format!("{base}?{}", theirs.join("&")) }, pooled))
}

fn label(config: &tokio_postgres::Config) -> String {
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
    CliError::Usage(text.into()).into()
}

fn innermost(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pgbouncer_parameter_is_removed_from_the_url() {
        let split = |params: &str| split_pgbouncer_param(&format!("postgres://u@h/d{params}"));
        for (params, rest, pooled) in [
            ("", "", false),
            ("?pgbouncer=true", "", true),
            ("?pgbouncer=false", "", false),
            ("?sslmode=disable", "?sslmode=disable", false),
            ("?a=1&pgbouncer=true&b=2", "?a=1&b=2", true),
        ] {
            assert_eq!(split(params).unwrap(), (format!("postgres://u@h/d{rest}"), pooled), "{params}");
        }
        for invalid in ["?pgbouncer=yes", "?pgbouncer=", "?pgbouncer=true&pgbouncer=true"] {
            assert!(split(invalid).is_err(), "{invalid}");
        }
    }
}
