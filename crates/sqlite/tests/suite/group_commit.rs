//! Group commit: many calls share one commit, and no call returns before it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use orchestrix_core::{JobId, JobState, NewJob, Priority};
use orchestrix_store::{ClaimRequest, prelude::*};

use crate::{
    consistency,
    jobs::*,
    support::{Folder, WriteLock, connect, number, open},
    wal,
};

// One thread, so that every call is queued before the test continues.
#[tokio::test(flavor = "current_thread")]
async fn two_hundred_concurrent_enqueues_share_a_few_commits() {
    const CALLS: usize = 200;
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    enqueue(&store, job("t")).await;
    let before = wal::commits(&folder.file());
    let lock = WriteLock::new(&folder.file());
    let begun = Arc::new(AtomicUsize::new(0));
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let (store, begun) = (store.clone(), begun.clone());
            tokio::spawn(async move {
                begun.fetch_add(1, Ordering::Relaxed);
                enqueue(&store, job("t")).await
            })
        })
        .collect();
    while begun.load(Ordering::Relaxed) < CALLS {
        tokio::task::yield_now().await;
    }
    assert!(calls.iter().all(|call| !call.is_finished()), "the file is locked");
    lock.release();
    for call in calls {
        call.await.unwrap();
    }
    let connection = connect(&folder.file());
    assert_eq!(number(&connection, "SELECT count(*) FROM job"), 201);
    consistency::assert_consistent(&connection);
    let commits = wal::commits(&folder.file()) - before;
    println!("{commits} commits");
    assert!((1..=CALLS / 4).contains(&commits), "{commits} commits for {CALLS} calls");
}

#[tokio::test]
async fn sequential_calls_have_one_commit_each() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let before = wal::commits(&folder.file());
    for _ in 0..20 {
        enqueue(&store, job("t")).await;
    }
    assert_eq!(wal::commits(&folder.file()) - before, 20, "one commit per call");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_is_visible_to_other_connections_once_it_returns() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let file = Arc::new(folder.file());
    let call = |_| {
        let (store, file) = (store.clone(), file.clone());
        async move {
            for _ in 0..15 {
                // A new connection each time, without a snapshot of its own.
                let count = |sql: &str| connect(&file).query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap();
                let id = enqueue(&store, job("t")).await.as_uuid().simple();
                assert_eq!(count(&format!("SELECT count(*) FROM job WHERE id = x'{id}'")), 1, "enqueued");
                let token = claim(&store, 1).await[0];
                let (id, secret) = (token.job.as_uuid().simple(), token.secret.simple());
                let leased =
                    format!("SELECT count(*) FROM job WHERE id = x'{id}' AND lease_secret = x'{secret}' AND state = ");
                assert_eq!(count(&format!("{leased} 'running'")), 1, "claimed");
                assert_eq!(complete(&store, &[token]).await, [Ok(JobState::Completed)]);
                assert_eq!(count(&format!("{leased} 'completed'")), 1, "completed");
            }
        }
    };
    run_concurrently((0..4).map(call)).await;
}

#[tokio::test]
async fn a_claim_returns_jobs_of_earlier_operations_of_its_transaction_in_order() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let with_priority = |kind: &str, value| NewJob { priority: Priority::new(value).unwrap(), ..job(kind) };
    let low = enqueue(&store, with_priority("a", -1)).await;
    let lock = WriteLock::new(&folder.file());
    // Both operations queue up behind the lock, in this order, and share a transaction.
    let request = ClaimRequest::any(worker("w"), 10);
    let (urgent, claimed, ()) = tokio::join!(biased; enqueue(&store, with_priority("b", 1)), store.claim_jobs(&request), async { lock.release() });
    let claimed: Vec<JobId> = claimed.unwrap().iter().map(|claimed| claimed.token.job).collect();
    assert_eq!(claimed, [urgent, low]);
}
