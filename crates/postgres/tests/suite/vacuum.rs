//! Vacuum of the tables that churn, without the help of autovacuum.
//!
//! Sessions report dead rows up to a second late, so tests ask for a vacuum until it has happened.

use std::time::{Duration, Instant};

use orchestrix_core::JobState;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{Outcome, OutcomeReport, prelude::*};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::Client;

use crate::{
    invariants,
    jobs::*,
    locks::{LIMIT, LockHolder},
    support,
};

/// Vacuums of the jobs' table that a session requested.
const VACUUMS: &str = "SELECT pg_stat_get_vacuum_count('orchestrix.job'::regclass)";
const SIZE: &str = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
    WHERE c.relnamespace = 'orchestrix'::regnamespace AND c.relname IN ('job', 'ready', 'depth_delta', 'depth', 'settled')";
const DEAD: &str = "SELECT pg_stat_get_dead_tuples('orchestrix.job'::regclass)";
/// Holds all rows that die from now on.
const SNAPSHOT: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1";
/// Jobs of one round. Each leaves two dead rows in the jobs' table.
const ROUND: usize = 2_000;
/// The pause after the first vacuum in vain.
const PAUSE: Duration = Duration::from_millis(500);

/// A store on a database without autovacuum. One connection, so that the next statement reports what the ones before
/// it did.
async fn scene() -> (PostgresStore, TestDatabase, Client) {
    let database = support::database();
    let store = PostgresStore::open(PostgresOptions { connections: 1, ..options(database.url()) }).await.unwrap();
    let client = support::connect(database.url()).await;
    support::disable_autovacuum(&client).await;
    (store, database, client)
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Enqueues, claims and completes jobs.
async fn complete_round(store: &PostgresStore) {
    let tokens = start_many(store, &job("t"), ROUND).await;
    let outcomes = tokens.into_iter().map(|token| OutcomeReport { token, outcome: Outcome::DONE }).collect();
    assert!(store.finish_attempts(outcomes).await.unwrap().iter().all(|state| *state == Ok(JobState::Completed)));
}

/// Waits until the dead rows of a round are reported.
async fn until_due(store: &PostgresStore, client: &Client) {
    let begun = Instant::now();
    while number(client, DEAD).await < 2 * ROUND as i64 {
        assert!(begun.elapsed() < LIMIT, "the dead rows were not reported within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        store.now().await.unwrap();
    }
}

/// Asks for vacuums until one of the jobs' table has ended. Returns how many tables it cleaned.
async fn vacuum_jobs(store: &PostgresStore, client: &Client) -> usize {
    let (begun, before) = (Instant::now(), number(client, VACUUMS).await);
    let mut cleaned = 0;
    while number(client, VACUUMS).await == before {
        assert!(begun.elapsed() < LIMIT, "no vacuum within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        cleaned += store.vacuum_tables().await.unwrap();
    }
    cleaned
}

#[tokio::test]
async fn the_tables_of_a_steady_flow_do_not_grow_between_vacuums() {
    let (store, _database, client) = scene().await;
    complete_round(&store).await;
    let first = number(&client, SIZE).await;
    for _ in 0..3 {
        assert!(vacuum_jobs(&store, &client).await > 0);
        complete_round(&store).await;
    }
    let last = number(&client, SIZE).await;
    assert!(last < first * 3 / 2, "{first} bytes after one round, {last} after four");
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn a_table_that_filled_is_counted_and_one_that_was_drained_is_shrunk() {
    let (store, _database, client) = scene().await;
    const JOBS: i64 = 40_000;
    const EXPECTED: &str = "SELECT reltuples::bigint FROM pg_class WHERE oid = 'orchestrix.job'::regclass";
    const PAGES: &str = "SELECT pg_relation_size('orchestrix.job') / current_setting('block_size')::bigint";
    client.batch_execute("VACUUM orchestrix.job").await.unwrap();
    assert_eq!(number(&client, EXPECTED).await, 0);
    for _ in 0..JOBS / 1_000 {
        store.enqueue_jobs(vec![job("t"); 1_000]).await.unwrap();
    }
    assert!(vacuum_jobs(&store, &client).await > 0);
    let counted = number(&client, EXPECTED).await;
    assert!(counted > JOBS / 2, "the planner expects {counted} of {JOBS} rows");
    client.batch_execute("DELETE FROM orchestrix.job").await.unwrap();
    let full = number(&client, PAGES).await;
    assert!(full > 1_000);
    vacuum_jobs(&store, &client).await;
    assert_eq!(number(&client, PAGES).await, full, "in a steady flow the pages would be needed again at once");
    vacuum_jobs(&store, &client).await;
    assert_eq!(number(&client, PAGES).await, 0);
}

#[tokio::test]
async fn few_dead_rows_are_left_to_autovacuum() {
    let (store, _database, client) = scene().await;
    let tokens = start_many(&store, &job("t"), 100).await;
    let outcomes = tokens.into_iter().map(|token| OutcomeReport { token, outcome: Outcome::DONE }).collect();
    store.finish_attempts(outcomes).await.unwrap();
    let begun = Instant::now();
    while number(&client, DEAD).await < 200 {
        assert!(begun.elapsed() < LIMIT, "the dead rows were not reported within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(store.vacuum_tables().await.unwrap(), 0);
    }
    assert_eq!(store.vacuum_tables().await.unwrap(), 0);
    assert_eq!(number(&client, VACUUMS).await, 0);
}

#[tokio::test]
async fn a_vacuum_in_vain_is_not_repeated_at_once_and_succeeds_after_the_old_snapshot() {
    let (store, database, client) = scene().await;
    let unfinished = start(&store, job("t")).await;
    let snapshot = LockHolder::with(database.url(), SNAPSHOT).await;
    complete_round(&store).await;
    let begun = Instant::now();
    assert_eq!(vacuum_jobs(&store, &client).await, 0, "the snapshot holds all dead rows");
    let vacuums = number(&client, VACUUMS).await;
    for _ in 0..3 {
        assert_eq!(store.vacuum_tables().await.unwrap(), 0);
    }
    let repeated = number(&client, VACUUMS).await - vacuums;
    // A machine that is slower than the pause shows nothing.
    assert!(repeated == 0 || begun.elapsed() > PAUSE, "{repeated} vacuums followed one in vain at once");
    snapshot.rollback().await;
    let begun = Instant::now();
    while vacuum_jobs(&store, &client).await == 0 {
        assert!(begun.elapsed() < LIMIT, "no vacuum removed the dead rows within {LIMIT:?}");
    }
    assert!(number(&client, DEAD).await < ROUND as i64);
    assert_eq!(state(&store, unfinished.id()).await, JobState::Running);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn a_locked_table_is_skipped_and_vacuumed_as_soon_as_it_is_free() {
    let (store, database, client) = scene().await;
    complete_round(&store).await;
    // What autovacuum holds.
    let holder = LockHolder::with(database.url(), "LOCK TABLE orchestrix.job IN SHARE UPDATE EXCLUSIVE MODE").await;
    until_due(&store, &client).await;
    assert_eq!(store.vacuum_tables().await.unwrap(), 0);
    assert_eq!(number(&client, VACUUMS).await, 0);
    holder.rollback().await;
    assert_eq!(store.vacuum_tables().await.unwrap(), 1);
    assert_eq!(number(&client, VACUUMS).await, 1);
}

#[tokio::test]
async fn a_vacuum_that_the_statement_timeout_cancels_is_not_repeated_at_once() {
    let (store, database, client) = scene().await;
    let timeout = Duration::from_secs(3);
    // The server sleeps for 0.1 s at every page.
    let slow = PostgresStore::open(PostgresOptions {
        connections: 1,
        statement_timeout: timeout,
        ..options(&format!("{}?options=-c%20vacuum_cost_delay%3D100%20-c%20vacuum_cost_limit%3D1", database.url()))
    })
    .await
    .unwrap();
    complete_round(&store).await;
    until_due(&store, &client).await;
    let begun = Instant::now();
    assert_eq!(slow.vacuum_tables().await.unwrap(), 0);
    assert!(begun.elapsed() >= timeout, "the vacuum was not cancelled");
    let begun = Instant::now();
    assert_eq!(slow.vacuum_tables().await.unwrap(), 0);
    assert!(begun.elapsed() < timeout, "the vacuum was repeated at once");
    assert_eq!(number(&client, VACUUMS).await, 0);
}

#[tokio::test]
async fn only_tables_that_the_role_may_vacuum_are_listed() {
    let (_store, _database, client) = scene().await;
    let listed = async || {
        let tables: [&str; 5] = ["job", "ready", "depth_delta", "depth", "settled"];
        client.query(include_str!("../../queries/churning_tables.sql"), &[&&tables[..]]).await.unwrap().len()
    };
    assert_eq!(listed().await, 5);
    // A role of the server that owns nothing.
    client.batch_execute("SET ROLE pg_monitor").await.unwrap();
    assert_eq!(listed().await, 0);
}

#[tokio::test]
async fn partitions_are_analyzed_by_a_small_sample_old_and_new_ones() {
    let (_store, _database, client) = scene().await;
    client.batch_execute("SELECT orchestrix.make_partitions(current_date - 20, current_date - 20)").await.unwrap();
    let others = "SELECT count(*) FROM pg_attribute a JOIN pg_inherits i ON i.inhrelid = a.attrelid
        JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'
        WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attstattarget <> 10";
    assert_eq!(number(&client, others).await, 0);
}
