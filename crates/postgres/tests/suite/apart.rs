//! A store that answers on another runtime while the one it was opened on is blocked.

use std::{sync::mpsc, thread, time::Duration};

use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{LeaseStatus, StoreError, prelude::*};
use tokio::runtime::{Builder, Runtime};

use crate::{jobs::*, locks::LIMIT, support};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn heartbeats_apart_go_on_while_the_runtime_of_the_store_is_blocked() {
    let database = support::database();
    let url = database.url().to_owned();
    let (hand_over, taken) = mpsc::channel();
    let (free, blocked) = mpsc::channel::<()>();
    let opener = thread::spawn(move || {
        runtime().block_on(async move {
            // Nothing that would notice a stuck connection and open another.
            let options = PostgresOptions { prepare: false, ..options(&url) };
            let store = PostgresStore::open(options).await.unwrap();
            let claimed = start(&store, job("t")).await;
            hand_over.send((store, claimed.token)).unwrap();
            // As a handler does that never yields: the only thread of this runtime is stuck.
            blocked.recv_timeout(2 * LIMIT).unwrap();
        });
    });
    let (store, token) = taken.recv_timeout(LIMIT).unwrap();
    runtime().block_on(async {
        let apart = store.dedicated_handle(1).unwrap();
        for _ in 0..3 {
            let beat = tokio::time::timeout(LIMIT, apart.extend_leases(&[token])).await.expect("an answer").unwrap();
            assert!(matches!(beat[..], [LeaseStatus::Held(_)]), "{beat:?}");
        }
        let within_reason = tokio::time::timeout(Duration::from_millis(500), store.extend_leases(&[token])).await;
        assert!(within_reason.is_err(), "the store itself depends on the runtime that it was opened on");
    });
    free.send(()).unwrap();
    opener.join().unwrap();
}

#[tokio::test]
async fn a_store_apart_opens_no_more_connections_than_it_may_and_none_that_listens() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrix'";
    let before: i64 = client.query_one(sessions, &[]).await.unwrap().get(0);
    let apart = store.dedicated_handle(2).unwrap();
    let calls = together((0..16).map(|_| {
        let apart = apart.clone();
        async move { apart.next_sweep_times().await }
    }));
    assert!(calls.await.iter().all(Result::is_ok));
    let after: i64 = client.query_one(sessions, &[]).await.unwrap().get(0);
    // The connection that listens may have come up meanwhile.
    assert!((1..=3).contains(&(after - before)), "{before} sessions became {after}");
}

#[test]
fn without_a_runtime_there_is_no_store_apart() {
    let database = support::database();
    let store = runtime().block_on(open(database.url()));
    assert!(matches!(store.dedicated_handle(1), Err(StoreError::Backend(_))));
}
