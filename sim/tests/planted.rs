//! The comparison bites: one planted difference is found and cut down to the few steps that show it.

mod forgetful;

use std::sync::Arc;

use async_trait::async_trait;
use orchestrix_conformance::Harness;
use orchestrix_core::Timestamp;
use orchestrix_sim::{Failure, Source, Step, check, stores::Memory};

use crate::forgetful::{Forgetful, Slip};

/// Stores in memory that forget one thing.
struct Planted(Slip);

#[async_trait]
impl Source for Planted {
    fn name(&self) -> &'static str {
        "forgetful"
    }

    async fn fresh(&self, start: Timestamp) -> Harness {
        let harness = Memory.fresh(start).await;
        Harness { store: Arc::new(Forgetful { store: harness.store, slip: self.0 }), ..harness }
    }
}

/// The first failure of a few seeds.
async fn find(slip: Slip) -> Failure {
    let stores: [Box<dyn Source>; 2] = [Box::new(Memory), Box::new(Planted(slip))];
    for seed in 0..20 {
        if let Err(failure) = check(&stores, seed).await {
            return failure;
        }
    }
    panic!("{slip:?} was not found in 20 seeds");
}

#[tokio::test]
async fn a_priority_that_is_not_kept_is_found_in_the_state() {
    let Failure { steps, difference } = find(Slip::Priority).await;
    assert!(matches!(&steps[..], [Step::Enqueue(_) | Step::EnqueueMany(_), Step::Reprioritize(..)]), "{steps:?}");
    assert_eq!(difference.said.len(), 2);
    assert!(difference.to_string().contains("forgetful said: "), "{difference}");
}

#[tokio::test]
async fn a_pause_that_is_not_kept_is_found() {
    let Failure { steps, .. } = find(Slip::Pause).await;
    assert!(matches!(&steps[..], [Step::Pause(_)]), "{steps:?}");
}

#[tokio::test]
async fn a_crash_loop_that_is_counted_wrong_is_found() {
    let Failure { steps, .. } = find(Slip::CrashLoop).await;
    assert!(steps.len() < 12, "{steps:?}");
    assert!(steps.iter().any(|step| matches!(step, Step::Reap(..))), "{steps:?}");
}

#[tokio::test]
async fn a_store_is_like_itself() {
    let stores: [Box<dyn Source>; 2] = [Box::new(Memory), Box::new(Memory)];
    for seed in 0..20 {
        assert!(check(&stores, seed).await.is_ok(), "seed {seed}");
    }
}
