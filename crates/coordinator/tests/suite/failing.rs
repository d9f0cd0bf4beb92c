//! A service that cannot do its work says so, and stops no other.

use std::{sync::Arc, time::Duration};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::{NewJob, Start};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::Store;
use orchestrix_testkit::{TestDatabase, psql};

use crate::support::{claim, job, leading, options, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_fails_shows_it_and_stops_no_other_until_it_is_mended() {
    let database = tokio::task::block_in_place(|| TestDatabase::create("failing").unwrap());
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
    let options = CoordinatorOptions { dead_after: Duration::from_millis(600), ..options("a") };
    let node = Coordinator::start(Arc::clone(&store), options).unwrap();
    leading(&node).await;
    until("all is well", async || {
        let status = node.status();
        (status.services.get("forget")?.runs > 0 && status.is_healthy()).then_some(())
    })
    .await;

    // Only the service that forgets workers needs their table here.
    let sql = |sql: &str| tokio::task::block_in_place(|| psql(database.url(), sql).unwrap());
    sql("ALTER TABLE orchestrix.worker RENAME TO worker_away");
    let forget = async || Some(node.status().services["forget"].clone()).filter(|forget| forget.failing > 1);
    let failing = until("it keeps failing", forget).await;
    assert!(failing.error.is_some_and(|error| error.contains("orchestrix.worker")));
    assert!(!node.status().is_healthy());
    assert!(node.status().leading, "nothing to step down for");

    let start = Start::After(Duration::from_millis(50));
    store.enqueue_job(NewJob { start, ..job("later") }).await.unwrap();
    until("it is promoted all the same", async || claim(&*store).await).await;
    assert_eq!(node.status().services["promote"].failing, 0);
    assert!(node.status().services["forget"].failing > 0);

    sql("ALTER TABLE orchestrix.worker_away RENAME TO worker");
    until("it is mended", async || node.status().is_healthy().then_some(())).await;
    let mended = node.status().services["forget"].clone();
    assert_eq!((mended.failing, mended.error), (0, None));
    node.shutdown().await;
}
