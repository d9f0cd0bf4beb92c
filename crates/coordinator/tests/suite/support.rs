//! Nodes for tests, with short terms, and patience.

use std::{sync::Arc, time::Duration};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions, CoordinatorStatus};
use orchestrix_core::{JobType, NewJob, NodeName, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob, NodeInfo, Store};

/// How long to wait for what must come: far longer than it takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// A term that tests can wait for.
pub(crate) const TERM: Duration = Duration::from_secs(2);

pub(crate) fn options(name: &str) -> CoordinatorOptions {
    let node = NodeInfo { name: NodeName::trusted(name), address: None, roles: vec!["coordinator".into()] };
    CoordinatorOptions { term: TERM, heartbeat: Duration::from_millis(500), ..CoordinatorOptions::new(node) }
}

pub(crate) fn start(store: &Arc<dyn Store>, name: &str) -> Coordinator {
    Coordinator::start(Arc::clone(store), options(name)).unwrap()
}

/// Waits until `found` finds something.
pub(crate) async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let look = async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, look).await.unwrap_or_else(|_| panic!("{what}: not within {LIMIT:?}"))
}

pub(crate) async fn leading(node: &Coordinator) -> CoordinatorStatus {
    until("it leads", async || Some(node.status()).filter(|status| status.leading)).await
}

pub(crate) fn job(job_type: &str) -> NewJob {
    NewJob::new(JobType::trusted(job_type))
}

pub(crate) async fn claim(store: &dyn Store) -> Option<ClaimedJob> {
    store.claim_jobs(&ClaimRequest::any(WorkerName::trusted("w"), 1)).await.unwrap().pop()
}
