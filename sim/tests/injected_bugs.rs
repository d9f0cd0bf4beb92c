//! Proves that the comparison works: it finds an injected bug and shrinks the sequence to the few steps that show it.

mod faulty_store;

use std::sync::Arc;

use async_trait::async_trait;
use orchestrix_conformance::Harness;
use orchestrix_core::Timestamp;
use orchestrix_sim::{Failure, STEPS, Step, StoreFactory, check, compare, generate, stores::Memory};

use crate::faulty_store::{Bug, FaultyStore};

/// Creates memory stores with one bug.
struct FaultyMemory(Bug);

#[async_trait]
impl StoreFactory for FaultyMemory {
    fn name(&self) -> &'static str {
        "faulty"
    }

    async fn create(&self, start: Timestamp) -> Harness {
        let harness = Memory.create(start).await;
        Harness { store: Arc::new(FaultyStore { store: harness.store, bug: self.0 }), ..harness }
    }
}

/// The first failure within 20 seeds.
async fn find(bug: Bug) -> Failure {
    let stores: [Box<dyn StoreFactory>; 2] = [Box::new(Memory), Box::new(FaultyMemory(bug))];
    for seed in 0..20 {
        if let Err(failure) = check(&stores, seed).await {
            return failure;
        }
    }
    panic!("{bug:?} was not found in 20 seeds");
}

#[tokio::test]
async fn a_lost_priority_is_found_in_the_state() {
    let Failure { steps, difference } = find(Bug::Priority).await;
    assert!(matches!(&steps[..], [Step::Enqueue(_) | Step::EnqueueMany(_), Step::Reprioritize(..)]), "{steps:?}");
    assert_eq!(difference.answers.len(), 2);
    assert!(difference.to_string().contains("faulty: "), "{difference}");
}

#[tokio::test]
async fn a_lost_pause_is_found() {
    let Failure { steps, .. } = find(Bug::Pause).await;
    assert!(matches!(&steps[..], [Step::PauseQueue(_)]), "{steps:?}");
}

#[tokio::test]
async fn a_wrong_crash_loop_count_is_found() {
    let Failure { steps, .. } = find(Bug::CrashLoop).await;
    assert!(steps.len() < 12, "{steps:?}");
    assert!(steps.iter().any(|step| matches!(step, Step::ReapLeases(..))), "{steps:?}");
}

#[tokio::test]
async fn jobs_in_the_wrong_order_are_found() {
    let Failure { steps, difference } = find(Bug::ClaimOrder).await;
    assert!(matches!(&steps[..], [.., Step::Claim { .. }]), "{steps:?}");
    assert!(difference.to_string().contains("out of order"), "{difference}");
}

#[tokio::test]
async fn forgotten_turns_are_found() {
    let Failure { steps, .. } = find(Bug::Turns).await;
    assert!(matches!(&steps[..], [.., Step::Claim { .. }, Step::Claim { .. }]), "{steps:?}");
}

#[tokio::test]
async fn jobs_hidden_behind_many_lanes_are_found() {
    let stores: [Box<dyn StoreFactory>; 2] = [Box::new(Memory), Box::new(FaultyMemory(Bug::FewLanes))];
    // Not shrunk, because every run of so many jobs takes long.
    let wide = (0..20).map(|seed| generate(seed, STEPS)).filter(|steps| matches!(steps[0], Step::EnqueueWide(_)));
    for steps in wide {
        if let Some(difference) = compare(&stores, &steps).await {
            return assert!(difference.question.contains("queues: None"), "{difference}");
        }
    }
    panic!("hidden jobs were not found in 20 seeds");
}

#[tokio::test]
async fn two_stores_of_the_same_kind_do_not_differ() {
    let stores: [Box<dyn StoreFactory>; 2] = [Box::new(Memory), Box::new(Memory)];
    for seed in 0..20 {
        assert!(check(&stores, seed).await.is_ok(), "seed {seed}");
    }
}
