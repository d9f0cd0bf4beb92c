//! A store answers on any runtime, whatever becomes of the one it was opened on.

use std::{sync::mpsc, thread};

use orchestrix_core::JobState;
use orchestrix_store::{LeaseStatus, Store};
use tokio::runtime::{Builder, Runtime};

use crate::{
    jobs::*,
    support::{Folder, LIMIT, open},
};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn reads_and_writes_go_on_while_the_runtime_of_the_store_is_blocked() {
    let folder = Folder::new();
    let file = folder.file();
    let (hand_over, taken) = mpsc::channel();
    let (free, blocked) = mpsc::channel::<()>();
    let opener = thread::spawn(move || {
        runtime().block_on(async move {
            let store = open(&file).await;
            enqueue(&store, job("t")).await;
            let token = claim(&store, 1).await[0];
            hand_over.send((store, token)).unwrap();
            // As a handler does that never yields: the only thread of this runtime is stuck.
            blocked.recv_timeout(2 * LIMIT).unwrap();
        });
    });
    let (store, token) = taken.recv_timeout(LIMIT).unwrap();
    runtime().block_on(async {
        let apart = store.dedicated_handle(1).unwrap();
        let beat = tokio::time::timeout(LIMIT, apart.extend_leases(&[token])).await.expect("an answer").unwrap();
        assert!(matches!(beat[..], [LeaseStatus::Held(_)]), "{beat:?}");
        let job = tokio::time::timeout(LIMIT, apart.job(token.job)).await.expect("an answer").unwrap();
        assert_eq!(job.map(|job| job.state), Some(JobState::Running));
    });
    free.send(()).unwrap();
    opener.join().unwrap();
}
