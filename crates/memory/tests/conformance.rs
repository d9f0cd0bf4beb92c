//! The in-memory store keeps every promise of a store.

use std::sync::Arc;

use orchestrix_conformance::Harness;
use orchestrix_memory::MemoryStore;
use orchestrix_store::ManualClock;

async fn harness() -> Harness {
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().expect("a time")));
    let store = Arc::new(MemoryStore::with_clock(clock.clone()));
    Harness { store, clock: Box::new(clock), guard: Box::new(()) }
}

orchestrix_conformance::conformance_suite!(harness);
