//! Node heartbeats, which keep this node in the list of nodes that operators see.

use std::time::Duration;

use orchestrix_store::Store;
use tokio::time::{sleep, timeout};

use crate::{
    jitter::{jittered, retry_backoff},
    options::CoordinatorOptions,
    status::StatusRecorder,
};

/// Sends heartbeats repeatedly. Never returns.
pub(crate) async fn run(store: &dyn Store, options: &CoordinatorOptions, status: &StatusRecorder) {
    let mut backoff = retry_backoff();
    loop {
        let result = store.heartbeat_node(&options.node).await;
        status.record_contact(result.as_ref().map(|_| ()));
        let pause = match result {
            Ok(()) => {
                backoff.reset();
                jittered(options.heartbeat)
            }
            Err(error) => {
                tracing::warn!(node = %options.name(), %error, "node heartbeat failed");
                jittered(backoff.next_delay())
            }
        };
        sleep(pause).await;
    }
}

/// The time limit for removing the node's registration.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Removes the node's registration.
pub(crate) async fn leave(store: &dyn Store, options: &CoordinatorOptions) {
    match timeout(REMOVE_TIMEOUT, store.remove_node(options.name())).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "node registration was not removed; the leader removes it later"),
        Err(_) => tracing::warn!("node registration was not removed in time; the leader removes it later"),
    }
}
