//! Dedicated handles, which work while the runtime of the store is blocked.

use std::{sync::mpsc, thread, time::Duration};

use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{LeaseStatus, StoreError, prelude::*};
use tokio::runtime::{Builder, Runtime};

use crate::{jobs::*, locks::LIMIT, support};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_dedicated_handle_extends_leases_while_the_runtime_of_the_store_is_blocked() {
    let database = support::database();
    let url = database.url().to_owned();
    let (hand_over, taken) = mpsc::channel();
    let (free, blocked) = mpsc::channel::<()>();
    let opener = thread::spawn(move || {
        runtime().block_on(async move {
            // Without the recycling check, which would notice a stuck connection and open another.
            let options = PostgresOptions { prepare: false, ..options(&url) };
            let store = PostgresStore::open(options).await.unwrap();
            let claimed = start(&store, job("t")).await;
            hand_over.send((store, claimed.token)).unwrap();
            // Blocks the only thread of this runtime, as a handler that never yields does.
            blocked.recv_timeout(2 * LIMIT).unwrap();
        });
    });
    let (store, token) = taken.recv_timeout(LIMIT).unwrap();
    runtime().block_on(async {
        let dedicated = store.dedicated_handle(1).unwrap();
        for _ in 0..3 {
            let beat =
                tokio::time::timeout(LIMIT, dedicated.extend_leases(&[token])).await.expect("an answer").unwrap();
            assert!(matches!(beat[..], [LeaseStatus::Held(_)]), "{beat:?}");
        }
        let blocked = tokio::time::timeout(Duration::from_millis(500), store.extend_leases(&[token])).await;
        assert!(blocked.is_err(), "the store itself should depend on the runtime that it was opened on");
    });
    free.send(()).unwrap();
    opener.join().unwrap();
}

#[tokio::test]
async fn a_dedicated_handle_keeps_to_its_connection_limit_and_does_not_listen() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrix'";
    let before: i64 = client.query_one(sessions, &[]).await.unwrap().get(0);
    let dedicated = store.dedicated_handle(2).unwrap();
    let calls = together((0..16).map(|_| {
        let dedicated = dedicated.clone();
        async move { dedicated.next_sweep_times().await }
    }));
    assert!(calls.await.iter().all(Result::is_ok));
    let after: i64 = client.query_one(sessions, &[]).await.unwrap().get(0);
    // The store's listening connection may have been opened meanwhile.
    assert!((1..=3).contains(&(after - before)), "{before} sessions became {after}");
}

#[test]
fn a_dedicated_handle_needs_a_runtime() {
    let database = support::database();
    let store = runtime().block_on(open(database.url()));
    assert!(matches!(store.dedicated_handle(1), Err(StoreError::Backend(_))));
}
