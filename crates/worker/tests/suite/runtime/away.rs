//! The database goes away and comes back.

use std::time::Duration;

use orchestrix_client::Client;
use orchestrix_core::JobState;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_testkit::{FaultProxy, TestDatabase};

use super::{enqueue, gated, reaches, until};

#[tokio::test(flavor = "multi_thread")]
async fn running_jobs_go_on_their_outcomes_are_told_later_and_work_resumes_by_itself() {
    let database = TestDatabase::create("away").unwrap();
    let direct = Client::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
    let config: tokio_postgres::Config = database.url().parse().unwrap();
    let port = config.get_ports()[0];
    let proxy = FaultProxy::start(([127, 0, 0, 1], port).into()).unwrap();
    let url = database.url().replace(&format!(":{port}/"), &format!(":{}/", proxy.address().port()));
    let options = PostgresOptions { connect_timeout: Duration::from_secs(1), ..PostgresOptions::new(url) };
    let through = Client::new(PostgresStore::open(options).await.unwrap());
    let (worker, keeper) = gated(&through);
    let worker = worker.concurrency(2).no_coordinator().start().unwrap();

    let running = enqueue(&direct, 1).await;
    keeper.next().await;
    proxy.cut();
    let waiting = enqueue(&direct, 2).await;
    keeper.let_through(1);
    until("the handler has ended", async || worker.running() == 0).await;
    assert_eq!(reaches(&direct, running.id(), JobState::Running).await.attempts, 0, "nobody could be told");
    assert!(keeper.nobody().await, "nothing new was claimed");

    proxy.restore();
    let told = reaches(&direct, running.id(), JobState::Completed).await;
    assert_eq!((told.attempts, told.leases), (1, 1), "the outcome was kept and told with its token");
    keeper.next().await;
    keeper.let_through(1);
    reaches(&direct, waiting.id(), JobState::Completed).await;
    let _ = worker.shutdown().await;
}
