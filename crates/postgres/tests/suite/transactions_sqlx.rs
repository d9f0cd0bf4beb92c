//! Jobs in the caller's own sqlx transaction.

use orchestrix_core::{JobId, JobState, Json, NewJob};
use orchestrix_store::{Fence, Outcome, StoreError, prelude::*};
use sqlx::{Connection, Executor, PgConnection};
use uuid::Uuid;

use crate::{
    invariants,
    jobs::*,
    locks::{LockHolder, until_waiting},
    transactions::{ORDER, Scene, after, large, named, scene},
};

async fn connect(s: &Scene) -> PgConnection {
    PgConnection::connect(s.database.url()).await.unwrap()
}

#[tokio::test]
async fn jobs_exist_if_and_only_if_a_sqlx_transaction_commits() {
    let s = scene().await;
    let mut connection = connect(&s).await;
    let mut tx = connection.begin().await.unwrap();
    s.store.enqueue_in(&mut *tx, vec![keyed("k"), large()]).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(s.jobs().await, 0);
    let mut tx = connection.begin().await.unwrap();
    tx.execute(ORDER).await.unwrap();
    let jobs = vec![named("first", job("t")), after("first"), large(), keyed("k"), keyed("k")];
    let enqueued = s.store.enqueue_in(&mut tx, jobs).await.unwrap();
    let states: Vec<JobState> = enqueued.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::Pending, JobState::Blocked, JobState::Pending, JobState::Pending, JobState::Pending]);
    assert_eq!((enqueued[4].id, enqueued[4].duplicate), (enqueued[3].id, true));
    assert_eq!((s.jobs().await, s.orders().await), (0, 0), "visible before the commit");
    tx.commit().await.unwrap();
    assert_eq!((s.jobs().await, s.orders().await), (4, 1));
    let again = s.store.enqueue_job(keyed("k")).await.unwrap();
    assert_eq!((again.id, again.duplicate), (enqueued[3].id, true));
    assert_eq!(get(&s.store, enqueued[2].id).await.payload, large().payload);
    for claimed in claim_all(&s.store).await {
        finish(&s.store, claimed.token, Outcome::DONE).await.unwrap();
    }
    assert_eq!(claim_soon(&s.store).await.id(), enqueued[1].id);
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test]
async fn a_refused_call_leaves_a_sqlx_transaction_unchanged() {
    let s = scene().await;
    let other = enqueue(&s.store, keyed("k")).await;
    let failed = start_failed(&s).await;
    let mut connection = connect(&s).await;
    let mut tx = connection.begin().await.unwrap();
    tx.execute(ORDER).await.unwrap();
    let bad = s.store.enqueue_in(&mut *tx, vec![keyed("new"), child_of(&[JobId::from_uuid(Uuid::from_u128(7))])]).await;
    assert!(matches!(bad, Err(StoreError::Invalid(_))), "{bad:?}");
    let reused = NewJob { payload: Json::trusted("1"), ..keyed("k") };
    let answer = s.store.enqueue_in(&mut *tx, vec![keyed("new"), reused]).await;
    assert!(matches!(answer, Err(StoreError::IdempotencyKeyReused { existing }) if existing == other), "{answer:?}");
    let doomed = s.store.enqueue_in(&mut *tx, vec![child_of(&[failed])]).await.unwrap();
    assert_eq!(doomed[0].state, JobState::Cancelled);
    let lock_timeout: (String,) = sqlx::query_as("SHOW lock_timeout").fetch_one(&mut *tx).await.unwrap();
    assert_eq!(lock_timeout.0, "0", "the caller's settings are restored");
    tx.commit().await.unwrap();
    assert_eq!((s.orders().await, s.jobs().await), (1, 2));
    invariants::assert_consistent(&s.watcher).await;
}

async fn start_failed(s: &Scene) -> JobId {
    let claimed = claim(&s.store, 1).await;
    for claimed in &claimed {
        finish(&s.store, claimed.token, fatal()).await.unwrap();
    }
    claimed[0].id()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlx_transaction_waits_for_a_key_and_gets_the_job_of_the_first() {
    let s = scene().await;
    let holder = LockHolder::begin(s.database.url()).await;
    let sql = "SELECT orchestrix.enqueue('keyed', idempotency_key => 'k')";
    let first_job = JobId::from_uuid(holder.client().query_one(sql, &[]).await.unwrap().get(0));
    let mut connection = connect(&s).await;
    let store = s.store.clone();
    let second = tokio::spawn(async move {
        let mut tx = connection.begin().await.unwrap();
        tx.execute(ORDER).await.unwrap();
        let answer = store.enqueue_in(&mut *tx, vec![keyed("k")]).await.unwrap();
        tx.commit().await.unwrap();
        answer[0]
    });
    until_waiting(&s.watcher, 1).await;
    holder.commit().await;
    let answer = second.await.unwrap();
    assert_eq!((answer.id, answer.duplicate), (first_job, true));
    assert_eq!((s.orders().await, s.jobs().await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_call_leaves_nothing_in_a_sqlx_transaction() {
    let s = scene().await;
    let holder = LockHolder::with(s.database.url(), "SELECT orchestrix.enqueue('keyed', idempotency_key => 'k')").await;
    let mut connection = connect(&s).await;
    let mut tx = connection.begin().await.unwrap();
    tx.execute(ORDER).await.unwrap();
    tokio::select! {
        answer = s.store.enqueue_in(&mut *tx, vec![keyed("k"), job("beside")]) => panic!("it must wait: {answer:?}"),
        () = until_waiting(&s.watcher, 1) => {}
    }
    holder.rollback().await;
    tx.commit().await.unwrap();
    assert_eq!((s.orders().await, s.jobs().await), (1, 0));
}

#[tokio::test]
async fn a_job_completes_if_and_only_if_a_sqlx_transaction_commits() {
    let s = scene().await;
    let claimed = start(&s.store, job("t")).await;
    let child = enqueue(&s.store, child_of(&[claimed.id()])).await;
    let mut connection = connect(&s).await;
    let mut tx = connection.begin().await.unwrap();
    s.store.complete_in(&mut *tx, claimed.token, None).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(state(&s.store, claimed.id()).await, JobState::Running);
    let mut tx = connection.begin().await.unwrap();
    tx.execute(ORDER).await.unwrap();
    let result = Some(Json::trusted("[1]"));
    s.store.complete_in(&mut tx, claimed.token, result.clone()).await.unwrap();
    let twice = s.store.complete_in(&mut tx, claimed.token, result.clone()).await;
    assert!(matches!(twice, Err(StoreError::LeaseLost)), "{twice:?}");
    tx.commit().await.unwrap();
    assert_eq!((get(&s.store, claimed.id()).await.result, s.orders().await), (result.clone(), 1));
    assert_eq!(finish(&s.store, claimed.token, Outcome::Complete { result }).await, Ok(JobState::Completed));
    s.store.unblock_jobs(Fence::NONE, 100).await.unwrap();
    assert_eq!(state(&s.store, child).await, JobState::Pending);
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test]
async fn a_sqlx_connection_without_a_transaction_is_refused() {
    let s = scene().await;
    let mut connection = connect(&s).await;
    let answer = s.store.enqueue_in(&mut connection, vec![job("t")]).await;
    assert!(matches!(answer, Err(StoreError::Backend(_))), "{answer:?}");
    // sqlx does not know a transaction that was begun by text, and must not commit it.
    connection.execute("BEGIN").await.unwrap();
    let answer = s.store.enqueue_in(&mut connection, vec![job("t")]).await;
    assert!(matches!(answer, Err(StoreError::Backend(_))), "{answer:?}");
    connection.execute("ROLLBACK").await.unwrap();
    assert_eq!(s.jobs().await, 0);
}
