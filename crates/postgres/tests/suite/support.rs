//! Databases and stores for tests.

use std::thread;

use orchestrix_postgres::{PostgresOptions, PostgresStore, test_clock::DatabaseClock};
use orchestrix_testkit::TestDatabase;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// A fresh database for one test, without tables.
pub(crate) fn empty_database() -> TestDatabase {
    TestDatabase::create("store").expect("a private PostgreSQL")
}

/// A fresh, migrated database for one test.
pub(crate) fn database() -> TestDatabase {
    TestDatabase::create_migrated("store", |url| block_on(migrate(url))).expect("a private PostgreSQL")
}

/// The same with a [`DatabaseClock`], whose functions the migrations must find.
pub(crate) fn database_with_clock() -> TestDatabase {
    let prepare = async |url: &str| {
        let (_clock, url) = DatabaseClock::install(url, None).await.expect("a clock");
        migrate(&url).await;
    };
    TestDatabase::create_from("clock", "store", |url| block_on(prepare(url))).expect("a private PostgreSQL")
}

async fn migrate(url: &str) {
    PostgresStore::open(PostgresOptions { listen: false, ..PostgresOptions::new(url) }).await.expect("a store");
}

/// Runs a future from code that a runtime already executes.
fn block_on(future: impl Future<Output = ()> + Send) {
    let run = || Runtime::new().expect("a runtime").block_on(future);
    thread::scope(|scope| scope.spawn(run).join()).expect("a template");
}

/// A plain connection to the same database.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// A store on a fresh database, on the server's clock.
pub(crate) async fn store() -> (PostgresStore, TestDatabase) {
    let database = database();
    let store = PostgresStore::open(PostgresOptions::new(database.url())).await.expect("a store");
    (store, database)
}

/// Disables autovacuum for every table: the server gathers no statistics and removes no dead rows by itself.
pub(crate) async fn disable_autovacuum(client: &Client) {
    client
        .batch_execute(
            "DO $$ DECLARE name regclass; BEGIN
                 FOR name IN SELECT oid FROM pg_class WHERE relnamespace = 'orchestrix'::regnamespace AND relkind = 'r' LOOP
                     EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', name);
                 END LOOP;
             END $$",
        )
        .await
        .unwrap();
}
