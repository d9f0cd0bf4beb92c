//! One PostgreSQL server for all tests, a fresh database for each test.
//!
//! Starting a server takes a second or two, creating a database tens of milliseconds. So tests share a server, but
//! never a database. `cargo xtask test` starts the server and names it in [`TEST_POSTGRES`]. Without that variable,
//! as in a plain `cargo test`, each test process starts its own server on first use.

use std::env;
use std::process;
use std::sync::{Mutex, PoisonError};

use crate::server_dir::random;
use crate::{Error, PostgresServer, psql};

/// The environment variable with the URL of the shared server, without a database:
/// `postgres://postgres@127.0.0.1:5432`.
pub const TEST_POSTGRES: &str = "ORCHESTRIX_TEST_POSTGRES";

/// The URL of the shared server, without a database.
///
/// Taken from [`TEST_POSTGRES`]; otherwise a server is started once for this process, and stops with it.
pub fn test_postgres() -> Result<&'static str, Error> {
    static SERVER: Mutex<Option<&'static str>> = Mutex::new(None);
    // Locked while the server starts, so that other threads wait for it instead of starting their own.
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(url) = *server {
        return Ok(url);
    }
    let url = match env::var(TEST_POSTGRES) {
        Ok(url) if !url.is_empty() => url.trim_end_matches('/').to_owned(),
        // Leaked on purpose: statics are never dropped, and the cleanup process stops the server when this process
        // exits.
        _ => Box::leak(Box::new(PostgresServer::builder().start()?)).base_url(),
    };
    Ok(server.insert(url.leak()))
}

/// A fresh, empty database on the shared server, dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    server: &'static str,
    name: String,
    url: String,
}

impl TestDatabase {
    /// Creates a database. Its name starts with `name_hint`, which identifies it in the server's log.
    pub fn create(name_hint: &str) -> Result<Self, Error> {
        let server = test_postgres()?;
        let name = unique_name(name_hint);
        // CREATE DATABASE fails while another session uses its template; template0 accepts no sessions.
        psql(&format!("{server}/postgres"), &format!("CREATE DATABASE {name} TEMPLATE template0"))?;
        let url = format!("{server}/{name}");
        Ok(Self { server, name, url })
    }

    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The database's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // FORCE, because the test's connection pool may still be open.
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        if let Err(error) = psql(&format!("{}/postgres", self.server), &sql) {
            eprintln!("cannot drop the database {}: {error}", self.name);
        }
    }
}

/// A random identifier that needs no quoting and fits in 63 bytes. It contains the pid of its owner.
fn unique_name(hint: &str) -> String {
    const HINT: usize = 32;
    let hint: String =
        hint.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).take(HINT).collect();
    format!("t_{hint}_{}_{:016x}", process::id(), random())
}

#[cfg(test)]
mod tests {
    use super::unique_name;

    #[test]
    fn database_names_need_no_quoting_and_fit_the_limit() {
        let name = unique_name(&"Claim/höchste-Priorität ".repeat(4));
        assert!(name.len() <= 63, "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        assert_ne!(unique_name("same"), unique_name("same"));
    }
}
