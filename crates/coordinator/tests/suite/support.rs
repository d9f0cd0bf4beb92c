//! Nodes with short terms, and polling helpers.

use std::{sync::Arc, time::Duration};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions, CoordinatorStatus};
use orchestrix_core::{JobType, NewJob, NodeName, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob, NodeInfo, Store};

/// The time limit for events that must happen. Far longer than they take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// A leadership term that is short enough for tests.
pub(crate) const TERM: Duration = Duration::from_secs(2);

pub(crate) fn options(name: &str) -> CoordinatorOptions {
    let node = NodeInfo { name: NodeName::trusted(name), address: None, roles: vec!["coordinator".into()] };
    CoordinatorOptions { term: TERM, heartbeat: Duration::from_millis(500), ..CoordinatorOptions::new(node) }
}

pub(crate) fn start(store: &Arc<dyn Store>, name: &str) -> Coordinator {
    Coordinator::start(Arc::clone(store), options(name)).unwrap()
}

/// Polls until `poll` returns a value.
pub(crate) async fn wait_for<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, polling).await.unwrap_or_else(|_| panic!("{what}: did not happen within {TIMEOUT:?}"))
}

/// Waits until the node leads.
pub(crate) async fn leading(node: &Coordinator) -> CoordinatorStatus {
    wait_for("the node leads", async || Some(node.status()).filter(|status| status.leading)).await
}

pub(crate) fn job(job_type: &str) -> NewJob {
    NewJob::new(JobType::trusted(job_type))
}

pub(crate) async fn claim(store: &dyn Store) -> Option<ClaimedJob> {
    store.claim_jobs(&ClaimRequest::any(WorkerName::trusted("w"), 1)).await.unwrap().pop()
}
