//! Databases and stores for tests.

use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::{Client, NoTls};

/// A fresh database for one test.
pub(crate) fn database() -> TestDatabase {
    TestDatabase::create("store").expect("a private PostgreSQL")
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
