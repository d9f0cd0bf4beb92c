//! Failed parents: their children are cancelled, run nevertheless, or are held, by policy.

use orchestrix_core::{DependsOn, JobId, JobState, NewJob, OnDependencyFailure, Start};

use super::{Harness, fixture::*};
use orchestrix_store::Outcome;

fn child_that(policy: OnDependencyFailure, parent: JobId) -> NewJob {
    NewJob { on_dependency_failure: policy, ..child_of([parent]) }
}

async fn assert_cancelled_with_its_parent(h: &Harness, id: JobId) {
    let now = h.now().await;
    let job = h.job(id).await;
    assert_eq!((job.state, job.reason.as_deref()), (JobState::Cancelled, Some("dependency_failed")));
    assert_eq!((job.finished_at, job.updated_at), (Some(now), now));
}

pub(super) async fn a_dead_parent_cancels_its_children_by_default(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let child = h.enqueue(child_of([parent.id()])).await;
    h.advance(secs(1)).await;
    h.end(&parent, fatal("no use")).await;
    assert_cancelled_with_its_parent(h, child).await;
}

pub(super) async fn a_cancelled_parent_counts_as_failed(h: &Harness) {
    let parent = h.enqueue(job("parent")).await;
    let child = h.enqueue(child_of([parent])).await;
    h.store.cancel_job(parent).await.expect("a waiting job");
    assert_cancelled_with_its_parent(h, child).await;
}

pub(super) async fn a_held_child_is_cancelled_too(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let child = h.enqueue(NewJob { hold: true, ..child_of([parent.id()]) }).await;
    h.end(&parent, fatal("no use")).await;
    assert_cancelled_with_its_parent(h, child).await;
}

pub(super) async fn one_failed_parent_of_many_is_enough_to_cancel(h: &Harness) {
    let failing = h.start(job("failing")).await;
    let other = h.start(job("other")).await;
    let child = h.enqueue(child_of([failing.id(), other.id()])).await;
    h.end(&failing, fatal("no use")).await;
    assert_cancelled_with_its_parent(h, child).await;
    h.end(&other, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Cancelled);
}

pub(super) async fn a_cancel_propagates_down_a_long_chain(h: &Harness) {
    let root = h.start(job("root")).await;
    let mut chain = vec![root.id()];
    for _ in 0..300 {
        chain.push(h.enqueue(child_of([chain[chain.len() - 1]])).await);
    }
    h.end(&root, fatal("no use")).await;
    h.unblock_all().await;
    for id in &chain[1..] {
        assert_cancelled_with_its_parent(h, *id).await;
    }
}

pub(super) async fn a_cancel_ends_at_jobs_that_run_or_are_held(h: &Harness) {
    let root = h.start(job("root")).await;
    let cancelled = h.enqueue(child_of([root.id()])).await;
    let also_cancelled = h.enqueue(child_of([cancelled])).await;
    let runs = h.enqueue(child_that(OnDependencyFailure::Run, also_cancelled)).await;
    let held = h.enqueue(child_that(OnDependencyFailure::Hold, cancelled)).await;
    let waits = h.enqueue(child_of([runs, also_cancelled])).await;
    let still_waits = h.enqueue(child_of([held])).await;
    h.end(&root, fatal("no use")).await;
    assert_cancelled_with_its_parent(h, cancelled).await;
    assert_cancelled_with_its_parent(h, also_cancelled).await;
    assert_cancelled_with_its_parent(h, waits).await;
    assert_eq!(h.state(held).await, JobState::Created);
    assert_eq!(h.state(still_waits).await, JobState::Blocked);
    assert_eq!(h.claim_one().await.id(), runs);
}

pub(super) async fn a_cancel_reaches_a_job_by_every_path_and_cancels_it_once(h: &Harness) {
    let root = h.start(job("root")).await;
    let mut level = vec![root.id()];
    let mut all = Vec::new();
    for _ in 0..5 {
        let parents: Vec<JobId> = std::mem::take(&mut level);
        for _ in 0..2 {
            let depends_on = parents.iter().copied().map(DependsOn::Job).collect();
            level.push(h.enqueue(NewJob { depends_on, ..job("diamond") }).await);
        }
        all.extend(&level);
    }
    h.end(&root, fatal("no use")).await;
    for id in all {
        assert_cancelled_with_its_parent(h, id).await;
    }
}

pub(super) async fn sweeps_that_end_jobs_settle_their_children(h: &Harness) {
    let expiring = h.enqueue(NewJob { expires_at: Some(h.now().await + secs(5)), hold: true, ..job("expiring") }).await;
    let crashing = h.start(NewJob { max_attempts: 1, lease: secs(5), ..job("crashing") }).await;
    let slow = h.start(NewJob { max_attempts: 1, timeout: Some(secs(5)), ..job("slow") }).await;
    let mut children = Vec::new();
    for parent in [expiring, crashing.id(), slow.id()] {
        children.push(h.enqueue(child_of([parent])).await);
    }
    h.advance(secs(5)).await;
    assert_eq!((h.expire().await.count, h.reap().await.count, h.time_out().await.count), (1, 1, 1));
    for child in children {
        assert_cancelled_with_its_parent(h, child).await;
    }
}

pub(super) async fn a_child_with_policy_run_runs_after_a_failed_parent(h: &Harness) {
    let failing = h.start(job("failing")).await;
    let other = h.start(job("other")).await;
    let request = NewJob { on_dependency_failure: OnDependencyFailure::Run, ..child_of([failing.id(), other.id()]) };
    let child = h.enqueue(request).await;
    h.end(&failing, fatal("no use")).await;
    assert_eq!(h.state(child).await, JobState::Blocked);
    h.end(&other, Outcome::DONE).await;
    let claimed = h.claim_one().await;
    assert_eq!((claimed.id(), claimed.dependency_results), (child, vec![]));
}

pub(super) async fn a_child_with_policy_hold_waits_for_a_release_and_then_for_its_other_parents(h: &Harness) {
    let failing = h.start(job("failing")).await;
    let other = h.start(job("other")).await;
    let request = NewJob { on_dependency_failure: OnDependencyFailure::Hold, ..child_of([failing.id(), other.id()]) };
    let child = h.enqueue(request).await;
    h.end(&failing, fatal("no use")).await;
    assert_eq!(h.state(child).await, JobState::Created);
    assert_eq!(h.store.release_held_job(child).await.expect("a held job"), JobState::Blocked);
    h.end(&other, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Pending);
}

pub(super) async fn a_held_child_stays_held_when_its_last_parent_completes(h: &Harness) {
    let failing = h.start(job("failing")).await;
    let other = h.start(job("other")).await;
    let request = NewJob { on_dependency_failure: OnDependencyFailure::Hold, ..child_of([failing.id(), other.id()]) };
    let child = h.enqueue(request).await;
    h.end(&failing, fatal("no use")).await;
    h.end(&other, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Created);
    assert_eq!(h.store.release_held_job(child).await.expect("a held job"), JobState::Pending);
}

pub(super) async fn a_parent_that_failed_before_the_enqueue_takes_effect_at_once(h: &Harness) {
    let dead = h.dead(job("dead")).await;
    let cancelled = h.enqueue(job("cancelled")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    for parent in [dead, cancelled] {
        for (policy, expected) in [
            (OnDependencyFailure::Cancel, JobState::Cancelled),
            (OnDependencyFailure::Run, JobState::Pending),
            (OnDependencyFailure::Hold, JobState::Created),
        ] {
            let enqueued = h.store.enqueue_job(child_that(policy, parent)).await.expect("a valid job");
            assert_eq!(enqueued.state, expected, "{policy:?}");
            assert_eq!(h.state(enqueued.id).await, expected, "{policy:?}");
            if expected == JobState::Cancelled {
                assert_cancelled_with_its_parent(h, enqueued.id).await;
            }
        }
    }
}

pub(super) async fn a_failed_parent_is_not_waited_for_after_a_release(h: &Harness) {
    let dead = h.dead(job("dead")).await;
    let other = h.start(job("other")).await;
    let request = NewJob { on_dependency_failure: OnDependencyFailure::Hold, ..child_of([dead, other.id()]) };
    let child = h.enqueue(request).await;
    assert_eq!(h.state(child).await, JobState::Created);
    assert_eq!(h.store.release_held_job(child).await.expect("a held job"), JobState::Blocked);
    h.end(&other, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Pending);
}

pub(super) async fn an_existing_failed_parent_cancels_a_whole_chain_of_one_call(h: &Harness) {
    let dead = h.dead(job("dead")).await;
    let jobs = vec![
        NewJob { depends_on: vec![reference("b")], ..job("c") },
        NewJob { reference: Some("b".into()), depends_on: vec![reference("a")], ..job("b") },
        NewJob { reference: Some("a".into()), ..child_of([dead]) },
        NewJob {
            depends_on: vec![reference("a")],
            on_dependency_failure: OnDependencyFailure::Run,
            start: Start::After(secs(1)),
            ..job("d")
        },
    ];
    let enqueued = h.store.enqueue_jobs(jobs).await.expect("a graph");
    let states: Vec<JobState> = enqueued.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::Cancelled, JobState::Cancelled, JobState::Cancelled, JobState::Scheduled]);
    for job in &enqueued[..3] {
        assert_cancelled_with_its_parent(h, job.id).await;
    }
}

pub(super) async fn a_cancelled_child_stays_cancelled_when_its_parent_is_retried(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let child = h.enqueue(child_of([parent.id()])).await;
    h.end(&parent, fatal("no use")).await;
    h.store.retry_job(parent.id()).await.expect("a dead job");
    let parent = h.claim_one().await;
    h.end(&parent, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Cancelled);
}

pub(super) async fn a_child_cancelled_on_request_stays_cancelled_when_its_parent_completes(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let child = h.enqueue(child_of([parent.id()])).await;
    h.store.cancel_job(child).await.expect("a waiting job");
    h.end(&parent, Outcome::DONE).await;
    let job = h.job(child).await;
    assert_eq!((job.state, job.reason.as_deref()), (JobState::Cancelled, Some("requested")));
}

pub(super) async fn a_child_that_was_retried_no_longer_waits(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let child = h.enqueue(child_of([parent.id()])).await;
    h.store.cancel_job(child).await.expect("a waiting job");
    assert_eq!(h.store.retry_job(child).await.expect("a cancelled job"), JobState::Pending);
    h.end(&parent, fatal("no use")).await;
    assert_eq!(h.claim_one().await.id(), child, "the parent's failure should not affect it any more");
}
