//! After the database was away, holders of leases get the time of one heartbeat before anything is taken back.

use std::{sync::Arc, time::Duration};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::NewJob;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{LeaseStatus, Store};
use orchestrix_testkit::PostgresServer;

use crate::support::{claim, job, leading, options, until};

const LEASE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_keeps_a_job_whose_lease_ran_out_while_the_database_was_away() {
    let mut server = tokio::task::block_in_place(|| PostgresServer::builder().start().unwrap());
    let store = PostgresStore::open(PostgresOptions::new(server.url("postgres"))).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    // Long enough that the holder is in time on a busy machine.
    let options = CoordinatorOptions { heartbeat: Duration::from_secs(5), ..options("a") };
    let node = Coordinator::start(Arc::clone(&store), options).unwrap();
    leading(&node).await;
    store.enqueue_job(NewJob { lease: LEASE, ..job("kept") }).await.unwrap();
    let claimed = until("it is claimable", async || claim(&*store).await).await;

    tokio::task::block_in_place(|| {
        server.kill().unwrap();
        std::thread::sleep(LEASE + LEASE / 2);
        server.restart().unwrap();
    });
    // The leader has seen that the lease ran out, and left it.
    let looked = |node: &Coordinator| node.status().services.get("reap").map_or(0, |reap| reap.runs - reap.failures);
    let before = looked(&node);
    until("the leader looks for leases that ran out", async || (looked(&node) > before).then_some(())).await;
    let answer = until("the store answers", async || store.extend_leases(&[claimed.token]).await.ok()).await;
    assert!(matches!(answer[..], [LeaseStatus::Held(_)]), "{answer:?}");

    // Silent from now on, it loses the job like any other.
    let again = until("it is taken back", async || claim(&*store).await).await;
    assert_eq!((again.id(), again.attempt), (claimed.id(), 2));
    node.shutdown().await;
    tokio::task::block_in_place(|| drop(server));
}
