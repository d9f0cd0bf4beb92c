//! One PostgreSQL server for all tests, a fresh database for each test.
//!
//! Starting a server takes a second or two, creating a database tens of milliseconds. So tests share a server, but
//! never a database. `cargo xtask test` starts the server and names it in [`TEST_POSTGRES`]. Without that variable,
//! as in a plain `cargo test`, each test process starts its own server on first use.

use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
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

    /// Creates a database with all migrations applied, as a copy of a template.
    ///
    /// The first caller on a server builds the template with `migrate`, which gets the URL of an empty database. Copying
    /// it takes less than half the time of migrating. The template's name contains a hash of the migrations, so a
    /// server may have several.
    pub fn create_migrated(name_hint: &str, migrate: impl FnOnce(&str)) -> Result<Self, Error> {
        Self::create_from("migrated", name_hint, migrate)
    }

    /// Like [`create_migrated`](Self::create_migrated), from another template: the one with this name, which `prepare`
    /// builds. All callers with one name must build the same.
    pub fn create_from(template: &str, name_hint: &str, prepare: impl FnOnce(&str)) -> Result<Self, Error> {
        Self::copy_of(&format!("template_{template}_{:016x}", migrations_hash()?), name_hint, prepare)
    }

    fn copy_of(template: &str, name_hint: &str, prepare: impl FnOnce(&str)) -> Result<Self, Error> {
        let server = test_postgres()?;
        let name = unique_name(name_hint);
        // A copy of files is faster than one through the WAL, as long as checkpoints do not wait for the disk.
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY");
        if psql(&format!("{server}/postgres"), &create).is_err() {
            ensure_template(server, template, prepare)?;
            psql(&format!("{server}/postgres"), &create)?;
        }
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

/// Builds the template unless it exists. Test processes that need it at the same time wait for one of them.
fn ensure_template(server: &str, template: &str, prepare: impl FnOnce(&str)) -> Result<(), Error> {
    let path = env::temp_dir().join(format!("orchestrix-{template}.lock"));
    let lock = File::create(&path).map_err(Error::files(&path))?;
    lock.lock().map_err(Error::files(&path))?;
    let admin = format!("{server}/postgres");
    if psql(&admin, &format!("SELECT 1 FROM pg_database WHERE datname = '{template}'"))? == "1" {
        return Ok(());
    }
    let draft = unique_name("template");
    psql(&admin, &format!("CREATE DATABASE {draft} TEMPLATE template0"))?;
    prepare(&format!("{server}/{draft}"));
    // A database with sessions can be neither renamed nor copied.
    let sessions = format!("FROM pg_stat_activity WHERE datname = '{draft}'");
    psql(&admin, &format!("SELECT pg_terminate_backend(pid, 10000) {sessions}"))?;
    psql(&admin, &format!("ALTER DATABASE {draft} RENAME TO {template}"))?;
    Ok(())
}

/// A hash of the files in `crates/postgres/migrations`.
fn migrations_hash() -> Result<u64, Error> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../postgres/migrations");
    let entries = fs::read_dir(&directory).map_err(Error::files(&directory))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort_unstable();
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(&file).map_err(Error::files(&file))?.hash(&mut hasher);
    }
    Ok(hasher.finish())
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
    use super::*;

    #[test]
    fn copies_of_a_template_are_separate_and_it_is_prepared_once() {
        let template = unique_name("copied");
        let prepare = |url: &str| drop(psql(url, "CREATE TABLE prepared AS SELECT 7 AS n").unwrap());
        let one = TestDatabase::copy_of(&template, "copy", prepare).unwrap();
        let other = TestDatabase::copy_of(&template, "copy", |_| panic!("the template exists")).unwrap();
        psql(one.url(), "UPDATE prepared SET n = 8").unwrap();
        assert_eq!(psql(one.url(), "SELECT n FROM prepared").unwrap(), "8");
        assert_eq!(psql(other.url(), "SELECT n FROM prepared").unwrap(), "7");
        psql(&format!("{}/postgres", one.server), &format!("DROP DATABASE {template}")).unwrap();
    }

    #[test]
    fn database_names_need_no_quoting_and_fit_the_limit() {
        let name = unique_name(&"Claim/höchste-Priorität ".repeat(4));
        assert!(name.len() <= 63, "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        assert_ne!(unique_name("same"), unique_name("same"));
    }
}
