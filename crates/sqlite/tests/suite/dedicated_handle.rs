//! A store works on any runtime, even while the one that opened it is blocked.

use std::{sync::mpsc, thread};

use orchestrix_core::JobState;
use orchestrix_store::{LeaseStatus, Store};
use tokio::runtime::{Builder, Runtime};

use crate::{
    jobs::*,
    support::{Folder, TIMEOUT, open},
};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn reads_and_writes_work_while_the_runtime_that_opened_the_store_is_blocked() {
    let folder = Folder::new();
    let file = folder.file();
    let (send_store, receive_store) = mpsc::channel();
    let (unblock, blocked) = mpsc::channel::<()>();
    let opener = thread::spawn(move || {
        runtime().block_on(async move {
            let store = open(&file).await;
            enqueue(&store, job("t")).await;
            let token = claim(&store, 1).await[0];
            send_store.send((store, token)).unwrap();
            // Blocks the only thread of this runtime, like a handler that never yields.
            blocked.recv_timeout(2 * TIMEOUT).unwrap();
        });
    });
    let (store, token) = receive_store.recv_timeout(TIMEOUT).unwrap();
    runtime().block_on(async {
        let handle = store.dedicated_handle(1).unwrap();
        let statuses =
            tokio::time::timeout(TIMEOUT, handle.extend_leases(&[token])).await.expect("a reply in time").unwrap();
        assert!(matches!(statuses[..], [LeaseStatus::Held(_)]), "{statuses:?}");
        let job = tokio::time::timeout(TIMEOUT, handle.job(token.job)).await.expect("a reply in time").unwrap();
        assert_eq!(job.map(|job| job.state), Some(JobState::Running));
    });
    unblock.send(()).unwrap();
    opener.join().unwrap();
}
