//! Options of the store.

use std::{fmt, time::Duration};

use crate::IdSource;

/// Where the database is, and how this process uses it.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user@host:port/database`.
    pub url: String,
    /// The maximum number of pooled connections.
    pub connections: usize,
    /// How long a statement may take on the server. The client waits five seconds longer.
    pub statement_timeout: Duration,
    /// How long a statement may wait for a lock.
    pub lock_timeout: Duration,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait at start for a database that does not accept connections yet.
    pub startup_timeout: Duration,
    /// Keep prepared statements on connections. Turn it off behind a pooler that does not support them.
    pub prepare: bool,
    /// Keep a connection that listens for notifications of other processes. Without it, polling finds their jobs.
    pub listen: bool,
    /// Set timeouts and planner settings when connecting. Poolers may refuse or drop them; the client's limits stay.
    pub session_settings: bool,
    /// Apply pending migrations when the store is opened.
    pub migrate: bool,
    /// The source of job ids.
    pub ids: IdSource,
    /// Payloads longer than this many bytes are stored outside the job's row.
    pub inline_payload: usize,
    /// The ring position at which the [turns](orchestrix_core::turn) of tenants begin. Random by default, so that processes
    /// which claim once and end favour no tenant.
    pub first_turn: i64,
}

impl PostgresOptions {
    /// The defaults for direct connections.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 10,
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            startup_timeout: Duration::from_secs(60),
            prepare: true,
            listen: true,
            session_settings: true,
            migrate: true,
            ids: IdSource::default(),
            inline_payload: 512,
            first_turn: rand::random(),
        }
    }

    /// The defaults behind a pooler in transaction mode: no state is kept on connections.
    pub fn pooled(url: impl Into<String>) -> Self {
        Self { prepare: false, listen: false, session_settings: false, ..Self::new(url) }
    }
}

// Never prints the URL itself, which may contain a password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match self.url.parse::<tokio_postgres::Config>() {
            Ok(config) => {
                format!("{:?} {:?} {}", config.get_hosts(), config.get_ports(), config.get_dbname().unwrap_or(""))
            }
            Err(_) => "(not a URL)".into(),
        };
        f.debug_struct("PostgresOptions")
            .field("target", &target)
            .field("connections", &self.connections)
            .field("statement_timeout", &self.statement_timeout)
            .field("lock_timeout", &self.lock_timeout)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_omits_the_password() {
        for url in
            ["postgres://ada:hunter2@db.example:5433/jobs", "host=db.example user=ada password=hunter2 dbname=jobs"]
        {
            let printed = format!("{:?}", PostgresOptions::new(url));
            assert!(!printed.contains("hunter2") && printed.contains("db.example"), "{printed}");
        }
    }
}
