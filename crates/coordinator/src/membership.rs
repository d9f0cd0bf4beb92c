//! Being known: a node shows that it lives, so that operators see who is there.

use std::time::Duration;

use orchestrix_store::Store;
use tokio::time::{sleep, timeout};

use crate::{
    options::CoordinatorOptions,
    pace::{BackOff, jittered},
    status::Board,
};

/// Shows it again and again; ends only by being dropped.
pub(crate) async fn run(store: &dyn Store, options: &CoordinatorOptions, board: &Board) {
    let mut back_off = BackOff::new();
    loop {
        let answer = store.heartbeat_node(&options.node).await;
        board.contact(answer.as_ref().map(|_| ()));
        let pause = match answer {
            Ok(()) => {
                back_off.succeeded();
                jittered(options.heartbeat)
            }
            Err(error) => {
                tracing::warn!(node = %options.name(), %error, "a heartbeat was not heard");
                back_off.failed()
            }
        };
        sleep(pause).await;
    }
}

/// How long a node that stops tries to say so.
const GOODBYE: Duration = Duration::from_secs(2);

/// Says that this node stops.
pub(crate) async fn leave(store: &dyn Store, options: &CoordinatorOptions) {
    match timeout(GOODBYE, store.remove_node(options.name())).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "could not say that this node stops; it will be forgotten"),
        Err(_) => tracing::warn!("could not say in time that this node stops; it will be forgotten"),
    }
}
