//! A look at a database by somebody who wants to know what is wrong with it.
//!
//! Nothing is changed, and nothing is relied on: every question is a transaction of its own that is read-only, short, and
//! rolled back, so that one which fails spoils no other, and a pooler may stand between. What is found is plain data; what
//! to think of it is for whoever asked.

mod facts;
mod listen;

use std::time::{Duration, Instant};

use orchestrix_store::{Epoch, Result, StoreError, StoreSnapshot};
use tokio_postgres::Row;

pub use facts::{Connections, Days, Holder, HolderKind, Lack, Listening, Server, Setting, Table};

use crate::{
    PostgresOptions, coordination,
    database::{Connection, Database, Params},
    inspect, migrate,
    statement::{
        DEPTHS, DIAGNOSE_CONNECTIONS, DIAGNOSE_DEAD, DIAGNOSE_HOLDERS, DIAGNOSE_PARTITIONS, DIAGNOSE_PRIVILEGES,
        DIAGNOSE_SERVER, DIAGNOSE_SETTINGS, DIAGNOSE_TABLES, LANES, NODES, OLDEST, Statement, TERM, TIME, WORKERS,
    },
    worker,
};

/// How long the server works on one question.
const PATIENCE: Duration = Duration::from_secs(4);
/// Round trips of which the quickest counts.
const ROUND_TRIPS: usize = 5;
/// The most of anything that is listed.
const MOST: i64 = 1_000;
/// Without sequential scans, like every statement of the store: some of them are its own.
const CAREFULLY: &str = "SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = '4s'; SET LOCAL lock_timeout = '1s'; \
                         SET LOCAL enable_seqscan = off; SET LOCAL jit = off";

/// A database that is being looked at.
#[derive(Debug)]
pub struct Examination {
    database: Database,
}

impl Examination {
    /// Connects, once.
    pub async fn begin(options: PostgresOptions) -> Result<Self> {
        let options = PostgresOptions {
            connections: 3,
            statement_timeout: PATIENCE,
            lock_timeout: PATIENCE,
            // A pooler may refuse what it would have to remember.
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

    /// How long the quickest of a few round trips took.
    pub async fn round_trip(&self) -> Result<Duration> {
        let connection = self.database.connection().await?;
        let mut quickest = Duration::MAX;
        for _ in 0..ROUND_TRIPS {
            let begun = Instant::now();
            connection.execute("").await?;
            quickest = quickest.min(begun.elapsed());
        }
        Ok(quickest)
    }

    /// What the server is.
    pub async fn server(&self) -> Result<Server> {
        let row = one(self.ask(&DIAGNOSE_SERVER, &[]).await?)?;
        Ok(Server {
            version_number: row.get(0),
            version: row.get(1),
            time: row.get(2),
            in_recovery: row.get(3),
            role: row.get(4),
            database: row.get(5),
            bytes: count(row.get(6)),
            sees_all: row.get(7),
        })
    }

    /// The version of the schema; 0 where there is none.
    pub async fn schema_version(&self) -> Result<i32> {
        let connection = self.database.connection().await?;
        connection.begin(CAREFULLY).await?;
        let version = migrate::current_version(&connection).await;
        connection.rollback().await?;
        version
    }

    /// Those of these settings that the server knows.
    pub async fn settings(&self, names: &[&str]) -> Result<Vec<Setting>> {
        let rows = self.ask(&DIAGNOSE_SETTINGS, &[&names]).await?;
        Ok(rows.iter().map(|row| Setting { name: row.get(0), value: row.get(1), unit: row.get(2) }).collect())
    }

    /// Our tables, those with the most dead rows first.
    pub async fn tables(&self) -> Result<Vec<Table>> {
        let rows = self.ask(&DIAGNOSE_TABLES, &[&MOST]).await?;
        let table = |row: &Row| Table {
            name: row.get(0),
            live: count(row.get(1)),
            dead: count(row.get(2)),
            vacuumed: row.get::<_, Option<f64>>(3).map(seconds),
            autovacuum: row.get(4),
            begins_at: row.get(5),
        };
        Ok(rows.iter().map(table).collect())
    }

    /// Who keeps vacuum from its work, the oldest first.
    pub async fn holders(&self) -> Result<Vec<Holder>> {
        let rows = self.ask(&DIAGNOSE_HOLDERS, &[&MOST]).await?;
        let holder = |row: &Row| Holder {
            kind: match row.get(0) {
                "session" => HolderKind::Session,
                "prepared" => HolderKind::Prepared,
                "standby" => HolderKind::Standby,
                _ => HolderKind::Slot,
            },
            pid: row.get(1),
            name: row.get(2),
            owner: row.get(3),
            state: row.get(4),
            age: row.get::<_, Option<f64>>(5).map(seconds),
            transactions: row.get(6),
            retained: row.get::<_, Option<i64>>(7).map(count),
        };
        Ok(rows.iter().map(holder).collect())
    }

    /// How many connections are taken.
    pub async fn connections(&self) -> Result<Connections> {
        let row = one(self.ask(&DIAGNOSE_CONNECTIONS, &[]).await?)?;
        let [most, reserved, taken, ours] = [0, 1, 2, 3].map(|column| count(row.get(column)));
        Ok(Connections { most, reserved, taken, ours })
    }

    /// Whether a process hears what another one says.
    pub async fn listening(&self) -> Result<Listening> {
        listen::listening(&self.database).await
    }

    /// What this role may not do.
    pub async fn lacks(&self) -> Result<Vec<Lack>> {
        let rows = self.ask(&DIAGNOSE_PRIVILEGES, &[&MOST]).await?;
        Ok(rows.iter().map(|row| Lack { kind: row.get(0), name: row.get(1), privileges: row.get(2) }).collect())
    }

    /// Whether days have their places.
    pub async fn days(&self) -> Result<Vec<Days>> {
        let rows = self.ask(&DIAGNOSE_PARTITIONS, &[]).await?;
        let days =
            |row: &Row| Days { table: row.get(0), today: row.get(1), tomorrow: row.get(2), default_taken: row.get(3) };
        Ok(rows.iter().map(days).collect())
    }

    /// Who leads, who works, what waits.
    pub async fn standing(&self) -> Result<StoreSnapshot> {
        let connection = self.database.connection().await?;
        connection.begin(CAREFULLY).await?;
        let standing = standing(&connection).await;
        connection.rollback().await?;
        standing
    }

    async fn ask(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>> {
        let connection = self.database.connection().await?;
        connection.begin(CAREFULLY).await?;
        let rows = connection.query(statement, params).await;
        connection.rollback().await?;
        rows
    }
}

async fn standing(connection: &Connection<'_>) -> Result<StoreSnapshot> {
    let most = StoreSnapshot::MAX_ROWS as i64;
    let none: &[&str] = &[];
    let now = one(connection.query(&TIME, &[]).await?)?.get(0);
    let epoch = Epoch(one(connection.query(&TERM, &[]).await?)?.get(0));
    let nodes = connection.query(&NODES, &[&"", &most]).await?;
    let workers = connection.query(&WORKERS, &[&"", &most]).await?;
    let mut queues = inspect::Counted::read(&connection.query(&DEPTHS, &[&"", &most]).await?)?;
    if let Some([first, last]) = queues.ends() {
        queues.age(&connection.query(&OLDEST, &[&first, &last, &inspect::MAX_HOPS]).await?);
    }
    let lanes = connection.query(&LANES, &[&none, &none, &most]).await?;
    let dead = one(connection.query(&DIAGNOSE_DEAD, &[&(StoreSnapshot::MAX_DEAD as i64)]).await?)?;
    Ok(StoreSnapshot {
        now,
        epoch,
        nodes: nodes.iter().map(coordination::status).collect(),
        workers: workers.iter().map(worker::status).collect::<Result<_>>()?,
        queues: queues.queues(),
        lanes: lanes.iter().map(inspect::lane).collect(),
        dead: count(dead.get(0)),
    })
}

fn one(rows: Vec<Row>) -> Result<Row> {
    rows.into_iter().next().ok_or_else(|| StoreError::Backend("the database answered without a row".into()))
}

fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn seconds(n: f64) -> Duration {
    Duration::try_from_secs_f64(n).unwrap_or_default()
}
