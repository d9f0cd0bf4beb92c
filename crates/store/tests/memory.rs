//! The in-memory store keeps every promise of a store.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::Timestamp;
use orchestrix_store::{
    Clock, ManualClock, MemoryStore,
    conformance::{Harness, TestClock},
};

struct Manual(Arc<ManualClock>);

#[async_trait]
impl TestClock for Manual {
    async fn advance(&self, by: Duration) {
        self.0.advance(by);
    }

    async fn now(&self) -> Timestamp {
        self.0.now()
    }
}

async fn harness() -> Harness {
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().expect("a time")));
    let store = Arc::new(MemoryStore::with_clock(clock.clone()));
    Harness { store, clock: Box::new(Manual(clock)), guard: Box::new(()) }
}

orchestrix_store::conformance_suite!(harness);
