//! One server for all tests, a fresh database for each.
//!
//! Starting a server takes a second or two, creating a database some tens of milliseconds. So tests share a server and
//! never a database: `cargo xtask test` starts one and names it in [`TEST_POSTGRES`]; without it, as in a plain `cargo
//! test`, each test process starts its own on first use.

use std::env;
use std::process;
use std::sync::{Mutex, PoisonError};

use crate::scratch::random;
use crate::{Error, PostgresServer, psql};

/// The environment variable that names the tests' server: a URL without a database, `postgres://postgres@127.0.0.1:5432`.
pub const TEST_POSTGRES: &str = "ORCHESTRIX_TEST_POSTGRES";

/// The URL, without a database, of the server that the tests share.
///
/// It is the one that [`TEST_POSTGRES`] names, else one started for this process, once, which ends with the process.
pub fn test_postgres() -> Result<&'static str, Error> {
    static SERVER: Mutex<Option<&'static str>> = Mutex::new(None);
    // Held while the server starts, so that tests on other threads wait for it rather than start theirs.
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(url) = *server {
        return Ok(url);
    }
    let url = match env::var(TEST_POSTGRES) {
        Ok(url) if !url.is_empty() => url.trim_end_matches('/').to_owned(),
        // Leaked on purpose: statics are never dropped, and the keeper stops the server when the process ends.
        _ => Box::leak(Box::new(PostgresServer::builder().start()?)).base_url(),
    };
    Ok(server.insert(url.leak()))
}

/// A fresh, empty database on the tests' server, dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    server: &'static str,
    name: String,
    url: String,
}

impl TestDatabase {
    /// Creates a database whose name starts with `name_hint`, so that it can be told apart in the server's log.
    pub fn create(name_hint: &str) -> Result<Self, Error> {
        let server = test_postgres()?;
        let name = unique_name(name_hint);
        // template1 can be busy with another session, which makes CREATE DATABASE fail; template0 admits none.
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
        // FORCE, because the test's own pool may not have closed its connections yet.
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        if let Err(error) = psql(&format!("{}/postgres", self.server), &sql) {
            eprintln!("the database {} was not dropped: {error}", self.name);
        }
    }
}

/// An identifier that needs no quoting and fits PostgreSQL's 63 bytes; the pid helps a person find its owner.
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
    fn names_need_no_quoting_and_are_not_cut_short() {
        let name = unique_name(&"Claim/höchste-Priorität ".repeat(4));
        assert!(name.len() <= 63, "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        assert_ne!(unique_name("same"), unique_name("same"));
    }
}
