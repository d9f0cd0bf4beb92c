//! Ready batches: concurrent claims, paused queues, repair, and the migration that adds them.

use std::time::Duration;

use orchestrix_core::{JobId, NewJob, Start};
use orchestrix_store::{ClaimRequest, Fence, Queues, Retention, prelude::*};

use crate::{
    invariants,
    jobs::*,
    locks::{LockHolder, until_waiting},
    support::{self, connect, store},
};

const BATCHES: &str = "SELECT count(*) FROM orchestrix.ready";
const PARKED: &str = "SELECT count(*) FROM orchestrix.ready WHERE parked";

async fn number(client: &tokio_postgres::Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

fn in_queue(name: &str, job_type: &str) -> NewJob {
    NewJob { queue: queue(name), ..job(job_type) }
}

#[tokio::test]
async fn jobs_of_one_call_and_lane_share_batches_of_64_which_claims_delete() {
    let (store, database) = store().await;
    let client = connect(database.url()).await;
    store.enqueue_jobs(vec![job("t"); 130]).await.unwrap();
    assert_eq!(number(&client, BATCHES).await, 3);
    assert_eq!(claim(&store, 70).await.len(), 70);
    assert_eq!(number(&client, BATCHES).await, 2, "the second one lists pending jobs");
    assert_eq!(claim(&store, 70).await.len(), 60);
    assert_eq!(number(&client, BATCHES).await, 0);
}

#[tokio::test]
async fn a_claim_takes_jobs_of_a_batch_that_another_claim_has_locked() {
    let (store, database) = store().await;
    let jobs = store.enqueue_jobs(vec![job("t"); 5]).await.unwrap();
    // The lock of a claim that took two of the jobs.
    let locked = format!(
        "SELECT FROM orchestrix.ready FOR UPDATE;
         SELECT FROM orchestrix.job WHERE id IN ('{}', '{}') FOR NO KEY UPDATE",
        jobs[0].id, jobs[2].id
    );
    let holder = LockHolder::with(database.url(), &locked).await;
    for request in [
        ClaimRequest::any(worker("w"), 1),
        ClaimRequest { job_types: Some(vec![job("t").job_type]), ..ClaimRequest::any(worker("w"), 1) },
    ] {
        assert_eq!(store.claim_jobs(&request).await.unwrap().len(), 1);
    }
    let rest: Vec<JobId> = claim(&store, 10).await.iter().map(|claimed| claimed.id()).collect();
    assert_eq!(rest, [jobs[4].id]);
    holder.rollback().await;
    let mut left: Vec<JobId> = Vec::new();
    while left.len() < 2 {
        left.extend(claim(&store, 10).await.iter().map(|claimed| claimed.id()));
    }
    assert_eq!(left, [jobs[0].id, jobs[2].id]);
}

#[tokio::test]
async fn claims_park_the_batches_of_a_paused_queue_and_resuming_returns_them_in_order() {
    let (store, database) = store().await;
    let client = connect(database.url()).await;
    // More batches than the call that resumes the queue returns: a batch for each type.
    let jobs = (0..2_500).map(|n| NewJob { priority: priority(9), ..in_queue("paused", &format!("t{n}")) });
    let paused = store.enqueue_jobs(jobs.collect()).await.unwrap();
    let other = enqueue(&store, in_queue("other", "t")).await;
    store.pause_queue(&queue("paused")).await.unwrap();
    let claimed = claim(&store, 10).await;
    assert_eq!(claimed.iter().map(|claimed| claimed.id()).collect::<Vec<_>>(), [other]);
    for _ in 0..5 {
        assert!(claim(&store, 10).await.is_empty());
    }
    assert_eq!(number(&client, PARKED).await, 2_500, "later claims do not meet them");
    let late = enqueue(&store, in_queue("paused", "late")).await;
    store.resume_queue(&queue("paused")).await.unwrap();
    assert_eq!(number(&client, PARKED).await, 500);
    invariants::assert_consistent(&client).await;
    // The leader returns the rest.
    while store.promote_jobs(Fence::NONE, 100).await.unwrap().next_in == Some(Duration::ZERO) {}
    assert_eq!(number(&client, PARKED).await, 0);
    let claimed: Vec<JobId> = claim(&store, 3_000).await.iter().map(|claimed| claimed.id()).collect();
    let expected: Vec<JobId> = paused.iter().map(|job| job.id).chain([late]).collect();
    assert_eq!(claimed, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_resumed_while_a_claim_parks_its_batches_gets_all_of_them_back() {
    let (store, database) = store().await;
    let client = connect(database.url()).await;
    let id = enqueue(&store, in_queue("q", "t")).await;
    store.pause_queue(&queue("q")).await.unwrap();
    // What a claim does, stopped before its commit.
    let parking =
        "SELECT FROM orchestrix.queue WHERE paused FOR NO KEY UPDATE; UPDATE orchestrix.ready SET parked = true";
    let holder = LockHolder::with(database.url(), parking).await;
    let resuming = {
        let store = store.clone();
        tokio::spawn(async move { store.resume_queue(&queue("q")).await })
    };
    until_waiting(&client, 1).await;
    holder.commit().await;
    resuming.await.unwrap().unwrap();
    assert_eq!(number(&client, PARKED).await, 0);
    assert_eq!(claim_soon(&store).await.id(), id);
}

#[tokio::test]
async fn a_parked_batch_of_a_queue_that_is_not_paused_is_returned() {
    let (store, database) = store().await;
    let client = connect(database.url()).await;
    let id = enqueue(&store, in_queue("q", "t")).await;
    store.pause_queue(&queue("q")).await.unwrap();
    store.resume_queue(&queue("q")).await.unwrap();
    client.execute("UPDATE orchestrix.ready SET parked = true", &[]).await.unwrap();
    assert!(claim(&store, 1).await.is_empty());
    store.prune_history(Fence::NONE, &Retention::default(), 100).await.unwrap();
    store.promote_jobs(Fence::NONE, 100).await.unwrap();
    assert_eq!(claim_soon(&store).await.id(), id);
}

#[tokio::test]
async fn a_claim_that_names_many_queues_and_types_is_not_starved_by_their_other_batches() {
    let (store, _database) = store().await;
    let names = |prefix: &str| (0..46).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
    let (queues, types) = (names("q"), names("t"));
    // Batches of a queue that the claim does not name, ahead of its job: more than one claim reads.
    let foreign: Vec<NewJob> =
        (0..8_000).map(|n| NewJob { priority: priority(9), ..in_queue(&format!("foreign{n}"), "t0") }).collect();
    store.enqueue_jobs(foreign).await.unwrap();
    let id = enqueue(&store, in_queue("q5", "t7")).await;
    let request = ClaimRequest {
        queues: Queues::Named(queues.iter().map(|name| queue(name)).collect()),
        job_types: Some(types.iter().map(|name| job(name).job_type).collect()),
        ..ClaimRequest::any(worker("w"), 10)
    };
    for _ in 0..10 {
        let claimed = store.claim_jobs(&request).await.unwrap();
        if let [claimed] = &claimed[..] {
            assert_eq!(claimed.id(), id);
            return;
        }
        assert!(claimed.is_empty());
    }
    panic!("the job was not claimed");
}

#[tokio::test]
async fn a_pending_job_in_no_batch_is_found_and_a_batch_without_pending_jobs_deleted() {
    let (store, database) = store().await;
    let client = connect(database.url()).await;
    let lost = enqueue(&store, job("t")).await;
    client.execute("UPDATE orchestrix.job SET rank = 7", &[]).await.unwrap();
    let cancelled = enqueue(&store, job("no-worker-asks-for-it")).await;
    store.cancel_job(cancelled).await.unwrap();
    assert!(claim(&store, 10).await.is_empty());
    store.prune_history(Fence::NONE, &Retention::default(), 100).await.unwrap();
    invariants::assert_consistent(&client).await;
    assert_eq!(number(&client, BATCHES).await, 1);
    assert_eq!(claim_soon(&store).await.id(), lost);
}

#[tokio::test]
async fn the_migration_keeps_order_and_depths_of_a_filled_database() {
    let database = support::empty_database();
    let client = connect(database.url()).await;
    let old = [
        include_str!("../../migrations/0001_engine.sql"),
        include_str!("../../migrations/0002_enqueue.sql"),
        include_str!("../../migrations/0003_coordination.sql"),
        include_str!("../../migrations/0004_schedules.sql"),
        include_str!("../../migrations/0005_kept_occurrences.sql"),
        include_str!("../../migrations/0006_operate.sql"),
        include_str!("../../migrations/0007_live.sql"),
        include_str!("../../migrations/0008_tenants.sql"),
        include_str!("../../migrations/0009_waiting.sql"),
        include_str!("../../migrations/0010_presence.sql"),
        include_str!("../../migrations/0011_revived.sql"),
    ];
    client
        .batch_execute(
            "CREATE SCHEMA orchestrix;
             CREATE TABLE orchestrix.migration (
                 version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
             INSERT INTO orchestrix.migration (version, name) SELECT n, n::text FROM generate_series(1, 11) AS n",
        )
        .await
        .unwrap();
    for sql in old {
        client.batch_execute(sql).await.unwrap();
    }
    // Jobs of several transactions, lanes and priorities, one of them scheduled; folded and unfolded depths.
    for n in 0..200 {
        let sql = format!(
            "SELECT orchestrix.enqueue('t{}', queue => 'q{}', priority => {}) FROM generate_series(1, 3)",
            n % 7,
            n % 5,
            n % 3
        );
        client.batch_execute(&sql).await.unwrap();
    }
    client.batch_execute("SELECT orchestrix.enqueue('t', run_at => now() + interval '1 hour')").await.unwrap();
    client
        .batch_execute(
            "WITH d AS (DELETE FROM orchestrix.depth_delta WHERE queue = 'q0' RETURNING *)
             INSERT INTO orchestrix.depth SELECT queue, state, sum(n) FROM d GROUP BY queue, state",
        )
        .await
        .unwrap();
    let sql = "SELECT id FROM orchestrix.job WHERE state = 'pending' ORDER BY rank, eligible_at, id";
    let expected: Vec<JobId> =
        client.query(sql, &[]).await.unwrap().iter().map(|row| JobId::from_uuid(row.get(0))).collect();
    let store = open(database.url()).await;
    invariants::assert_consistent(&client).await;
    let claimed: Vec<JobId> = claim(&store, 1_000).await.iter().map(|claimed| claimed.id()).collect();
    assert_eq!(claimed.len(), 600);
    assert_eq!(claimed, expected);
    enqueue(&store, NewJob { start: Start::Now, ..job("t") }).await;
    invariants::assert_consistent(&client).await;
}
