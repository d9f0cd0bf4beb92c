//! Dependencies: a job starts after its parents have finished, never before.

use orchestrix_core::{JobId, JobState, Json, NewJob, Start};

use super::{Harness, fixture::*};
use orchestrix_store::{Fence, JobFilter, Outcome};

pub(super) async fn a_job_with_an_unfinished_parent_is_blocked(h: &Harness) {
    let waiting = h.enqueue(NewJob { start: Start::After(secs(60)), ..job("waiting") }).await;
    let running = h.start(job("running")).await;
    for parent in [waiting, running.id()] {
        let enqueued = h.store.enqueue_job(child_of([parent])).await.expect("a valid job");
        assert_eq!(enqueued.state, JobState::Blocked);
    }
    assert_eq!(h.claim_all().await, []);
}

pub(super) async fn a_parent_that_has_completed_is_not_waited_for(h: &Harness) {
    let parent = h.start(job("parent")).await;
    h.end(&parent, Outcome::DONE).await;
    let enqueued = h.store.enqueue_job(child_of([parent.id()])).await.expect("a valid job");
    assert_eq!(enqueued.state, JobState::Pending);
    assert_eq!(h.job(enqueued.id).await.depends_on, [parent.id()]);
}

pub(super) async fn an_unknown_parent_is_refused(h: &Harness) {
    assert_eq!(bad_fields(h.store.enqueue_job(child_of([unknown_id()])).await), ["dependsOn"]);
    assert_eq!(h.listed(&JobFilter::default()).await, []);
}

pub(super) async fn a_parent_that_was_pruned_is_refused(h: &Harness) {
    let parent = h.start(job("parent")).await;
    h.end(&parent, Outcome::DONE).await;
    h.prune_finished().await;
    assert_eq!(bad_fields(h.store.enqueue_job(child_of([parent.id()])).await), ["dependsOn"]);
}

pub(super) async fn only_the_last_parent_to_complete_unblocks(h: &Harness) {
    let first = h.start(job("first")).await;
    let second = h.start(job("second")).await;
    let child = h.enqueue(child_of([first.id(), second.id()])).await;
    h.end(&first, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Blocked);
    assert_eq!(h.claim_all().await, []);
    h.end(&second, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Pending);
    assert_eq!(h.claim_one().await.id(), child);
}

pub(super) async fn a_parent_named_twice_is_waited_for_once(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let child = h.enqueue(child_of([parent.id(), parent.id()])).await;
    assert_eq!(h.job(child).await.depends_on, [parent.id()]);
    h.end(&parent, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Pending);
}

pub(super) async fn a_parent_that_will_be_retried_is_still_waited_for(h: &Harness) {
    let parent = h.start(NewJob { timeout: Some(secs(300)), ..job("parent") }).await;
    let child = h.enqueue(child_of([parent.id()])).await;
    h.end(&parent, Outcome::fail("not yet")).await;
    assert_eq!(h.state(child).await, JobState::Blocked);
    let parent = h.start_again(parent.id()).await;
    h.lose(&parent).await;
    assert_eq!(h.state(child).await, JobState::Blocked);
    let parent = h.claim_one().await;
    h.end(&parent, Outcome::Snooze(secs(1))).await;
    assert_eq!(h.state(child).await, JobState::Blocked);
}

pub(super) async fn a_job_becomes_eligible_when_its_last_parent_completes(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let child = h.enqueue(child_of([parent.id()])).await;
    h.advance(secs(10)).await;
    h.end(&parent, Outcome::DONE).await;
    let now = h.now().await;
    let job = h.job(child).await;
    assert_eq!((job.state, job.eligible_at, job.updated_at), (JobState::Pending, now, now));
}

pub(super) async fn a_job_that_is_unblocked_before_its_time_waits_for_it(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let time = h.now().await + secs(60);
    let child = h.enqueue(NewJob { start: Start::At(time), ..child_of([parent.id()]) }).await;
    assert_eq!(h.state(child).await, JobState::Blocked);
    h.end(&parent, Outcome::DONE).await;
    let job = h.job(child).await;
    assert_eq!((job.state, job.eligible_at), (JobState::Scheduled, time));
}

pub(super) async fn a_blocked_job_is_not_unblocked_by_its_time(h: &Harness) {
    let parent = h.enqueue(job("parent")).await;
    let child = h.enqueue(NewJob { start: Start::After(secs(60)), ..child_of([parent]) }).await;
    h.advance(secs(120)).await;
    assert_eq!(h.promote().await.count, 0);
    assert_eq!(h.state(child).await, JobState::Blocked);
}

pub(super) async fn a_released_job_still_waits_for_its_parents(h: &Harness) {
    let first = h.start(job("first")).await;
    let second = h.start(job("second")).await;
    let child = h.enqueue(NewJob { hold: true, ..child_of([first.id(), second.id()]) }).await;
    h.end(&first, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Created);
    assert_eq!(h.store.release_held_job(child).await.expect("a held job"), JobState::Blocked);
    h.end(&second, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Pending);
}

pub(super) async fn a_child_receives_the_results_of_its_parents_in_the_order_of_their_ids(h: &Harness) {
    let mut parents = Vec::new();
    let mut expected = Vec::new();
    for result in [Some("1"), None, Some(r#"{"a": 2}"#), Some("null")] {
        let parent = h.start(job("parent")).await;
        let result = result.map(Json::trusted);
        h.end(&parent, Outcome::Complete { result: result.clone() }).await;
        parents.push(parent.id());
        expected.extend(result.map(|result| (parent.id(), result)));
    }
    let parents: [JobId; 4] = newest_first(parents).try_into().expect("four ids");
    expected.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(h.start(child_of(parents)).await.dependency_results, expected);
}

pub(super) async fn every_end_of_a_job_unblocks_its_dependents_at_once(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let child = h.enqueue(child_of([parent.id()])).await;
    h.end(&parent, Outcome::DONE).await;
    assert_eq!(h.state(child).await, JobState::Pending);
    assert_eq!(
        h.store.unblock_jobs(Fence::NONE, 1_000).await.expect("a valid limit").count,
        0,
        "nothing should be left to the sweep"
    );
}

pub(super) async fn a_parent_with_many_children_unblocks_each_once(h: &Harness) {
    let parent = h.start(job("parent")).await;
    let other = h.start(job("other")).await;
    h.enqueue_many(vec![child_of([parent.id()]); 1_200]).await;
    let waiting = h.enqueue_many(vec![child_of([parent.id(), other.id()]); 50]).await;
    h.end(&parent, Outcome::DONE).await;
    h.unblock_all().await;
    assert_eq!(h.claim_all().await.len(), 1_200);
    for id in waiting {
        assert_eq!(h.state(id).await, JobState::Blocked);
    }
    h.end(&other, Outcome::DONE).await;
    h.unblock_all().await;
    assert_eq!(h.claim_all().await.len(), 50);
}
