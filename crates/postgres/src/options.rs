//! How to reach the database and how to behave there.

use std::{fmt, time::Duration};

use crate::IdSource;

/// Where the database is and how this process uses it.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user@host:port/database`.
    pub url: String,
    /// The most connections at once.
    pub connections: usize,
    /// How long a statement may take, on the server and, a little longer, on this side.
    pub statement_timeout: Duration,
    /// How long a statement may wait for a lock.
    pub lock_timeout: Duration,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait at start for a database that is still coming up.
    pub startup_timeout: Duration,
    /// Keep named prepared statements on connections. Off behind a pooler that does not follow them.
    pub prepare: bool,
    /// Keep a connection that listens for work recorded by other processes. Without it they are found by polling.
    pub listen: bool,
    /// Set timeouts as session defaults when connecting. Poolers may refuse or forget them; this side's limits stay.
    pub session_settings: bool,
    /// Apply pending migrations when the store is opened.
    pub migrate: bool,
    /// Where ids of jobs come from.
    pub ids: IdSource,
    /// Payloads longer than this many bytes are kept apart from the row that moves.
    pub inline_payload: usize,
}

impl PostgresOptions {
    /// The defaults for a direct connection.
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
        }
    }

    /// For a pooler in transaction mode: no state is kept on any connection.
    pub fn pooled(url: impl Into<String>) -> Self {
        Self { prepare: false, listen: false, session_settings: false, ..Self::new(url) }
    }
}

// Without the password, wherever in the URL it stands.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.url.parse::<tokio_postgres::Config>() {
            Ok(config) => {
                format!("{:?} {:?} {}", config.get_hosts(), config.get_ports(), config.get_dbname().unwrap_or(""))
            }
            Err(_) => "(not a URL)".into(),
        };
        f.debug_struct("PostgresOptions")
            .field("place", &place)
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
    fn a_password_is_not_printed() {
        for url in
            ["postgres://ada:hunter2@db.example:5433/jobs", "host=db.example user=ada password=hunter2 dbname=jobs"]
        {
            let printed = format!("{:?}", PostgresOptions::new(url));
            assert!(!printed.contains("hunter2") && printed.contains("db.example"), "{printed}");
        }
    }
}
