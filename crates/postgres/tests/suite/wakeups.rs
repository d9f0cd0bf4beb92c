//! Wake-ups from one process to another, and polling without them.

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

/// A listening store, and a subscription without the wake-ups of its start.
async fn listening(url: &str, client: &Client) -> (PostgresStore, Wakeups) {
    let store = PostgresStore::open(PostgresOptions { listen: true, ..options(url) }).await.unwrap();
    let mut wakeups = store.job_wakeups();
    until(client, "the store listens", |n| n == 1, LISTENING).await;
    // A new listening connection wakes all subscribers, just before or just after the subscription.
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
    let (listener, mut wakeups) = listening(database.url(), &client).await;
    let producer = open(database.url()).await;
    let id = enqueue(&producer, NewJob { queue: queue("mail"), ..job("t") }).await;
    assert_eq!(next(&mut wakeups).await, Wakeup::Queue(queue("mail")));
    let claimed = claim(&listener, 10).await;
    assert_eq!(claimed.len(), 1, "the woken store finds the job");
    assert_eq!(claimed[0].id(), id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_store_has_notified_others_before_it_is_dropped() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (_listener, mut wakeups) = listening(database.url(), &client).await;
    for n in 0..10 {
        let producer = open(database.url()).await;
        let name = queue(&format!("mail-{n}"));
        enqueue(&producer, NewJob { queue: name.clone(), ..job("t") }).await;
        producer.flush().await;
        drop(producer);
        assert_eq!(next(&mut wakeups).await, Wakeup::Queue(name));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_promoted_by_one_store_wakes_the_subscribers_of_another() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (_listener, mut wakeups) = listening(database.url(), &client).await;
    let producer = open(database.url()).await;
    let later = Start::After(Duration::from_millis(1));
    enqueue(&producer, NewJob { queue: queue("later"), start: later, ..job("t") }).await;
    while producer.promote_jobs(Fence::NONE, 10).await.unwrap().count == 0 {}
    assert_eq!(next(&mut wakeups).await, Wakeup::Queue(queue("later")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_queues_than_a_notification_can_name_wake_all_subscribers() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (_listener, mut wakeups) = listening(database.url(), &client).await;
    let producer = open(database.url()).await;
    let jobs = (0..200).map(|i| NewJob { queue: queue(&format!("{i:0>100}")), ..job("t") });
    producer.enqueue_jobs(jobs.collect()).await.unwrap();
    // The first queues may come by name.
    while next(&mut wakeups).await != Wakeup::Anything {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_listening_connection_a_job_is_found_by_polling() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let polling = open(database.url()).await;
    assert!(claim(&polling, 1).await.is_empty());
    let producer = open(database.url()).await;
    let id = enqueue(&producer, job("t")).await;
    let begun = std::time::Instant::now();
    assert_eq!(claim_soon(&polling).await.id(), id);
    println!("found after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(2), "polling should find the job within a second");
    assert_eq!(client.query_one(LISTENING, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wake_ups_resume_after_the_listening_connection_was_cut() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (_listener, mut wakeups) = listening(database.url(), &client).await;
    for round in 0..3 {
        let sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN orchestrix'";
        let old: i32 = client.query_one(sql, &[]).await.unwrap().get(0);
        client.execute("SELECT pg_terminate_backend($1)", &[&old]).await.unwrap();
        assert_eq!(next(&mut wakeups).await, Wakeup::Anything, "a reconnect wakes all subscribers");
        let new: i32 = client.query_one(sql, &[]).await.unwrap().get(0);
        assert_ne!(new, old);
        let producer = open(database.url()).await;
        let name = queue(&format!("q{round}"));
        enqueue(&producer, NewJob { queue: name.clone(), ..job("t") }).await;
        assert_eq!(next(&mut wakeups).await, Wakeup::Queue(name));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_store_leaves_no_session() {
    let database = support::database();
    let client = support::connect(database.url()).await;
    let (store, _wakeups) = listening(database.url(), &client).await;
    enqueue(&store, job("t")).await;
    drop(store);
    let sql =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrix'";
    until(&client, "the store's sessions have ended", |n| n == 0, sql).await;
}
