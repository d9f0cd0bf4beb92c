//! The measured server: its databases, its WAL and its counters.
//!
//! A server that holds other databases or is not durable is refused before anything is written to it.
//!
//! Counters are read over another database, so that reading them is not counted.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tokio_postgres::{Client, NoTls};

use crate::{coordinator::cpu_time, measure::Database};

/// How long to wait for closed connections to disappear.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Settings that must be on: otherwise commits could be lost and the numbers would be too good.
const DURABLE: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

/// The databases of a new server.
const OWN_DATABASES: [&str; 3] = ["postgres", "template0", "template1"];

/// Writes a gigabyte of WAL, whose files are then reused: creating new ones would slow down the first measurement.
const FILL_WAL: &str = "
    SELECT count(pg_logical_emit_message(false, 'bench', repeat('x', 8 * 1024 * 1024))) FROM generate_series(1, 128)";

/// A private server.
#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    admin: Client,
    databases: AtomicU32,
}

/// Opens a connection that lives as long as its client.
pub(crate) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Server {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        let admin = connect(&format!("{url}/postgres")).await.with_context(|| format!("cannot reach {url}"))?;
        let server = Self { url, admin, databases: AtomicU32::new(0) };
        server.check_private().await?;
        server.check_durable().await?;
        Ok(server)
    }

    // A run fills the WAL, forces checkpoints and reads server-wide counters, so the server must have no other use.
    async fn check_private(&self) -> Result<()> {
        let others = self
            .admin
            .query("SELECT datname FROM pg_database WHERE datname <> ALL ($1)", &[&OWN_DATABASES.as_slice()])
            .await?;
        let others: Vec<&str> = others.iter().map(|row| row.get(0)).collect();
        ensure!(others.is_empty(), "{} is not private: it has the databases {}", self.url, others.join(", "));
        Ok(())
    }

    async fn check_durable(&self) -> Result<()> {
        for name in DURABLE {
            let setting: String = self.admin.query_one("SELECT current_setting($1)", &[&name]).await?.get(0);
            ensure!(setting == "on", "{} is not durable: {name} is {setting}", self.url);
        }
        Ok(())
    }

    /// Prepares the server for measurements.
    pub(crate) async fn settle(&self) -> Result<()> {
        self.admin.batch_execute(FILL_WAL).await?;
        self.checkpoint().await
    }

    /// Runs a checkpoint, so that one measurement does not burden the next.
    pub(crate) async fn checkpoint(&self) -> Result<()> {
        Ok(self.admin.batch_execute("CHECKPOINT").await?)
    }

    pub(crate) async fn create(&self) -> Result<Database> {
        let n = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench_{}_{n}", std::process::id());
        self.admin.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0")).await?;
        Ok(Database { url: format!("{}/{name}", self.url), name })
    }

    pub(crate) async fn drop(&self, database: &Database) -> Result<()> {
        Ok(self.admin.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", database.name)).await?)
    }

    /// The number of WAL bytes written so far.
    pub(crate) async fn wal_bytes(&self) -> Result<u64> {
        let row = self.admin.query_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &[]).await?;
        Ok(row.get::<_, i64>(0).try_into()?)
    }

    /// The number of committed transactions. Sessions report theirs when they end, so all must have ended.
    pub(crate) async fn commits(&self, database: &Database) -> Result<u64> {
        let begun = Instant::now();
        while self.sessions(database).await? > 0 {
            ensure!(begun.elapsed() < TIMEOUT, "connections to {} are still open", database.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.commits_so_far(database).await
    }

    /// The same while sessions are open; they report theirs about a second late.
    pub(crate) async fn commits_so_far(&self, database: &Database) -> Result<u64> {
        let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = $1";
        Ok(self.admin.query_one(sql, &[&database.name]).await?.get::<_, i64>(0).try_into()?)
    }

    /// The CPU time of the sessions in a database.
    pub(crate) async fn cpu_time(&self, database: &Database) -> Result<Duration> {
        let sql = "SELECT pid::text FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'";
        let sessions = self.admin.query(sql, &[&database.name]).await?;
        sessions.iter().map(|row| cpu_time(row.get(0))).sum()
    }

    async fn sessions(&self, database: &Database) -> Result<i64> {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'";
        Ok(self.admin.query_one(sql, &[&database.name]).await?.get(0))
    }
}
