//! Hints from one process to another, and doing without them.

use std::time::Duration;

use orchestrix_core::{NewJob, Start};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{Fence, Wakeup, Wakeups, prelude::*};
use tokio_postgres::Client;

use crate::{
    jobs::*,
    locks::{LIMIT, until},
    support,
};

const LISTENING: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN orchestrix' AND state = 'idle'";

/// A store that hears, and a subscription from after it began to.
async fn listening(url: &str, client: &Client) -> (PostgresStore, Wakeups) {
    let store = PostgresStore::open(PostgresOptions { listen: true, ..options(url) }).await.unwrap();
    let mut wakeups = store.job_wakeups();
    until(client, "the store listens", |n| n == 1, LISTENING).await;
    // The beginning of a connection is a hint itself, given just before or just after the subscription.
    while let Ok(wakeup) = tokio::time::timeout(Duration::from_millis(200), wakeups.next()).await {
        assert_eq!(wakeup, Wakeup::Anything);
    }
    (store, wakeups)
}

async fn next(wakeups: &mut Wakeups) -> Wakeup {
    tokio::time::timeout(LIMIT, wakeups.next()).await.expect("a wake-up")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_enqueued_by_one_store_wakes_the_subscribers_of_another() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (hearing, mut wakeups) = listening(database.url(), &client).await;
    let telling = open(database.url()).await;
    let id = enqueue(&telling, NewJob { queue: queue("mail"), ..job("t") }).await;
    assert_eq!(next(&mut wakeups).await, Wakeup::Queue(queue("mail")));
    let claimed = claim(&hearing, 10).await;
    assert_eq!(claimed.len(), 1, "who was woken finds the job");
    assert_eq!(claimed[0].id(), id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_flushed_and_dropped_has_told_of_its_jobs() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (_hearing, mut wakeups) = listening(database.url(), &client).await;
    for n in 0..10 {
        let telling = open(database.url()).await;
        let name = queue(&format!("mail-{n}"));
        enqueue(&telling, NewJob { queue: name.clone(), ..job("t") }).await;
        telling.flush().await;
        drop(telling);
        assert_eq!(next(&mut wakeups).await, Wakeup::Queue(name));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_promoted_by_one_store_wakes_the_subscribers_of_another() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (_hearing, mut wakeups) = listening(database.url(), &client).await;
    let telling = open(database.url()).await;
    let later = Start::After(Duration::from_millis(1));
    enqueue(&telling, NewJob { queue: queue("later"), start: later, ..job("t") }).await;
    while telling.promote_jobs(Fence::NONE, 10).await.unwrap().count == 0 {}
    assert_eq!(next(&mut wakeups).await, Wakeup::Queue(queue("later")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_queues_than_one_notification_can_name_wake_everybody() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (_hearing, mut wakeups) = listening(database.url(), &client).await;
    let telling = open(database.url()).await;
    let jobs = (0..200).map(|i| NewJob { queue: queue(&format!("{i:0>100}")), ..job("t") });
    telling.enqueue_jobs(jobs.collect()).await.unwrap();
    // What gathered before the rest may be told by name.
    while next(&mut wakeups).await != Wakeup::Anything {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_listening_connection_a_job_is_found_by_polling() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let deaf = open(database.url()).await;
    assert!(claim(&deaf, 1).await.is_empty());
    let telling = open(database.url()).await;
    let id = enqueue(&telling, job("t")).await;
    let begun = std::time::Instant::now();
    assert_eq!(claim_soon(&deaf).await.id(), id);
    println!("found after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(2), "polling finds work within a second");
    assert_eq!(client.query_one(LISTENING, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wake_ups_come_again_after_the_listening_connection_was_cut() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (_hearing, mut wakeups) = listening(database.url(), &client).await;
    for round in 0..3 {
        let sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN orchestrix'";
        let old: i32 = client.query_one(sql, &[]).await.unwrap().get(0);
        client.execute("SELECT pg_terminate_backend($1)", &[&old]).await.unwrap();
        assert_eq!(next(&mut wakeups).await, Wakeup::Anything, "what was missed meanwhile is worth a look");
        let new: i32 = client.query_one(sql, &[]).await.unwrap().get(0);
        assert_ne!(new, old);
        let telling = open(database.url()).await;
        let name = queue(&format!("q{round}"));
        enqueue(&telling, NewJob { queue: name.clone(), ..job("t") }).await;
        assert_eq!(next(&mut wakeups).await, Wakeup::Queue(name));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_gone_leaves_no_session() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (store, _wakeups) = listening(database.url(), &client).await;
    enqueue(&store, job("t")).await;
    drop(store);
    let sql =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrix'";
    until(&client, "its sessions have ended", |n| n == 0, sql).await;
}
