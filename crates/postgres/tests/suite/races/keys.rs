//! Idempotency keys of concurrent callers.

use std::collections::{BTreeMap, HashSet};

use orchestrix_core::{JobId, NewJob};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Enqueued, prelude::*};
use rand::seq::SliceRandom;

use crate::{
    invariants,
    jobs::*,
    locks::{LockHolder, until_waiting},
    support,
};

const ROUNDS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_callers_of_one_key_over_four_stores_make_one_job() {
    let database = support::database();
    let stores: [PostgresStore; 4] = open_many(database.url()).await;
    let client = support::connect(database.url()).await;
    for round in 0..ROUNDS {
        let answers: Vec<Enqueued> = together((0..64).map(|i| {
            let (store, job) = (stores[i % 4].clone(), keyed(&format!("k{round}")));
            async move { store.enqueue_job(job).await.expect("a valid job") }
        }))
        .await;
        assert_eq!(
            answers.iter().map(|answer| answer.id).collect::<HashSet<_>>().len(),
            1,
            "all callers should get one job"
        );
        assert_eq!(answers.iter().filter(|answer| answer.duplicate).count(), 63, "exactly one caller enqueued it");
    }
    let jobs: i64 = client.query_one("SELECT count(*) FROM orchestrix.job", &[]).await.unwrap().get(0);
    assert_eq!(jobs, ROUNDS as i64);
    invariants::assert_consistent(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_batches_with_shared_keys_in_different_orders_make_one_job_for_each_key() {
    let database = support::database();
    let stores: [PostgresStore; 4] = open_many(database.url()).await;
    let client = support::connect(database.url()).await;
    for round in 0..ROUNDS {
        let answers = together((0..8).map(|i| {
            let mut keys: Vec<String> = (0..300).map(|n| format!("r{round}k{n}")).collect();
            keys.shuffle(&mut rand::rng());
            keys.truncate(200);
            let store = stores[i % 4].clone();
            async move {
                let answers = store.enqueue_jobs(keys.iter().map(|key| keyed(key)).collect()).await;
                keys.into_iter().zip(answers.expect("batches wait without a deadlock")).collect::<Vec<_>>()
            }
        }))
        .await;
        let mut of_key: BTreeMap<String, Vec<Enqueued>> = BTreeMap::new();
        for (key, answer) in answers.into_iter().flatten() {
            of_key.entry(key).or_default().push(answer);
        }
        for (key, answers) in of_key {
            assert!(answers.iter().all(|answer| answer.id == answers[0].id), "{key} has two jobs");
            assert_eq!(answers.iter().filter(|answer| !answer.duplicate).count(), 1, "{key} should be enqueued once");
        }
    }
    let sql = "SELECT count(*) FROM orchestrix.job j FULL JOIN orchestrix.idempotency k ON k.job_id = j.id
               WHERE j.id IS NULL OR k.job_id IS NULL";
    assert_eq!(
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0),
        0,
        "every job has its key and every key its job"
    );
    invariants::assert_consistent(&client).await;
}

/// Enqueues a job whose key another transaction inserts, and then commits or rolls back.
async fn while_the_key_is_inserted(job: NewJob, many: bool, committed: bool) {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let taking = LockHolder::begin(database.url()).await;
    let row =
        taking.client().query_one("SELECT orchestrix.enqueue('keyed', idempotency_key => 'k')", &[]).await.unwrap();
    let first_job = JobId::from_uuid(row.get(0));

    let caller = store.clone();
    let waiting = tokio::spawn(async move {
        match many {
            true => caller.enqueue_jobs(vec![job]).await.map(|answers| answers[0]),
            false => caller.enqueue_job(job).await,
        }
    });
    until_waiting(&client, 1).await;
    if committed {
        taking.commit().await;
    } else {
        taking.rollback().await;
    }
    let answer = waiting.await.unwrap().expect("the enqueue succeeds");
    assert_eq!((answer.id == first_job, answer.duplicate), (committed, committed));
    assert_eq!(claim_all(&store).await.len(), 1);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn a_key_committed_during_the_wait_stands_for_the_first_job() {
    while_the_key_is_inserted(keyed("k"), false, true).await;
    while_the_key_is_inserted(keyed("k"), true, true).await;
}

#[tokio::test]
async fn a_key_rolled_back_during_the_wait_is_free() {
    while_the_key_is_inserted(keyed("k"), false, false).await;
    while_the_key_is_inserted(keyed("k"), true, false).await;
}
