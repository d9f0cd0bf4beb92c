//! Opening a store: on an empty database, concurrently, before the server is up, and on an unknown schema.

use std::{
    env,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use orchestrix_postgres::{PostgresOptions, PostgresStore, SCHEMA_VERSION};
use orchestrix_store::{PageRequest, StoreError, prelude::*};
use orchestrix_testkit::PostgresServer;
use tokio_postgres::Client;

use crate::{invariants, jobs::*, support};

const URL: &str = "ORCHESTRIX_OPEN_URL";

async fn versions(client: &Client) -> Vec<i32> {
    let rows = client.query("SELECT version FROM orchestrix.migration ORDER BY version", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn all_versions() -> Vec<i32> {
    (1..=SCHEMA_VERSION).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_stores_opened_at_once_on_an_empty_database_all_work() {
    for _ in 0..5 {
        let database = support::empty_database();
        let url = database.url().to_owned();
        let stores = together((0..8).map(|_| {
            let url = url.clone();
            async move { PostgresStore::open(options(&url)).await }
        }));
        for store in stores.await {
            enqueue(&store.expect("a store"), job("t")).await;
        }
        let client = support::connect(database.url()).await;
        assert_eq!(versions(&client).await, all_versions());
        invariants::assert_consistent(&client).await;
    }
}

#[test]
fn eight_processes_opening_at_once_on_an_empty_database_all_work() {
    let database = support::empty_database();
    let open = || {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "migrations::open_and_enqueue", "--ignored"])
            .env(URL, database.url())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    };
    let processes: Vec<_> = (0..8).map(|_| open()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success(), "a process could not open its store");
    }
    assert_eq!(orchestrix_testkit::psql(database.url(), "SELECT count(*) FROM orchestrix.job").unwrap(), "8");
}

/// Not a test: the body of the processes above.
#[tokio::test]
#[ignore = "runs only as the process that another test starts"]
async fn open_and_enqueue() {
    let Ok(url) = env::var(URL) else { return };
    let store = PostgresStore::open(PostgresOptions::new(url)).await.expect("a store");
    enqueue(&store, job("t")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_waits_for_a_server_that_is_not_up() {
    let mut server = tokio::task::spawn_blocking(|| {
        let mut server = PostgresServer::builder().start().unwrap();
        server.stop().unwrap();
        server
    })
    .await
    .unwrap();
    let url = server.url("postgres");
    let mut opening = tokio::spawn(async move { PostgresStore::open(PostgresOptions::new(url)).await });
    let early = tokio::time::timeout(Duration::from_secs(1), &mut opening).await;
    assert!(early.is_err(), "it should still wait: {early:?}");
    let starting = tokio::task::spawn_blocking(move || {
        server.restart().unwrap();
        server
    });
    let store = opening.await.unwrap().expect("a store, once the server is up");
    enqueue(&store, job("t")).await;
    let server = starting.await.unwrap();
    tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
}

#[tokio::test]
async fn opening_fails_at_its_timeout_and_says_why() {
    // No server listens on port 1.
    let url = "postgres://postgres@127.0.0.1:1/postgres";
    let begun = Instant::now();
    let limit = Duration::from_millis(1500);
    let refused = PostgresStore::open(PostgresOptions { startup_timeout: limit, ..PostgresOptions::new(url) }).await;
    let waited = begun.elapsed();
    let Err(StoreError::Unavailable(reason)) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("onnection refused"), "{reason}");
    assert!(waited > limit / 2 && waited < limit + Duration::from_secs(10), "after {waited:?}");
}

#[tokio::test]
async fn an_invalid_url_or_a_missing_database_fails_at_once() {
    let limit = Duration::from_secs(30);
    let begun = Instant::now();
    let refused = PostgresStore::open(PostgresOptions::new("not a url")).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(reason)) if reason.contains("URL")), "{refused:?}");
    let database = support::empty_database();
    let missing = database.url().replace(database.name(), "there_is_no_such_database");
    let refused =
        PostgresStore::open(PostgresOptions { startup_timeout: limit, ..PostgresOptions::new(missing) }).await;
    let Err(error @ StoreError::Backend(_)) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("there_is_no_such_database"), "the reason is missing: {error}");
    assert!(begun.elapsed() < limit, "it should not wait: {error}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_unchanged() {
    let (store, database) = support::store().await;
    enqueue(&store, job("t")).await;
    drop(store);
    let client = support::connect(database.url()).await;
    client.execute("INSERT INTO orchestrix.migration (version, name) VALUES (999, 'future')", &[]).await.unwrap();
    let new = || PostgresOptions::new(database.url());
    let refusals = [
        PostgresStore::open(new()).await.map(drop),
        PostgresStore::open(PostgresOptions { migrate: false, ..new() }).await.map(drop),
        PostgresStore::pending_migrations(new()).await.map(drop),
    ];
    for refused in refusals {
        let Err(StoreError::Schema(reason)) = refused else { panic!("{refused:?}") };
        assert_eq!(
            reason,
            format!("the database has schema version 999, this program knows {SCHEMA_VERSION}: run a newer orchestrix")
        );
    }
    let mut expected = all_versions();
    expected.push(999);
    assert_eq!(versions(&client).await, expected);
}

#[tokio::test]
async fn without_migrate_an_empty_database_is_refused_and_left_empty() {
    let database = support::empty_database();
    let options = PostgresOptions { migrate: false, ..PostgresOptions::new(database.url()) };
    let refused = PostgresStore::open(options.clone()).await;
    let Err(StoreError::Schema(reason)) = refused else { panic!("{refused:?}") };
    assert_eq!(
        reason,
        format!("the database has schema version 0, this program needs {SCHEMA_VERSION}: apply the migrations first")
    );
    let client = support::connect(database.url()).await;
    let made: bool = client.query_one("SELECT to_regnamespace('orchestrix') IS NOT NULL", &[]).await.unwrap().get(0);
    assert!(!made);
    drop(open(database.url()).await);
    enqueue(&PostgresStore::open(options).await.expect("a store, now that the schema exists"), job("t")).await;
}

#[tokio::test]
async fn pending_migrations_are_counted_and_not_applied() {
    let database = support::empty_database();
    let options = || PostgresOptions::new(database.url());
    for _ in 0..2 {
        assert_eq!(PostgresStore::pending_migrations(options()).await.unwrap(), SCHEMA_VERSION as usize);
    }
    drop(PostgresStore::open(options()).await.unwrap());
    assert_eq!(PostgresStore::pending_migrations(options()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_failed_migration_leaves_nothing_and_can_be_repeated() {
    let database = support::empty_database();
    let client = support::connect(database.url()).await;
    // Conflicts with a table that the first migration creates late.
    client.batch_execute("CREATE SCHEMA orchestrix; CREATE TABLE orchestrix.worker ()").await.unwrap();
    let failed = PostgresStore::open(options(database.url())).await;
    assert!(matches!(failed, Err(StoreError::Backend(_))), "{failed:?}");
    assert_eq!(versions(&client).await, [0; 0]);
    let sql = "SELECT count(*) FROM pg_class WHERE relnamespace = 'orchestrix'::regnamespace AND relname IN ('job', 'history')";
    assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0, "half a schema was left");
    client.batch_execute("DROP TABLE orchestrix.worker").await.unwrap();
    let store = open(database.url()).await;
    enqueue(&store, job("t")).await;
    assert_eq!(store.queue_depths(&PageRequest::first(10)).await.unwrap().items.len(), 1);
}
