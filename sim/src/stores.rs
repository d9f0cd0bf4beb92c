//! The stores that are compared, and how to create an empty one of each kind.

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use orchestrix_conformance::Harness;
use orchestrix_core::Timestamp;
use orchestrix_memory::MemoryStore;
use orchestrix_postgres::{PostgresOptions, PostgresStore, test_clock::DatabaseClock};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::ManualClock;
use orchestrix_testkit::{TestDatabase, psql, test_postgres};

/// Creates stores of one kind.
#[async_trait]
pub trait StoreFactory: Send + Sync {
    /// The name of the kind in reports.
    fn name(&self) -> &'static str;

    /// Creates an empty store whose clock shows `start`.
    async fn create(&self, start: Timestamp) -> Harness;
}

/// All kinds of stores.
pub async fn all() -> Vec<Box<dyn StoreFactory>> {
    vec![Box::new(Memory), Box::new(Sqlite)]
}

/// The start of virtual time: midnight of today. PostgreSQL partitions jobs by the day in their ids and creates
/// partitions ahead of time, so the clock must start on the day on which the template database was created.
pub fn start() -> Timestamp {
    const DAY: i64 = 24 * 3600;
    Timestamp::from_second(Timestamp::now().as_second() / DAY * DAY).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Stores in memory.
#[derive(Debug)]
pub struct Memory;

#[async_trait]
impl StoreFactory for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn create(&self, start: Timestamp) -> Harness {
        let clock = Arc::new(ManualClock::new(start));
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        Harness { store, clock: Box::new(clock), guard: Box::new(()) }
    }
}

/// Stores in SQLite files, one each.
#[derive(Debug)]
pub struct Sqlite;

#[async_trait]
impl StoreFactory for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn create(&self, start: Timestamp) -> Harness {
        let clock = Arc::new(ManualClock::new(start));
        let folder = Folder::create();
        let file = folder.0.join("jobs.db");
        let options = SqliteOptions { clock: clock.clone(), first_turn: 0, ..SqliteOptions::new(file) };
        let store = Arc::new(SqliteStore::open(options).await.expect("a store"));
        Harness { store, clock: Box::new(clock), guard: Box::new(folder) }
    }
}

/// The folder of one store, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Self {
        let folder = env::temp_dir().join(format!("orchestrix-sim-{}-{:016x}", process::id(), rand::random::<u64>()));
        fs::create_dir(&folder).expect("a folder for a store");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("could not remove the folder {}: {error}", self.0.display());
        }
    }
}

/// Stores on PostgreSQL: copies of one migrated database, emptied and reused. Shrinking needs hundreds of stores, and
/// emptying a copy takes a tenth of the time of creating one.
#[derive(Debug)]
pub struct Postgres {
    template: TestDatabase,
    /// The tables of the template.
    tables: String,
    idle: Arc<Mutex<Vec<DatabaseCopy>>>,
}

/// Empties every table except the migrations, resets leadership, and returns the names of all tables.
const EMPTY: &str = "
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'orchestrix'
            AND tablename NOT IN ('migration', 'leader', 'leader_term') LOOP
            EXECUTE format('DELETE FROM orchestrix.%I', name);
        END LOOP;
    END $$;
    UPDATE orchestrix.leader SET epoch = 0;
    UPDATE orchestrix.leader_term SET epoch = 0, node = NULL, ends_at = '-infinity';
    SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE schemaname = 'orchestrix'";

impl Postgres {
    /// Creates and migrates the template database.
    pub async fn prepare() -> Self {
        let template = TestDatabase::create("sim").expect("a private PostgreSQL");
        // Migrations create partitions for the days around now, so the virtual clock must be set before.
        let (_clock, url) = DatabaseClock::install(template.url(), Some(start())).await.expect("a clock");
        PostgresStore::open(PostgresOptions { listen: false, ..PostgresOptions::new(url) }).await.expect("a store");
        let tables = psql(template.url(), EMPTY).expect("an empty database");
        Self { template, tables, idle: Arc::default() }
    }

    /// An empty copy: an idle one whose tables are still those of the template (pruning creates and drops partitions),
    /// or a new one.
    fn copy(&self) -> DatabaseCopy {
        loop {
            let Some(copy) = lock(&self.idle).pop() else { return DatabaseCopy::create(self.template.name()) };
            if psql(&copy.url(), EMPTY).expect("an empty database") == self.tables {
                return copy;
            }
        }
    }
}

#[async_trait]
impl StoreFactory for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    async fn create(&self, start: Timestamp) -> Harness {
        let copy = self.copy();
        let (clock, url) = DatabaseClock::install(&copy.url(), Some(start)).await.expect("a clock");
        let options = PostgresOptions {
            connections: 4,
            listen: false,
            migrate: false,
            ids: clock.ids(),
            first_turn: 0,
            ..PostgresOptions::new(url)
        };
        let store = PostgresStore::open(options).await.expect("a store");
        let guard = PooledDatabase { copy: Some(copy), idle: self.idle.clone() };
        Harness { store: Arc::new(store), clock: Box::new(clock), guard: Box::new(guard) }
    }
}

/// A copy in use. Dropping it returns the copy to the pool.
struct PooledDatabase {
    copy: Option<DatabaseCopy>,
    idle: Arc<Mutex<Vec<DatabaseCopy>>>,
}

impl Drop for PooledDatabase {
    fn drop(&mut self) {
        lock(&self.idle).extend(self.copy.take());
    }
}

/// A copy of the template database, deleted when it is dropped.
#[derive(Debug)]
struct DatabaseCopy(String);

impl DatabaseCopy {
    fn create(template: &str) -> Self {
        let copy = Self(format!("{template}_{:08x}", rand::random::<u32>()));
        let sql = format!("CREATE DATABASE {} TEMPLATE {template}", copy.0);
        psql(&maintenance(), &sql).expect("a copy of a database");
        copy
    }

    fn url(&self) -> String {
        format!("{}/{}", server(), self.0)
    }
}

impl Drop for DatabaseCopy {
    fn drop(&mut self) {
        if let Err(error) = psql(&maintenance(), &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.0)) {
            eprintln!("could not drop the database {}: {error}", self.0);
        }
    }
}

fn server() -> &'static str {
    test_postgres().expect("the server of the template")
}

fn maintenance() -> String {
    format!("{}/postgres", server())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
