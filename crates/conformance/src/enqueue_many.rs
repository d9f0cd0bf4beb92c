//! Enqueue of several jobs: all of them or none.

use orchestrix_core::{JobState, NewJob, Start};

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimRequest, ClaimedJob, JobFilter, Outcome};

pub(super) async fn a_call_without_jobs_returns_nothing(h: &Harness) {
    assert_eq!(h.store.enqueue_jobs(vec![]).await.expect("a valid call"), []);
}

pub(super) async fn results_are_in_the_order_of_the_jobs(h: &Harness) {
    let jobs = vec![job("a"), NewJob { start: Start::After(secs(1)), ..job("b") }, NewJob { hold: true, ..job("c") }];
    let enqueued = h.store.enqueue_jobs(jobs).await.expect("valid jobs");
    let states: Vec<JobState> = enqueued.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::Pending, JobState::Scheduled, JobState::Created]);
    for (job, expected) in enqueued.iter().zip(["a", "b", "c"]) {
        assert_eq!(h.job(job.id).await.job_type.as_str(), expected);
        assert_eq!((h.state(job.id).await, job.duplicate), (job.state, false));
    }
}

pub(super) async fn bad_fields_are_named_by_position_and_refuse_the_whole_call(h: &Harness) {
    let jobs = vec![job("a"), NewJob { max_attempts: 0, ..job("b") }, NewJob { lease: secs(0), ..job("c") }];
    assert_eq!(bad_fields(h.store.enqueue_jobs(jobs).await), ["jobs[1].maxAttempts", "jobs[2].leaseSeconds"]);
    assert_eq!(h.listed(&JobFilter::default()).await, []);
}

pub(super) async fn an_unknown_parent_refuses_the_whole_call(h: &Harness) {
    let jobs = vec![job("a"), child_of([unknown_id()])];
    assert_eq!(bad_fields(h.store.enqueue_jobs(jobs).await), ["jobs[1].dependsOn"]);
    assert_eq!(h.listed(&JobFilter::default()).await, []);
}

pub(super) async fn a_call_may_enqueue_ten_thousand_jobs_and_no_more(h: &Harness) {
    let many = vec![job("t"); NewJob::MAX_BATCH + 1];
    assert_eq!(bad_fields(h.store.enqueue_jobs(many).await), ["jobs"]);
    let ids = h.enqueue_many(vec![job("t"); NewJob::MAX_BATCH]).await;
    assert_eq!(ids.len(), NewJob::MAX_BATCH);
    let claimed = h.claim(&ClaimRequest::any(worker("w"), ClaimRequest::MAX_LIMIT)).await;
    assert_eq!(claimed.len(), NewJob::MAX_BATCH);
}

pub(super) async fn jobs_of_one_call_can_depend_on_each_other(h: &Harness) {
    // A diamond, listed bottom first: the order of the jobs need not follow the dependencies.
    let named = |name: &str, parents: &[&str]| NewJob {
        reference: Some(name.into()),
        depends_on: parents.iter().map(|parent| reference(parent)).collect(),
        ..job(name)
    };
    let jobs = vec![named("d", &["b", "c"]), named("b", &["a"]), named("c", &["a"]), named("a", &[])];
    let enqueued = h.store.enqueue_jobs(jobs).await.expect("a graph");
    let states: Vec<JobState> = enqueued.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::Blocked, JobState::Blocked, JobState::Blocked, JobState::Pending]);
    let [d, b, c, a] = [0, 1, 2, 3].map(|i: usize| enqueued[i].id);
    let mut parents = vec![b, c];
    parents.sort_unstable();
    assert_eq!(h.job(d).await.depends_on, parents);
    let mut rounds = Vec::new();
    for _ in 0..3 {
        let claimed = h.claim_all().await;
        let mut ids: Vec<_> = claimed.iter().map(ClaimedJob::id).collect();
        ids.sort_unstable();
        rounds.push(ids);
        for claimed in &claimed {
            h.end(claimed, Outcome::DONE).await;
        }
    }
    assert_eq!(rounds, [vec![a], parents, vec![d]]);
}

pub(super) async fn cycles_and_unknown_references_are_refused(h: &Harness) {
    let named = |name: &str, parent: &str| NewJob {
        reference: Some(name.into()),
        depends_on: vec![reference(parent)],
        ..job(name)
    };
    let cycle = vec![named("a", "b"), named("b", "a")];
    assert_eq!(bad_fields(h.store.enqueue_jobs(cycle).await), ["jobs[0].dependsOn"]);
    assert_eq!(bad_fields(h.store.enqueue_jobs(vec![named("a", "x")]).await), ["jobs[0].dependsOn[0]"]);
    assert_eq!(h.listed(&JobFilter::default()).await, []);
}
