//! The same in transactions of sqlx.

use orchestrix_core::{JobId, JobState, Json, NewJob};
use orchestrix_store::{Fence, Outcome, StoreError, prelude::*};
use sqlx::{Connection, Executor, PgConnection};
use uuid::Uuid;

use crate::{
    books,
    jobs::*,
    locks::{Holder, until_waiting},
    transactions::{ORDER, Scene, after, large, named, scene},
};

async fn connect(s: &Scene) -> PgConnection {
    PgConnection::connect(s.database.url()).await.unwrap()
}

#[tokio::test]
async fn jobs_are_there_when_a_transaction_of_sqlx_commits_and_never_were_when_it_does_not() {
    let s = scene().await;
    let mut connection = connect(&s).await;
    let mut tx = connection.begin().await.unwrap();
    s.store.enqueue_in(&mut *tx, vec![keyed("k"), large()]).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(s.jobs().await, 0);
    let mut tx = connection.begin().await.unwrap();
    tx.execute(ORDER).await.unwrap();
    let jobs = vec![named("first", job("t")), after("first"), large(), keyed("k"), keyed("k")];
    let recorded = s.store.enqueue_in(&mut tx, jobs).await.unwrap();
    let states: Vec<JobState> = recorded.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::Pending, JobState::Blocked, JobState::Pending, JobState::Pending, JobState::Pending]);
    assert_eq!((recorded[4].id, recorded[4].duplicate), (recorded[3].id, true));
    assert_eq!((s.jobs().await, s.orders().await), (0, 0), "seen before the commit");
    tx.commit().await.unwrap();
    assert_eq!((s.jobs().await, s.orders().await), (4, 1));
    let again = s.store.enqueue_job(keyed("k")).await.unwrap();
    assert_eq!((again.id, again.duplicate), (recorded[3].id, true));
    assert_eq!(get(&s.store, recorded[2].id).await.payload, large().payload);
    for claimed in claim_all(&s.store).await {
        finish(&s.store, claimed.token, Outcome::DONE).await.unwrap();
    }
    assert_eq!(claim_soon(&s.store).await.id(), recorded[1].id);
    books::assert_balanced(&s.watcher).await;
}

#[tokio::test]
async fn what_is_refused_leaves_a_transaction_of_sqlx_as_it_was() {
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
    let patience: (String,) = sqlx::query_as("SHOW lock_timeout").fetch_one(&mut *tx).await.unwrap();
    assert_eq!(patience.0, "0", "the caller's settings are its own");
    tx.commit().await.unwrap();
    assert_eq!((s.orders().await, s.jobs().await), (1, 2));
    books::assert_balanced(&s.watcher).await;
}

async fn start_failed(s: &Scene) -> JobId {
    let claimed = claim(&s.store, 1).await;
    for claimed in &claimed {
        finish(&s.store, claimed.token, fatal()).await.unwrap();
    }
    claimed[0].id()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_sqlx_waits_for_a_key_and_is_told_of_the_first() {
    let s = scene().await;
    let holder = Holder::begin(s.database.url()).await;
    let sql = "SELECT orchestrix.enqueue('keyed', idempotency_key => 'k')";
    let theirs = JobId::from_uuid(holder.client().query_one(sql, &[]).await.unwrap().get(0));
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
    assert_eq!((answer.id, answer.duplicate), (theirs, true));
    assert_eq!((s.orders().await, s.jobs().await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_half_way_leaves_nothing_in_a_transaction_of_sqlx() {
    let s = scene().await;
    let holder = Holder::with(s.database.url(), "SELECT orchestrix.enqueue('keyed', idempotency_key => 'k')").await;
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
async fn a_job_is_completed_with_a_transaction_of_sqlx_or_not_at_all() {
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
    books::assert_balanced(&s.watcher).await;
}

#[tokio::test]
async fn a_connection_of_sqlx_without_a_transaction_is_refused() {
    let s = scene().await;
    let mut connection = connect(&s).await;
    let answer = s.store.enqueue_in(&mut connection, vec![job("t")]).await;
    assert!(matches!(answer, Err(StoreError::Backend(_))), "{answer:?}");
    // One begun by text is not known to sqlx, and must not be committed by it.
    connection.execute("BEGIN").await.unwrap();
    let answer = s.store.enqueue_in(&mut connection, vec![job("t")]).await;
    assert!(matches!(answer, Err(StoreError::Backend(_))), "{answer:?}");
    connection.execute("ROLLBACK").await.unwrap();
    assert_eq!(s.jobs().await, 0);
}
