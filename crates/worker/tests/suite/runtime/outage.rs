//! The database becomes unavailable and recovers.

use std::time::Duration;

use orchestrix_client::Client;
use orchestrix_core::JobState;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_testkit::{FaultProxy, TestDatabase};

use super::{enqueue, gated_worker, wait_for_state, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn during_an_outage_jobs_run_on_and_outcomes_are_reported_after_it() {
    let database = TestDatabase::create("away").unwrap();
    let direct = Client::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
    let config: tokio_postgres::Config = database.url().parse().unwrap();
    let port = config.get_ports()[0];
    let proxy = FaultProxy::start(([127, 0, 0, 1], port).into()).unwrap();
    let url = database.url().replace(&format!(":{port}/"), &format!(":{}/", proxy.address().port()));
    let options = PostgresOptions { connect_timeout: Duration::from_secs(1), ..PostgresOptions::new(url) };
    let through = Client::new(PostgresStore::open(options).await.unwrap());
    let (worker, gate) = gated_worker(&through);
    let worker = worker.concurrency(2).no_coordinator().start().unwrap();

    let running = enqueue(&direct, 1).await;
    gate.next_started().await;
    proxy.cut();
    let waiting = enqueue(&direct, 2).await;
    gate.let_pass(1);
    wait_until("the handler has returned", async || worker.running() == 0).await;
    assert_eq!(
        wait_for_state(&direct, running.id(), JobState::Running).await.attempts,
        0,
        "the outcome could not be reported"
    );
    assert!(gate.none_started().await, "a job was claimed during the outage");

    proxy.restore();
    let reported = wait_for_state(&direct, running.id(), JobState::Completed).await;
    assert_eq!((reported.attempts, reported.leases), (1, 1), "the outcome was kept and reported with its lease token");
    gate.next_started().await;
    gate.let_pass(1);
    wait_for_state(&direct, waiting.id(), JobState::Completed).await;
    let _ = worker.shutdown().await;
}
