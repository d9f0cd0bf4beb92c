//! Paused queues, and changed priorities.

use orchestrix_core::{Event, JobId, JobState, NewJob};

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimedJob, Outcome};

pub(super) async fn a_paused_queue_yields_no_jobs_until_it_is_resumed(h: &Harness) {
    let stopped = h.enqueue(NewJob { queue: queue("stopped"), priority: priority(1000), ..job("t") }).await;
    let going = h.enqueue(NewJob { queue: queue("going"), ..job("t") }).await;
    h.store.pause_queue(&queue("stopped")).await.expect("a store that answers");
    assert_eq!(h.claim_one().await.id(), going);
    h.store.resume_queue(&queue("stopped")).await.expect("a store that answers");
    assert_eq!(h.claim_one().await.id(), stopped);
}

pub(super) async fn running_jobs_of_a_paused_queue_continue(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.store.pause_queue(&queue("default")).await.expect("a store that answers");
    let enqueued = h.store.enqueue_job(job("t")).await.expect("a paused queue accepts jobs");
    assert_eq!(enqueued.state, JobState::Pending);
    assert_eq!(h.end(&claimed, Outcome::DONE).await, JobState::Completed);
    assert_eq!(h.claim_all().await, []);
}

pub(super) async fn paused_queues_are_listed_by_name(h: &Harness) {
    for name in ["b", "a", "b"] {
        h.store.pause_queue(&queue(name)).await.expect("a store that answers");
    }
    assert_eq!(h.store.paused_queues().await.expect("a store that answers"), [queue("a"), queue("b")]);
    for name in ["b", "never-paused"] {
        h.store.resume_queue(&queue(name)).await.expect("a store that answers");
    }
    assert_eq!(h.store.paused_queues().await.expect("a store that answers"), [queue("a")]);
}

pub(super) async fn a_job_with_raised_priority_is_claimed_first(h: &Harness) {
    let first = h.enqueue(job("first")).await;
    h.advance(secs(1)).await;
    let second = h.enqueue(job("second")).await;
    let before = h.job(second).await;
    h.advance(secs(1)).await;
    assert_eq!(h.store.reprioritize_job(second, priority(1)).await.expect("a pending job"), JobState::Pending);
    let after = h.job(second).await;
    assert_eq!((after.priority, after.eligible_at), (priority(1), before.eligible_at));
    assert_eq!(after.updated_at, before.updated_at, "its state did not change");
    let order: Vec<JobId> = h.claim_all().await.iter().map(ClaimedJob::id).collect();
    assert_eq!(order, [second, first]);
}

pub(super) async fn a_priority_set_during_an_attempt_persists(h: &Harness) {
    let claimed = h.start(job("t")).await;
    assert_eq!(h.store.reprioritize_job(claimed.id(), priority(-5)).await.expect("a running job"), JobState::Running);
    h.end(&claimed, Outcome::Release).await;
    assert_eq!(h.claim_one().await.priority, priority(-5));
}

pub(super) async fn the_priority_of_a_finished_job_cannot_change(h: &Harness) {
    let done = h.start(job("done")).await;
    h.end(&done, Outcome::DONE).await;
    let dead = h.dead(job("dead")).await;
    for (id, state) in [(done.id(), JobState::Completed), (dead, JobState::Dead)] {
        assert_eq!(illegal(h.store.reprioritize_job(id, priority(1)).await), (state, Event::Promote));
        assert_eq!(h.job(id).await.priority, priority(0));
    }
    let id = unknown_id();
    assert!(not_found(&h.store.reprioritize_job(id, priority(1)).await, id));
}
