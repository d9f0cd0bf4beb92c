//! Concurrent claims, and jobs that land before the known start of a claim.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, NewJob};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{ClaimRequest, prelude::*};
use orchestrix_testkit::TestDatabase;

use crate::{invariants, jobs::*, locks::LockHolder, support};

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
        // Until two claims find nothing: a claim skips jobs that another one has locked.
        let mut empty = 0;
        while empty < 2 {
            let claimed = store.claim_jobs(&request).await.unwrap();
            empty = if claimed.is_empty() { empty + 1 } else { 0 };
            mine.extend(claimed.into_iter().map(|claimed| claimed.token));
        }
        mine
    }));
    let claims = claims.await;
    assert!(claims.iter().filter(|mine| !mine.is_empty()).count() > 1, "several stores should claim");
    let mut tokens = claims.concat();
    tokens.extend(claim_all(&stores[0]).await.into_iter().map(|claimed| claimed.token));
    assert_eq!(tokens.len(), 5_000, "every job should be claimed once");
    assert_eq!(tokens.iter().map(|token| token.job).collect::<HashSet<_>>().len(), 5_000);
    assert!(tokens.iter().all(|token| token.counter == 1));
    invariants::assert_consistent(&support::connect(database.url()).await).await;
}

#[tokio::test]
async fn a_claim_skips_a_job_that_another_transaction_is_writing() {
    let database = support::database();
    let store = open(database.url()).await;
    let first = enqueue(&store, job("t")).await;
    store.enqueue_jobs(vec![job("t"); 9]).await.unwrap();
    // An uncommitted change: claims should not wait for its outcome.
    let writing = format!(
        "WITH moved AS (UPDATE orchestrix.job SET rank = 1 WHERE id = '{first}' RETURNING *)
         INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
         SELECT rank, eligible_at, id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[id] FROM moved"
    );
    let holder = LockHolder::with(database.url(), &writing).await;
    let others = claim(&store, 100).await;
    assert_eq!(others.len(), 9);
    assert!(others.iter().all(|claimed| claimed.id() != first));
    holder.commit().await;
    let claimed = claim_soon(&store).await;
    assert_eq!((claimed.id(), claimed.priority), (first, priority(-1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_commits_late_is_found_behind_the_claim_cursor() {
    let database = support::database();
    let store = open(database.url()).await;
    // Its transaction began, and so it is eligible, before every job that is claimed meanwhile.
    let late = LockHolder::begin(database.url()).await;
    let row = late.client().query_one("SELECT orchestrix.enqueue('t')", &[]).await.unwrap();
    let id = JobId::from_uuid(row.get(0));
    claim_far(&store).await;
    late.commit().await;
    assert_claimed_soon(&store, id, "committed late").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_higher_priority_job_of_another_store_is_found_behind_the_claim_cursor() {
    let (store, database) = claimed_far().await;
    let other = open(database.url()).await;
    let id = enqueue(&other, NewJob { priority: priority(7), ..job("t") }).await;
    assert_claimed_soon(&store, id, "higher priority").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_reprioritized_by_another_store_is_found_behind_the_claim_cursor() {
    let (store, database) = claimed_far().await;
    let other = open(database.url()).await;
    let last = enqueue(&other, job("t")).await;
    other.reprioritize_job(last, priority(7)).await.unwrap();
    assert_claimed_soon(&store, last, "reprioritized").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_new_type_is_found_while_other_lanes_hold_jobs() {
    let (store, database) = claimed_far().await;
    let other = open(database.url()).await;
    let id = enqueue(&other, NewJob { priority: priority(7), ..job("new") }).await;
    assert_claimed_soon(&store, id, "of a new type").await;
}

async fn claimed_far() -> (PostgresStore, TestDatabase) {
    let database = support::database();
    let store = open(database.url()).await;
    claim_far(&store).await;
    (store, database)
}

/// Claims 2,000 of 10,000 jobs of one type.
async fn claim_far(store: &PostgresStore) {
    store.enqueue_jobs(vec![job("t"); 10_000]).await.unwrap();
    for _ in 0..20 {
        assert_eq!(claim(store, 100).await.len(), 100);
    }
}

/// Claims one job after the other until it gets `id`, for at most two seconds: a second is promised, and the machine
/// may be busy.
async fn assert_claimed_soon(store: &PostgresStore, id: JobId, what: &str) {
    let begun = Instant::now();
    let mut others = 0;
    loop {
        let claimed = claim(store, 1).await;
        assert_eq!(claimed.len(), 1, "the queue ran empty before the job was claimed");
        if claimed[0].id() == id {
            println!("{what}: found after {:?} and {others} other jobs", begun.elapsed());
            return;
        }
        others += 1;
        assert!(begun.elapsed() < Duration::from_secs(2), "{what}: not found in 2 s, but {others} other jobs");
    }
}
