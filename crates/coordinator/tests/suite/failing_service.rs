//! A failing service reports its failures and stops no other service.

use std::{sync::Arc, time::Duration};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::{NewJob, Start};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::Store;
use orchestrix_testkit::{TestDatabase, psql};

use crate::support::{claim, job, leading, options, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_service_is_reported_until_it_recovers_and_stops_no_other() {
    let database = tokio::task::block_in_place(|| TestDatabase::create("failing").unwrap());
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
    let options = CoordinatorOptions { dead_after: Duration::from_millis(600), ..options("a") };
    let node = Coordinator::start(Arc::clone(&store), options).unwrap();
    leading(&node).await;
    wait_for("the node is healthy", async || {
        let status = node.status();
        (status.services.get("forget_members")?.runs > 0 && status.is_healthy()).then_some(())
    })
    .await;

    // Only `forget_members` needs this table here.
    let sql = |sql: &str| tokio::task::block_in_place(|| psql(database.url(), sql).unwrap());
    sql("ALTER TABLE orchestrix.worker RENAME TO worker_renamed");
    let keeps_failing = async || {
        Some(node.status().services["forget_members"].clone()).filter(|forget| forget.consecutive_failures > 1)
    };
    let failing = wait_for("the service keeps failing", keeps_failing).await;
    assert!(failing.error.is_some_and(|error| error.contains("orchestrix.worker")));
    assert!(!node.status().is_healthy());
    assert!(node.status().leading, "a failing service does not depose the leader");

    let start = Start::After(Duration::from_millis(50));
    store.enqueue_job(NewJob { start, ..job("later") }).await.unwrap();
    wait_for("the job is promoted", async || claim(&*store).await).await;
    assert_eq!(node.status().services["promote_jobs"].consecutive_failures, 0);
    assert!(node.status().services["forget_members"].consecutive_failures > 0);

    sql("ALTER TABLE orchestrix.worker_renamed RENAME TO worker");
    wait_for("the node is healthy again", async || node.status().is_healthy().then_some(())).await;
    let recovered = node.status().services["forget_members"].clone();
    assert_eq!((recovered.consecutive_failures, recovered.error), (0, None));
    node.shutdown().await;
}
