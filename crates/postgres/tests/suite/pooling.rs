//! Behind a pooler in transaction mode, and callers that go away half way through.

use std::time::{Duration, Instant};

use orchestrix_core::NewJob;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{Outcome, prelude::*};
use orchestrix_testkit::PgBouncer;

use crate::{
    books,
    jobs::*,
    life,
    locks::{LIMIT, until},
    support,
    wire::{Message, Recorder},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooled_store_leaves_nothing_on_a_connection_that_a_later_call_would_miss() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let server = orchestrix_testkit::test_postgres().unwrap().split_once('@').unwrap().1;
    let recorder = Recorder::start(server);
    let store = PostgresStore::open(PostgresOptions::pooled(recorder.url(database.url()))).await.unwrap();
    life::lead(&store, &client).await;

    let connections = recorder.connections();
    assert!(!connections.is_empty());
    for messages in connections {
        let mut parsed = false;
        for message in messages {
            match message {
                Message::Startup(parameters) => {
                    assert!(!parameters.iter().any(|name| name == "options"), "a pooler refuses {parameters:?}");
                }
                Message::Parse { name, sql } => {
                    assert_eq!(name, "", "kept for a later call: {sql}");
                    assert_stateless(&sql);
                    parsed = true;
                }
                Message::Bind { statement } => {
                    assert_eq!(statement, "");
                    assert!(parsed, "relies on a statement of an earlier exchange");
                }
                Message::Query(sql) => assert_stateless(&sql),
                Message::Sync => parsed = false,
                Message::Other(_) => {}
            }
        }
    }
}

/// Fails if a text leaves something on the session: settings, locks, tables, subscriptions, cursors.
fn assert_stateless(sql: &str) {
    let text = sql.to_uppercase();
    for word in ["LISTEN", "PG_ADVISORY_LOCK", "PG_TRY_ADVISORY", "TEMP TABLE", "TEMPORARY", "DECLARE ", "PREPARE "] {
        assert!(!text.contains(word) || text.contains("LANGUAGE PLPGSQL"), "{word} in {sql}");
    }
    let set = text.split(';').map(str::trim).find(|part| part.starts_with("SET ") && !part.starts_with("SET LOCAL "));
    assert_eq!(set, None, "in {sql}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_behind_pgbouncer_in_transaction_mode_leads_its_whole_life() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let bouncer = PgBouncer::start(orchestrix_testkit::test_postgres().unwrap(), 2).unwrap();
    let url = bouncer.url(database.name());
    let direct = PostgresOptions { startup_timeout: Duration::from_secs(1), ..PostgresOptions::new(&url) };
    assert!(PostgresStore::open(direct).await.is_err(), "what needs connections of its own is refused, not broken");

    let store = PostgresStore::open(PostgresOptions::pooled(&url)).await.unwrap();
    life::lead(&store, &client).await;
    // Many at once on two connections: every exchange may meet another session.
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
    assert!(sessions <= 2, "{sessions} sessions are not behind the pooler");
    // Some were recorded behind the place that others had reached by then, and are found by looking again.
    let begun = Instant::now();
    let sql = "SELECT count(*), max(lease_counter), min(lease_counter) FROM orchestrix.jobs WHERE queue = 'crowd'";
    loop {
        claim_all(&store).await;
        let row = client.query_one(sql, &[]).await.unwrap();
        let (jobs, most, fewest): (i64, i32, i32) = (row.get(0), row.get(1), row.get(2));
        assert_eq!((jobs, most), (480, 1), "all are there, and none was claimed twice");
        if fewest == 1 {
            break;
        }
        assert!(begun.elapsed() < LIMIT, "a job is never found");
    }
    books::assert_balanced(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_its_own_connections_leads_the_same_life() {
    let (store, database) = support::store().await;
    life::lead(&store, &support::connect(database.url()).await).await;
}

const IN_TRANSACTION: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'orchestrix' AND xact_start IS NOT NULL AND state <> 'active'";

async fn callers_that_go_away(options: PostgresOptions) {
    let store =
        PostgresStore::open(PostgresOptions { connections: 3, listen: false, ..options.clone() }).await.unwrap();
    let client = support::connect(&options.url).await;
    let parent = enqueue(&store, job("parent")).await;
    let (mut gone, mut answered) = (0, 0);
    for round in 0..150 {
        // Keys and parents make it a transaction of several statements.
        let batch: Vec<NewJob> = (0..20)
            .map(|i| NewJob {
                queue: queue(&format!("r{round}")),
                idempotency_key: keyed(&format!("{round}.{i}")).idempotency_key,
                ..child_of(&[parent])
            })
            .collect();
        // From a quarter of a millisecond to a quarter of a second, each length as likely as twice it.
        let patience = Duration::from_secs_f64(250e-6 * 1000_f64.powf(rand::random()));
        match tokio::time::timeout(patience, store.enqueue_jobs(batch)).await {
            Ok(answer) => {
                answer.expect("valid jobs");
                answered += 1;
            }
            Err(_) => gone += 1,
        }
    }
    println!("{gone} went away, {answered} were answered");
    assert!(gone > 0 && answered > 0, "a race needs both");
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
    books::assert_balanced(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_leaves_no_half_transaction_and_no_broken_connection() {
    let database = support::database();
    callers_that_go_away(PostgresOptions::new(database.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_from_a_pooled_store_leaves_no_half_transaction() {
    let database = support::database();
    callers_that_go_away(PostgresOptions::pooled(database.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_whose_caller_went_away_is_recorded_or_not_and_harms_nobody() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    for round in 0..100 {
        let ours = store.clone();
        let waiting = tokio::spawn(async move { ours.enqueue_job(keyed(&format!("stays{round}"))).await });
        let patience = Duration::from_micros(rand::random_range(0..3_000));
        let _ = tokio::time::timeout(patience, store.enqueue_job(keyed(&format!("goes{round}")))).await;
        waiting.await.unwrap().expect("whoever shares its statement is answered");
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
