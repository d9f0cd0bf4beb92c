//! Databases and stores for tests.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::Timestamp;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::conformance::TestClock;
use orchestrix_testkit::TestDatabase;
use tokio_postgres::{Client, NoTls};

/// A database of a test's own.
pub(crate) fn database() -> TestDatabase {
    TestDatabase::create("store").expect("a private PostgreSQL")
}

/// A plain connection beside the store's.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// A store on a fresh database, on the database's own clock.
pub(crate) async fn store() -> (PostgresStore, TestDatabase) {
    let database = database();
    let store = PostgresStore::open(PostgresOptions::new(database.url())).await.expect("a store");
    (store, database)
}

/// A clock that the test sets: the store's statements say `now()`, and the search path makes that ours.
pub(crate) struct DatabaseClock(Arc<Client>);

impl DatabaseClock {
    /// Prepares `database`, and gives the URL that makes its connections use the clock.
    pub(crate) async fn install(database: &TestDatabase) -> (Self, String) {
        let client = connect(database.url()).await;
        client
            .batch_execute(
                "CREATE SCHEMA test_clock;
                 CREATE TABLE test_clock.reading (at timestamptz NOT NULL);
                 INSERT INTO test_clock.reading VALUES (date_trunc('milliseconds', pg_catalog.now()));
                 CREATE FUNCTION test_clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM test_clock.reading';",
            )
            .await
            .expect("a clock");
        let url = format!("{}?options=-csearch_path%3Dtest_clock%2Cpg_catalog%2Cpublic", database.url());
        (Self(Arc::new(client)), url)
    }
}

#[async_trait]
impl TestClock for DatabaseClock {
    async fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("a short time");
        self.0
            .execute("UPDATE test_clock.reading SET at = at + $1 * interval '1 microsecond'", &[&(micros as f64)])
            .await
            .expect("the clock moves");
    }

    async fn now(&self) -> Timestamp {
        self.0.query_one("SELECT at FROM test_clock.reading", &[]).await.expect("the clock").get(0)
    }
}
