//! Stores behind a pooler in transaction mode, and callers that are dropped before their call returns.

use std::time::{Duration, Instant};

use orchestrix_core::NewJob;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{Outcome, prelude::*};
use orchestrix_testkit::PgBouncer;

use crate::{
    invariants,
    jobs::*,
    lifecycle,
    locks::{LIMIT, until},
    support,
    wire::{Message, Recorder},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooled_store_keeps_no_state_on_a_connection() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let server = orchestrix_testkit::test_postgres().unwrap().split_once('@').unwrap().1;
    let recorder = Recorder::start(server);
    let store = PostgresStore::open(PostgresOptions::pooled(recorder.url(database.url()))).await.unwrap();
    lifecycle::run_all_verbs(&store, &client).await;

    let connections = recorder.connections();
    assert!(!connections.is_empty());
    for messages in connections {
        let mut parsed = false;
        for message in messages {
            match message {
                Message::Startup(parameters) => {
                    assert!(!parameters.iter().any(|name| name == "options"), "a pooler would refuse {parameters:?}");
                }
                Message::Parse { name, sql } => {
                    assert_eq!(name, "", "a named statement: {sql}");
                    assert_stateless(&sql);
                    parsed = true;
                }
                Message::Bind { statement } => {
                    assert_eq!(statement, "");
                    assert!(parsed, "bound to a statement of an earlier exchange");
                }
                Message::Query(sql) => assert_stateless(&sql),
                Message::Sync => parsed = false,
                Message::Other(_) => {}
            }
        }
    }
}

/// Asserts that a statement leaves no settings, locks, tables, subscriptions or cursors on the session.
fn assert_stateless(sql: &str) {
    let text = sql.to_uppercase();
    for word in ["LISTEN", "PG_ADVISORY_LOCK", "PG_TRY_ADVISORY", "TEMP TABLE", "TEMPORARY", "DECLARE ", "PREPARE "] {
        assert!(!text.contains(word) || text.contains("LANGUAGE PLPGSQL"), "{word} in {sql}");
    }
    let set = text.split(';').map(str::trim).find(|part| part.starts_with("SET ") && !part.starts_with("SET LOCAL "));
    assert_eq!(set, None, "in {sql}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_works_behind_pgbouncer_in_transaction_mode() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let bouncer = PgBouncer::start(orchestrix_testkit::test_postgres().unwrap(), 2).unwrap();
    let url = bouncer.url(database.name());
    let direct = PostgresOptions { startup_timeout: Duration::from_secs(1), ..PostgresOptions::new(&url) };
    assert!(PostgresStore::open(direct).await.is_err(), "the defaults need direct connections and should be refused");

    let store = PostgresStore::open(PostgresOptions::pooled(&url)).await.unwrap();
    lifecycle::run_all_verbs(&store, &client).await;
    // Many callers on two connections: every exchange may use another session.
    let crowd = |job: NewJob| NewJob { queue: queue("crowd"), ..job };
    let works = together((0..16).map(|i| {
        let store = store.clone();
        async move {
            for round in 0..10 {
                store.enqueue_job(crowd(keyed(&format!("one{i}.{round}")))).await.unwrap();
                store.enqueue_jobs(vec![crowd(keyed(&format!("many{i}.{round}"))), crowd(job("t"))]).await.unwrap();
                for claimed in claim(&store, 5).await {
                    assert!(finish(&store, claimed.token, Outcome::DONE).await.is_ok());
                }
            }
        }
    }));
    works.await;
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let sessions: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert!(sessions <= 2, "{sessions} sessions, more than the pooler has");
    // Some jobs committed behind a lane cursor, and are found by the next scan from the head.
    let begun = Instant::now();
    let sql = "SELECT count(*), max(lease_counter), min(lease_counter) FROM orchestrix.jobs WHERE queue = 'crowd'";
    loop {
        claim_all(&store).await;
        let row = client.query_one(sql, &[]).await.unwrap();
        let (jobs, most, fewest): (i64, i32, i32) = (row.get(0), row.get(1), row.get(2));
        assert_eq!((jobs, most), (480, 1), "every job exists and none was claimed twice");
        if fewest == 1 {
            break;
        }
        assert!(begun.elapsed() < LIMIT, "a job was never claimed");
    }
    invariants::assert_consistent(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_works_on_direct_connections() {
    let (store, database) = support::store().await;
    lifecycle::run_all_verbs(&store, &support::connect(database.url()).await).await;
}

const IN_TRANSACTION: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'orchestrix' AND xact_start IS NOT NULL AND state <> 'active'";

async fn drop_callers(options: PostgresOptions) {
    let store =
        PostgresStore::open(PostgresOptions { connections: 3, listen: false, ..options.clone() }).await.unwrap();
    let client = support::connect(&options.url).await;
    let parent = enqueue(&store, job("parent")).await;
    let (mut dropped, mut answered) = (0, 0);
    for round in 0..150 {
        // Keys and parents make it a transaction of several statements.
        let batch: Vec<NewJob> = (0..20)
            .map(|i| NewJob {
                queue: queue(&format!("r{round}")),
                idempotency_key: keyed(&format!("{round}.{i}")).idempotency_key,
                ..child_of(&[parent])
            })
            .collect();
        // From a quarter of a millisecond to a quarter of a second, on a logarithmic scale.
        let timeout = Duration::from_secs_f64(250e-6 * 1000_f64.powf(rand::random()));
        match tokio::time::timeout(timeout, store.enqueue_jobs(batch)).await {
            Ok(answer) => {
                answer.expect("valid jobs");
                answered += 1;
            }
            Err(_) => dropped += 1,
        }
    }
    println!("{dropped} dropped, {answered} answered");
    assert!(dropped > 0 && answered > 0, "the test needs both");
    until(&client, "no transaction is left open", |n| n == 0, IN_TRANSACTION).await;
    let rows = client.query("SELECT queue, count(*) FROM orchestrix.job WHERE job_type = 'child' GROUP BY queue", &[]);
    for row in rows.await.unwrap() {
        assert_eq!(row.get::<_, i64>(1), 20, "half a batch in {}", row.get::<_, &str>(0));
    }
    // Every connection of the pool still works.
    let works = together((0..12).map(|i| {
        let store = store.clone();
        async move { store.enqueue_jobs(vec![keyed(&format!("after{i}")); 1]).await }
    }));
    assert!(works.await.iter().all(Result::is_ok));
    invariants::assert_consistent(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_caller_leaves_no_partial_transaction_and_no_broken_connection() {
    let database = support::database();
    drop_callers(PostgresOptions::new(database.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_caller_of_a_pooled_store_leaves_no_partial_transaction() {
    let database = support::database();
    drop_callers(PostgresOptions::pooled(database.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_whose_caller_was_dropped_is_atomic_and_does_not_affect_other_callers() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    for round in 0..100 {
        let other = store.clone();
        let waiting = tokio::spawn(async move { other.enqueue_job(keyed(&format!("stays{round}"))).await });
        let timeout = Duration::from_micros(rand::random_range(0..3_000));
        let _ = tokio::time::timeout(timeout, store.enqueue_job(keyed(&format!("goes{round}")))).await;
        waiting.await.unwrap().expect("callers that share the statement get an answer");
    }
    let sql = "SELECT count(*) FROM orchestrix.job j FULL JOIN orchestrix.idempotency k ON k.job_id = j.id
               WHERE j.id IS NULL OR k.job_id IS NULL";
    until(&client, "every key has its job", |n| n == 0, sql).await;
    let stayed: i64 = client
        .query_one("SELECT count(*) FROM orchestrix.idempotency WHERE key LIKE 'stays%'", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(stayed, 100);
}
