//! Read-only diagnostics of a database, for `orchestrix doctor`.
//!
//! Every query is a short read-only transaction of its own that is rolled back: a failed query does not affect the
//! others, and a pooler may be in between. The results are plain data; the caller judges them.

mod facts;
mod listen;

use std::time::{Duration, Instant};

use orchestrix_store::{Epoch, Result, StoreError, StoreSnapshot};
use tokio_postgres::Row;

pub use facts::{
    BlockerKind, Connections, MissingPrivileges, NotifyCheck, Partitions, Server, Setting, Table, VacuumBlocker,
};

use crate::{
    PostgresOptions, coordination,
    database::{Connection, Database, Params},
    inspect::read_time,
    migrate, queue,
    statement::{
        CLAIMABLE_LANES, CURRENT_TIME, DIAGNOSE_CONNECTIONS, DIAGNOSE_DEAD_JOBS, DIAGNOSE_PARTITIONS,
        DIAGNOSE_PRIVILEGES, DIAGNOSE_SERVER, DIAGNOSE_SETTINGS, DIAGNOSE_TABLES, DIAGNOSE_VACUUM_BLOCKERS,
        LEADER_TERM, LIST_NODES, LIST_WORKERS, OLDEST_CLAIMABLE, QUEUE_DEPTHS, Statement,
    },
    worker,
};

/// The time limit of one query.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The number of round trips measured.
const ROUND_TRIPS: usize = 5;
/// The most rows of a list.
const MAX_ROWS: i64 = 1_000;
/// The settings of each transaction. Some queries are the store's own, which rely on disabled sequential scans.
const READ_ONLY: &str = "SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = '4s'; SET LOCAL lock_timeout = '1s'; \
                         SET LOCAL enable_seqscan = off; SET LOCAL jit = off";

/// A connection to a database for diagnostics.
#[derive(Debug)]
pub struct Diagnostics {
    database: Database,
}

impl Diagnostics {
    /// Connects. Does not wait for a database that is still starting.
    pub async fn connect(options: PostgresOptions) -> Result<Self> {
        let options = PostgresOptions {
            connections: 3,
            statement_timeout: TIMEOUT,
            lock_timeout: TIMEOUT,
            // A pooler may refuse prepared statements and session settings.
            prepare: false,
            session_settings: false,
            listen: false,
            migrate: false,
            ..options
        };
        let database = Database::new(options)?;
        database.connection().await?;
        Ok(Self { database })
    }

    /// The shortest of a few round trips.
    pub async fn round_trip(&self) -> Result<Duration> {
        let connection = self.database.connection().await?;
        let mut shortest = Duration::MAX;
        for _ in 0..ROUND_TRIPS {
            let begun = Instant::now();
            connection.execute("").await?;
            shortest = shortest.min(begun.elapsed());
        }
        Ok(shortest)
    }

    /// The server and the role of this session.
    pub async fn server(&self) -> Result<Server> {
        let row = one(self.query(&DIAGNOSE_SERVER, &[]).await?)?;
        Ok(Server {
            version_number: row.get("version_number"),
            version: row.get("version"),
            time: row.get("time"),
            in_recovery: row.get("in_recovery"),
            role: row.get("role"),
            database: row.get("database"),
            bytes: count(row.get("bytes")),
            sees_all: row.get("sees_all"),
        })
    }

    /// The schema version; 0 if the database has no schema.
    pub async fn schema_version(&self) -> Result<i32> {
        let connection = self.database.connection().await?;
        connection.begin(READ_ONLY).await?;
        let version = migrate::current_version(&connection).await;
        connection.rollback().await?;
        version
    }

    /// Settings by name. Names that the server does not know are left out.
    pub async fn settings(&self, names: &[&str]) -> Result<Vec<Setting>> {
        let rows = self.query(&DIAGNOSE_SETTINGS, &[&names]).await?;
        let setting = |row: &Row| Setting { name: row.get("name"), value: row.get("reset_val"), unit: row.get("unit") };
        Ok(rows.iter().map(setting).collect())
    }

    /// The tables of Orchestrix, those with the most dead rows first.
    pub async fn tables(&self) -> Result<Vec<Table>> {
        let rows = self.query(&DIAGNOSE_TABLES, &[&MAX_ROWS]).await?;
        let table = |row: &Row| Table {
            name: row.get("name"),
            live: count(row.get("live")),
            dead: count(row.get("dead")),
            vacuumed: row.get::<_, Option<f64>>("vacuumed_seconds_ago").map(seconds),
            autovacuum: row.get("autovacuum"),
            vacuum_threshold: row.get("vacuum_threshold"),
        };
        Ok(rows.iter().map(table).collect())
    }

    /// What blocks vacuum, the oldest first.
    pub async fn vacuum_blockers(&self) -> Result<Vec<VacuumBlocker>> {
        let rows = self.query(&DIAGNOSE_VACUUM_BLOCKERS, &[&MAX_ROWS]).await?;
        let blocker = |row: &Row| VacuumBlocker {
            kind: match row.get("kind") {
                "session" => BlockerKind::Session,
                "prepared" => BlockerKind::Prepared,
                "standby" => BlockerKind::Standby,
                _ => BlockerKind::Slot,
            },
            pid: row.get("pid"),
            name: row.get("name"),
            owner: row.get("owner"),
            state: row.get("state"),
            age: row.get::<_, Option<f64>>("seconds").map(seconds),
            transactions: row.get("transactions"),
            retained: row.get::<_, Option<i64>>("retained").map(count),
        };
        Ok(rows.iter().map(blocker).collect())
    }

    /// The server's connections.
    pub async fn connections(&self) -> Result<Connections> {
        let row = one(self.query(&DIAGNOSE_CONNECTIONS, &[]).await?)?;
        Ok(Connections {
            max: count(row.get("max_connections")),
            reserved: count(row.get("reserved")),
            used: count(row.get("used")),
            orchestrix: count(row.get("orchestrix")),
        })
    }

    /// Whether notifications are delivered.
    pub async fn notify_check(&self) -> Result<NotifyCheck> {
        listen::check(&self.database).await
    }

    /// The privileges that this role lacks.
    pub async fn missing_privileges(&self) -> Result<Vec<MissingPrivileges>> {
        let rows = self.query(&DIAGNOSE_PRIVILEGES, &[&MAX_ROWS]).await?;
        let missing = |row: &Row| MissingPrivileges {
            kind: row.get("kind"),
            name: row.get("name"),
            privileges: row.get("missing"),
        };
        Ok(rows.iter().map(missing).collect())
    }

    /// Whether the daily partitions exist.
    pub async fn partitions(&self) -> Result<Vec<Partitions>> {
        let rows = self.query(&DIAGNOSE_PARTITIONS, &[]).await?;
        let partitions = |row: &Row| Partitions {
            table: row.get("parent"),
            today: row.get("today"),
            tomorrow: row.get("tomorrow"),
            default_used: row.get("default_used"),
        };
        Ok(rows.iter().map(partitions).collect())
    }

    /// The leader, nodes, workers and queues.
    pub async fn snapshot(&self) -> Result<StoreSnapshot> {
        let connection = self.database.connection().await?;
        connection.begin(READ_ONLY).await?;
        let snapshot = snapshot(&connection).await;
        connection.rollback().await?;
        snapshot
    }

    async fn query(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>> {
        let connection = self.database.connection().await?;
        connection.begin(READ_ONLY).await?;
        let rows = connection.query(statement, params).await;
        connection.rollback().await?;
        rows
    }
}

async fn snapshot(connection: &Connection<'_>) -> Result<StoreSnapshot> {
    let limit = StoreSnapshot::MAX_ROWS as i64;
    let now = read_time(&connection.query(&CURRENT_TIME, &[]).await?)?;
    let epoch = Epoch(one(connection.query(&LEADER_TERM, &[]).await?)?.get("epoch"));
    let nodes = connection.query(&LIST_NODES, &[&"", &limit]).await?;
    let workers = connection.query(&LIST_WORKERS, &[&"", &limit]).await?;
    let mut queues = queue::QueueDepths::read(&connection.query(&QUEUE_DEPTHS, &[&"", &limit]).await?)?;
    if let Some([first, last]) = queues.first_and_last() {
        queues.set_ages(&connection.query(&OLDEST_CLAIMABLE, &[&first, &last, &queue::MAX_HOPS]).await?);
    }
    let lanes = connection.query(&CLAIMABLE_LANES, &[&limit]).await?;
    let dead = one(connection.query(&DIAGNOSE_DEAD_JOBS, &[&(StoreSnapshot::MAX_DEAD as i64)]).await?)?;
    Ok(StoreSnapshot {
        now,
        epoch,
        nodes: nodes.iter().map(coordination::node_status).collect(),
        workers: workers.iter().map(worker::status).collect::<Result<_>>()?,
        queues: queues.into_vec(),
        lanes: lanes.iter().map(queue::lane).collect(),
        dead: count(dead.get("dead")),
    })
}

fn one(rows: Vec<Row>) -> Result<Row> {
    rows.into_iter().next().ok_or_else(|| StoreError::Backend("a diagnostic query returned no row".into()))
}

fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn seconds(n: f64) -> Duration {
    Duration::try_from_secs_f64(n).unwrap_or_default()
}
