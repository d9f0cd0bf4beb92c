//! The conformance suite of all stores, on a manual clock.

use std::sync::Arc;

use orchestrix_conformance::Harness;
use orchestrix_core::Timestamp;
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::ManualClock;

use crate::{
    consistency,
    support::{Folder, connect},
};

/// Checks the lanes of the file after the test, and deletes it.
struct CheckedFolder(Folder);

impl Drop for CheckedFolder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            consistency::assert_lanes_consistent(&connect(&self.0.file()));
        }
    }
}

async fn harness() -> Harness {
    let folder = Folder::new();
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    let options = SqliteOptions { clock: clock.clone(), first_turn: 0, ..SqliteOptions::new(folder.file()) };
    let store = SqliteStore::open(options).await.expect("a store");
    Harness { store: Arc::new(store), clock: Box::new(clock), guard: Box::new(CheckedFolder(folder)) }
}

orchestrix_conformance::conformance_suite!(harness);
