//! Claims side by side, and what lands behind the place where a store goes on claiming.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, NewJob};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{ClaimRequest, prelude::*};
use orchestrix_testkit::TestDatabase;

use crate::{books, jobs::*, locks::Holder, support};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_stores_never_share_one_of_5_000_jobs() {
    let database = support::database();
    let stores: [PostgresStore; 16] = open_many(database.url()).await;
    let lanes = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")];
    let jobs = lanes.iter().cycle().take(5_000).map(|(name, kind)| NewJob { queue: queue(name), ..job(kind) });
    stores[0].enqueue_jobs(jobs.collect()).await.unwrap();

    let claims = together(stores.iter().cloned().enumerate().map(|(i, store)| async move {
        let request = ClaimRequest::any(worker(&format!("w{i}")), 20);
        let mut mine = Vec::new();
        // Two looks that find nothing: what another claim holds for an instant is passed over.
        let mut empty = 0;
        while empty < 2 {
            let claimed = store.claim_jobs(&request).await.unwrap();
            empty = if claimed.is_empty() { empty + 1 } else { 0 };
            mine.extend(claimed.into_iter().map(|claimed| claimed.token));
        }
        mine
    }));
    let claims = claims.await;
    assert!(claims.iter().filter(|mine| !mine.is_empty()).count() > 1, "one store alone is no race");
    let mut tokens = claims.concat();
    tokens.extend(claim_all(&stores[0]).await.into_iter().map(|claimed| claimed.token));
    assert_eq!(tokens.len(), 5_000, "every job is claimed, and once");
    assert_eq!(tokens.iter().map(|token| token.job).collect::<HashSet<_>>().len(), 5_000);
    assert!(tokens.iter().all(|token| token.counter == 1));
    books::assert_balanced(&support::connect(database.url()).await).await;
}

#[tokio::test]
async fn a_claim_passes_over_a_job_that_somebody_is_writing() {
    let database = support::database();
    let store = open(database.url()).await;
    let first = enqueue(&store, job("t")).await;
    store.enqueue_jobs(vec![job("t"); 9]).await.unwrap();
    // Changed and not yet committed: what it will be is not known, and others should not wait for that.
    let writing = format!("UPDATE orchestrix.job SET rank = 1 WHERE id = '{first}'");
    let holder = Holder::with(database.url(), &writing).await;
    let passed_over = claim(&store, 100).await;
    assert_eq!(passed_over.len(), 9);
    assert!(passed_over.iter().all(|claimed| claimed.id() != first));
    holder.commit().await;
    let claimed = claim_soon(&store).await;
    assert_eq!((claimed.id(), claimed.priority), (first, priority(-1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_committed_late_is_found_behind_the_place_reached() {
    let database = support::database();
    let store = open(database.url()).await;
    // Its transaction began, and so it became eligible, before every job that is claimed meanwhile.
    let late = Holder::begin(database.url()).await;
    let row = late.client().query_one("SELECT orchestrix.enqueue('t')", &[]).await.unwrap();
    let id = JobId::from_uuid(row.get(0));
    go_far(&store).await;
    late.commit().await;
    found_soon(&store, id, "committed late").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_more_urgent_job_of_another_store_is_found_behind_the_place_reached() {
    let (store, database) = far_into_a_queue().await;
    let other = open(database.url()).await;
    let id = enqueue(&other, NewJob { priority: priority(7), ..job("t") }).await;
    found_soon(&store, id, "more urgent").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_made_more_urgent_by_another_store_is_found_behind_the_place_reached() {
    let (store, database) = far_into_a_queue().await;
    let other = open(database.url()).await;
    let last = enqueue(&other, job("t")).await;
    other.reprioritize_job(last, priority(7)).await.unwrap();
    found_soon(&store, last, "made more urgent").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_type_that_was_never_seen_is_found_though_others_wait() {
    let (store, database) = far_into_a_queue().await;
    let other = open(database.url()).await;
    let id = enqueue(&other, NewJob { priority: priority(7), ..job("new") }).await;
    found_soon(&store, id, "of a new type").await;
}

async fn far_into_a_queue() -> (PostgresStore, TestDatabase) {
    let database = support::database();
    let store = open(database.url()).await;
    go_far(&store).await;
    (store, database)
}

/// Claims 2,000 of 10,000 jobs of one kind.
async fn go_far(store: &PostgresStore) {
    store.enqueue_jobs(vec![job("t"); 10_000]).await.unwrap();
    for _ in 0..20 {
        assert_eq!(claim(store, 100).await.len(), 100);
    }
}

/// Claims one job after the other until `id` is among them. A second is promised; two leave room for a busy machine.
async fn found_soon(store: &PostgresStore, id: JobId, what: &str) {
    let begun = Instant::now();
    let mut others = 0;
    loop {
        let claimed = claim(store, 1).await;
        assert_eq!(claimed.len(), 1, "the queue ran empty, so that this shows nothing");
        if claimed[0].id() == id {
            println!("{what}: found after {:?} and {others} other jobs", begun.elapsed());
            return;
        }
        others += 1;
        assert!(begun.elapsed() < Duration::from_secs(2), "{what}: not found in 2 s, but {others} other jobs");
    }
}
