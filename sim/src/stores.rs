//! The stores that are compared, and how each is made afresh.

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

/// Makes stores of one kind.
#[async_trait]
pub trait Source: Send + Sync {
    /// What the kind is called.
    fn name(&self) -> &'static str;

    /// An empty store whose clock shows `start`.
    async fn fresh(&self, start: Timestamp) -> Harness;
}

/// Every kind there is. The first is what the others are held against.
pub async fn all() -> Vec<Box<dyn Source>> {
    vec![Box::new(Memory), Box::new(Sqlite), Box::new(Postgres::prepare().await)]
}

/// Midnight of this machine's day. PostgreSQL files jobs by the day in their ids and makes days ahead of time, so virtual time begins
/// where the template did.
pub fn start() -> Timestamp {
    const DAY: i64 = 24 * 3600;
    Timestamp::from_second(Timestamp::now().as_second() / DAY * DAY).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Stores in memory.
#[derive(Debug)]
pub struct Memory;

#[async_trait]
impl Source for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn fresh(&self, start: Timestamp) -> Harness {
        let clock = Arc::new(ManualClock::new(start));
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        Harness { store, clock: Box::new(clock), guard: Box::new(()) }
    }
}

/// Stores in files of their own.
#[derive(Debug)]
pub struct Sqlite;

#[async_trait]
impl Source for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn fresh(&self, start: Timestamp) -> Harness {
        let clock = Arc::new(ManualClock::new(start));
        let folder = Folder::create();
        let options = SqliteOptions { clock: clock.clone(), ..SqliteOptions::new(folder.0.join("jobs.db")) };
        let store = Arc::new(SqliteStore::open(options).await.expect("a store"));
        Harness { store, clock: Box::new(clock), guard: Box::new(folder) }
    }
}

/// A folder for one store, removed with this value.
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
            eprintln!("the folder {} was not removed: {error}", self.0.display());
        }
    }
}

/// Stores on PostgreSQL: copies of one migrated database, emptied and used again. Emptying takes a tenth of the time of
/// copying, which matters to whoever needs hundreds of stores to cut a sequence down.
#[derive(Debug)]
pub struct Postgres {
    template: TestDatabase,
    /// The tables of the template.
    tables: String,
    idle: Arc<Mutex<Vec<Copy>>>,
}

/// Empties every table but the list of migrations, lets nobody have led, and names all tables that there are.
const EMPTY: &str = "
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'orchestrix' AND tablename NOT IN ('migration', 'leader', 'leader_term') LOOP
            EXECUTE format('DELETE FROM orchestrix.%I', name);
        END LOOP;
    END $$;
    UPDATE orchestrix.leader SET epoch = 0;
    UPDATE orchestrix.leader_term SET epoch = 0, node = NULL, ends_at = '-infinity';
    SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE schemaname = 'orchestrix'";

impl Postgres {
    /// Migrates the database that will be copied.
    pub async fn prepare() -> Self {
        let template = TestDatabase::create("sim").expect("a private PostgreSQL");
        // Partitions are made for the days around now, so it has to be our now already.
        let (_clock, url) = DatabaseClock::install(template.url(), Some(start())).await.expect("a clock");
        PostgresStore::open(PostgresOptions { listen: false, ..PostgresOptions::new(url) }).await.expect("a store");
        let tables = psql(template.url(), EMPTY).expect("an empty database");
        Self { template, tables, idle: Arc::default() }
    }

    /// An empty copy: one that nobody uses any more, if its tables are still those of the template (pruning makes and drops
    /// partitions), or else a new one.
    fn copy(&self) -> Copy {
        loop {
            let Some(copy) = lock(&self.idle).pop() else { return Copy::create(self.template.name()) };
            if psql(&copy.url(), EMPTY).expect("an empty database") == self.tables {
                return copy;
            }
        }
    }
}

#[async_trait]
impl Source for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    async fn fresh(&self, start: Timestamp) -> Harness {
        let copy = self.copy();
        let (clock, url) = DatabaseClock::install(&copy.url(), Some(start)).await.expect("a clock");
        let options = PostgresOptions {
            connections: 4,
            listen: false,
            migrate: false,
            ids: clock.ids(),
            ..PostgresOptions::new(url)
        };
        let store = PostgresStore::open(options).await.expect("a store");
        let guard = Lent { copy: Some(copy), idle: self.idle.clone() };
        Harness { store: Arc::new(store), clock: Box::new(clock), guard: Box::new(guard) }
    }
}

/// A copy that is in use, and where it goes afterwards.
struct Lent {
    copy: Option<Copy>,
    idle: Arc<Mutex<Vec<Copy>>>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        lock(&self.idle).extend(self.copy.take());
    }
}

/// A copy of a database, dropped with this value.
#[derive(Debug)]
struct Copy(String);

impl Copy {
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

impl Drop for Copy {
    fn drop(&mut self) {
        if let Err(error) = psql(&maintenance(), &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.0)) {
            eprintln!("the database {} was not dropped: {error}", self.0);
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
