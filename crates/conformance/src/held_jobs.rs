//! Held jobs and their release.

use orchestrix_core::{Event, JobState, NewJob, Readiness, Start};

use super::{Harness, fixture::*};
use orchestrix_store::Outcome;

pub(super) async fn a_released_job_is_eligible_from_then_on(h: &Harness) {
    let id = h.enqueue(NewJob { hold: true, ..job("t") }).await;
    h.advance(secs(10)).await;
    assert_eq!(h.claim_all().await, []);
    assert_eq!(h.store.release_held_job(id).await.expect("a held job"), JobState::Pending);
    let now = h.now().await;
    let job = h.job(id).await;
    assert_eq!((job.state, job.eligible_at, job.updated_at), (JobState::Pending, now, now));
    assert_eq!(h.claim_one().await.id(), id);
}

pub(super) async fn a_job_released_before_its_time_waits_for_it(h: &Harness) {
    let time = h.now().await + secs(60);
    let id = h.enqueue(NewJob { hold: true, start: Start::At(time), ..job("t") }).await;
    h.advance(secs(10)).await;
    assert_eq!(h.store.release_held_job(id).await.expect("a held job"), JobState::Scheduled);
    assert_eq!(h.job(id).await.eligible_at, time);
}

pub(super) async fn a_held_job_is_not_released_by_its_time(h: &Harness) {
    let id = h.enqueue(NewJob { hold: true, start: Start::After(secs(60)), ..job("t") }).await;
    h.advance(secs(120)).await;
    assert_eq!(h.promote().await.count, 0);
    assert_eq!(h.state(id).await, JobState::Created);
    assert_eq!(h.store.release_held_job(id).await.expect("a held job"), JobState::Pending);
}

pub(super) async fn only_a_held_job_can_be_released(h: &Harness) {
    let done = h.start(job("done")).await;
    h.end(&done, Outcome::DONE).await;
    let running = h.start(job("running")).await;
    let pending = h.enqueue(job("pending")).await;
    let scheduled = h.enqueue(NewJob { start: Start::After(secs(60)), ..job("scheduled") }).await;
    let blocked = h.enqueue(child_of([pending])).await;
    let jobs = [
        (done.id(), JobState::Completed),
        (running.id(), JobState::Running),
        (pending, JobState::Pending),
        (scheduled, JobState::Scheduled),
        (blocked, JobState::Blocked),
    ];
    for (id, state) in jobs {
        let (from, event) = illegal(h.store.release_held_job(id).await);
        assert_eq!(from, state);
        assert_eq!(event, Event::Release(Readiness::Ready), "the refusal does not depend on what the job waits for");
    }
    let id = unknown_id();
    assert!(not_found(&h.store.release_held_job(id).await, id));
}
