//! After an outage of the database, workers get one heartbeat interval before the leader reaps leases.

use std::{sync::Arc, time::Duration};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::NewJob;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{LeaseStatus, Store};
use orchestrix_testkit::PostgresServer;

use crate::support::{claim, job, leading, options, wait_for};

const LEASE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_keeps_a_job_whose_lease_expired_during_an_outage() {
    let mut server = tokio::task::block_in_place(|| PostgresServer::builder().start().unwrap());
    let store = PostgresStore::open(PostgresOptions::new(server.url("postgres"))).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    // Long enough for the lease extension on a busy machine.
    let options = CoordinatorOptions { heartbeat: Duration::from_secs(5), ..options("a") };
    let node = Coordinator::start(Arc::clone(&store), options).unwrap();
    leading(&node).await;
    store.enqueue_job(NewJob { lease: LEASE, ..job("kept") }).await.unwrap();
    let claimed = wait_for("the job is claimable", async || claim(&*store).await).await;

    tokio::task::block_in_place(|| {
        server.kill().unwrap();
        std::thread::sleep(LEASE + LEASE / 2);
        server.restart().unwrap();
    });
    // The leader has seen the expired lease and left it.
    let sweeps =
        |node: &Coordinator| node.status().services.get("reap_leases").map_or(0, |reap| reap.runs - reap.failures);
    let before = sweeps(&node);
    wait_for("the leader sweeps expired leases", async || (sweeps(&node) > before).then_some(())).await;
    let statuses = wait_for("the lease is extended", async || store.extend_leases(&[claimed.token]).await.ok()).await;
    assert!(matches!(statuses[..], [LeaseStatus::Held(_)]), "{statuses:?}");

    // Without further extensions the lease is reaped.
    let again = wait_for("the lease is reaped", async || claim(&*store).await).await;
    assert_eq!((again.id(), again.attempt), (claimed.id(), 2));
    node.shutdown().await;
    tokio::task::block_in_place(|| drop(server));
}
