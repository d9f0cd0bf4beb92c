//! Claims over thousands of lanes: no set of jobs hides another, and one order spans all lanes.

use std::{cmp::Reverse, collections::HashSet};

use futures_util::future::join_all;
use orchestrix_core::{DependsOn, JobId, JobState, JobType, NewJob, Queue, Start, Tenant};
use rand::{RngExt, SeedableRng, rngs::SmallRng, seq::IndexedRandom};

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimRequest, ClaimedJob, Fence, JobFilter, JobSummary, Outcome, OutcomeReport, Queues};

/// More lanes than a claim can read one by one.
const MANY_LANES: usize = 12_000;
/// The batch sizes that a drain takes in turn.
const BATCHES: [usize; 3] = [1, 7, 100];

fn in_lane(queue_name: &str, kind: &str) -> NewJob {
    NewJob { queue: queue(queue_name), ..job(kind) }
}

/// A job of a tenant that wants to hide the jobs of others.
fn hostile(queue_name: &str, kind: &str) -> NewJob {
    NewJob { tenant: Tenant::trusted("hostile"), priority: priority(999), ..in_lane(queue_name, kind) }
}

/// Requests up to `limit` jobs from any queue, of any type.
fn any(limit: usize) -> ClaimRequest {
    ClaimRequest::any(worker("w"), limit)
}

fn queues(names: &[&str]) -> Queues {
    Queues::Named(names.iter().map(|name| queue(name)).collect())
}

fn types(names: &[&str]) -> Option<Vec<JobType>> {
    Some(names.iter().map(|name| job_type(name)).collect())
}

fn ids(claimed: &[ClaimedJob]) -> Vec<JobId> {
    claimed.iter().map(ClaimedJob::id).collect()
}

fn matches(request: &ClaimRequest, job: &JobSummary) -> bool {
    request.queues.contains(&job.queue) && request.job_types.as_ref().is_none_or(|types| types.contains(&job.job_type))
}

/// The jobs that match the request, in the order that claims promise.
fn in_claim_order(jobs: &[JobSummary], request: &ClaimRequest) -> Vec<JobId> {
    let mut jobs: Vec<&JobSummary> = jobs.iter().filter(|job| matches(request, job)).collect();
    jobs.sort_unstable_by_key(|job| (Reverse(job.priority), job.eligible_at, job.id));
    jobs.into_iter().map(|job| job.id).collect()
}

impl Harness {
    /// The pending jobs, of paused queues too.
    async fn pending(&self) -> Vec<JobSummary> {
        self.list(&JobFilter { states: vec![JobState::Pending], ..JobFilter::default() }).await
    }

    /// Claims in batches of several sizes until no job is left.
    async fn drain(&self, request: &ClaimRequest) -> Vec<JobId> {
        let mut all = Vec::new();
        for limit in BATCHES.into_iter().cycle() {
            let batch = ids(&self.claim(&ClaimRequest { limit, ..request.clone() }).await);
            assert!(batch.len() <= limit, "more jobs than requested");
            if batch.is_empty() {
                return all;
            }
            all.extend(batch);
        }
        unreachable!("the batch sizes repeat for ever")
    }

    async fn promote_all(&self) {
        while self.promote().await.count > 0 {}
    }

    async fn pause(&self, name: &str) {
        self.store.pause_queue(&queue(name)).await.expect("a store that answers");
    }

    async fn resume(&self, name: &str) {
        self.store.resume_queue(&queue(name)).await.expect("a store that answers");
    }

    async fn end_all(&self, claimed: &[ClaimedJob], outcome: Outcome) {
        let report = |job: &ClaimedJob| OutcomeReport { token: job.token, outcome: outcome.clone() };
        let reports: Vec<OutcomeReport> = claimed.iter().map(report).collect();
        for answer in self.store.finish_attempts(reports).await.expect("a store that answers") {
            answer.expect("a current token");
        }
    }

    /// Enqueues a job of a hostile tenant into each of many lanes.
    async fn enqueue_hostile(&self, lane: impl Fn(usize) -> NewJob) {
        let jobs: Vec<NewJob> = (0..MANY_LANES).map(lane).collect();
        for chunk in jobs.chunks(NewJob::MAX_BATCH) {
            self.enqueue_many(chunk.to_vec()).await;
        }
        self.advance(secs(1)).await;
    }

    /// Enqueues 3,000 jobs over some 2,000 lanes. Their places in the order come from priorities, delays, failed and
    /// released attempts, and new priorities. Returns all of them, claimable.
    async fn enqueue_mixed_backlog(&self) -> Vec<JobSummary> {
        let mut random = SmallRng::seed_from_u64(7);
        for _ in 0..2 {
            let mut jobs: Vec<NewJob> = Vec::new();
            for _ in 0..1_500 {
                let (queue_number, type_number) = (random.random_range(0..60), random.random_range(0..50));
                let start = match random.random_range(0..5) {
                    0 => Start::After(secs(random.random_range(1..9))),
                    _ => Start::Now,
                };
                jobs.push(NewJob {
                    priority: priority(random.random_range(-2..=2)),
                    start,
                    ..in_lane(&format!("q{queue_number}"), &format!("t{type_number}"))
                });
            }
            self.enqueue_many(jobs).await;
            self.advance(secs(1)).await;
        }
        let started = self.claim(&any(200)).await;
        self.advance(secs(1)).await;
        self.end_all(&started[..100], Outcome::Release).await;
        let failed = Outcome::Fail { error: "not yet".into(), retryable: true, retry_after: Some(secs(3)) };
        self.end_all(&started[100..], failed).await;
        self.advance(secs(10)).await;
        self.promote_all().await;
        let pending: Vec<JobId> = self.pending().await.iter().map(|job| job.id).collect();
        for id in pending.sample(&mut random, 150) {
            let new = priority(random.random_range(-4..=4));
            self.store.reprioritize_job(*id, new).await.expect("a pending job");
        }
        let pending = self.pending().await;
        assert_eq!(pending.len(), 3_000);
        pending
    }

    async fn assert_drained_in_order(&self, request: &ClaimRequest) {
        let backlog = self.enqueue_mixed_backlog().await;
        let expected = in_claim_order(&backlog, request);
        assert!(expected.len() > 200, "the request should match many jobs");
        assert_eq!(self.drain(request).await, expected);
        let left = self.pending().await.iter().filter(|job| matches(request, job)).count();
        assert_eq!(left, 0);
    }
}

pub(super) async fn a_claim_by_type_finds_its_job_behind_twelve_thousand_lanes_of_other_types(h: &Harness) {
    // Most names sort before that of the queue, some after.
    h.enqueue_hostile(|i| {
        let name = if i % 10 == 0 { format!("z{i}") } else { format!("a{i}") };
        hostile(&name, &format!("hostile.{}", i % 7))
    })
    .await;
    let kinds = ["orchestrix.noop", "a.first", "z.last"];
    for (kind, value) in [(kinds[0], 1000), (kinds[1], 0), (kinds[2], -1000)] {
        let id = h.enqueue(NewJob { priority: priority(value), ..in_lane("victim", kind) }).await;
        let request = ClaimRequest { job_types: types(&[kind]), ..any(100) };
        assert_eq!(ids(&h.claim(&request).await), [id], "{kind}");
    }
    let expected = h.enqueue_many(kinds.map(|kind| in_lane("victim", kind)).to_vec()).await;
    let request = ClaimRequest { job_types: types(&["unknown", kinds[2], kinds[0], kinds[1]]), ..any(100) };
    assert_eq!(ids(&h.claim(&request).await), expected);
}

pub(super) async fn a_claim_by_type_finds_its_job_although_a_tenant_fills_twelve_thousand_queues_with_that_type(
    h: &Harness,
) {
    h.enqueue_hostile(|i| hostile(&format!("a{i}"), "shared")).await;
    let first = h.enqueue(NewJob { priority: priority(1000), ..in_lane("victim", "shared") }).await;
    let other = h.enqueue(in_lane("victim", "own")).await;
    let request = |kinds: &[&str]| ClaimRequest { job_types: types(kinds), ..any(1) };
    assert_eq!(ids(&h.claim(&request(&["shared"])).await), [first]);
    assert_eq!(ids(&h.claim(&request(&["own"])).await), [other]);
    let queued = h.enqueue(in_lane("victim", "shared")).await;
    let by_queue = ClaimRequest { queues: queues(&["victim"]), ..request(&["shared", "own"]) };
    assert_eq!(ids(&h.claim(&by_queue).await), [queued]);
}

pub(super) async fn a_claim_by_queue_finds_its_job_behind_twelve_thousand_lanes_of_other_queues(h: &Harness) {
    h.enqueue_hostile(|i| hostile(&format!("{}{i}", if i % 2 == 0 { "a" } else { "z" }), "shared")).await;
    let kinds = ["shared", "own"];
    let expected = h.enqueue_many(kinds.map(|kind| in_lane("victim", kind)).to_vec()).await;
    let request = ClaimRequest { queues: queues(&["unknown", "victim"]), ..any(100) };
    assert_eq!(ids(&h.claim(&request).await), expected);
}

pub(super) async fn a_claim_by_queue_and_type_finds_its_job_behind_twelve_thousand_types_in_its_queue(h: &Harness) {
    h.enqueue_hostile(|i| hostile("shared", &format!("{}{i}", if i % 10 == 0 { "z" } else { "a" }))).await;
    let id = h.enqueue(in_lane("shared", "own")).await;
    let request = ClaimRequest { queues: queues(&["shared"]), job_types: types(&["own"]), ..any(100) };
    assert_eq!(ids(&h.claim(&request).await), [id]);
    let urgent = h.enqueue(NewJob { priority: priority(1000), ..in_lane("shared", "own") }).await;
    assert_eq!(ids(&h.claim(&ClaimRequest { queues: queues(&["shared"]), ..any(1) }).await), [urgent]);
}

pub(super) async fn a_claim_of_anything_finds_the_highest_priority_behind_twelve_thousand_lanes(h: &Harness) {
    h.enqueue_hostile(|i| hostile(&format!("a{i}"), &format!("t{}", i % 100))).await;
    let urgent = NewJob { priority: priority(1000), ..in_lane("victim", "own") };
    let expected = h.enqueue_many(vec![urgent; 3]).await;
    let claimed = h.claim(&any(4)).await;
    assert_eq!(ids(&claimed)[..3], expected);
    assert_eq!(claimed[3].tenant, Tenant::trusted("hostile"));
}

pub(super) async fn a_claim_that_names_a_thousand_queues_and_a_thousand_types_finds_the_only_match(h: &Harness) {
    h.enqueue_many((0..5_000).map(|i| hostile(&format!("q{}", i % 1_000), &format!("a{}", i / 2))).collect()).await;
    let id = h.enqueue(in_lane("q999", "t999")).await;
    let names = |prefix| (0..ClaimRequest::MAX_NAMES).map(move |i| format!("{prefix}{i}"));
    let request = ClaimRequest {
        queues: Queues::Named(names("q").map(|name| queue(&name)).collect()),
        job_types: Some(names("t").map(|name| job_type(&name)).collect()),
        ..any(10)
    };
    assert_eq!(ids(&h.claim(&request).await), [id]);
}

pub(super) async fn claims_of_anything_over_thousands_of_lanes_follow_one_order(h: &Harness) {
    h.assert_drained_in_order(&any(1)).await;
}

pub(super) async fn claims_by_type_over_thousands_of_lanes_follow_one_order(h: &Harness) {
    let names: Vec<JobType> = (10..60).step_by(2).map(|i| job_type(&format!("t{i}"))).collect();
    h.assert_drained_in_order(&ClaimRequest { job_types: Some(names), ..any(1) }).await;
}

pub(super) async fn claims_by_queue_over_thousands_of_lanes_follow_one_order(h: &Harness) {
    let names: Vec<Queue> = (10..80).step_by(2).map(|i| queue(&format!("q{i}"))).collect();
    h.assert_drained_in_order(&ClaimRequest { queues: Queues::Named(names), ..any(1) }).await;
}

pub(super) async fn claims_by_queue_and_type_over_thousands_of_lanes_follow_one_order(h: &Harness) {
    let queues: Vec<Queue> = (10..80).step_by(2).map(|i| queue(&format!("q{i}"))).collect();
    let types: Vec<JobType> = (10..60).step_by(2).map(|i| job_type(&format!("t{i}"))).collect();
    h.assert_drained_in_order(&ClaimRequest { queues: Queues::Named(queues), job_types: Some(types), ..any(1) }).await;
}

pub(super) async fn a_job_enqueued_between_claims_over_many_lanes_takes_its_place_in_the_order(h: &Harness) {
    let lane = |i: usize| in_lane(&format!("q{}", i % 40), &format!("t{}", i / 40));
    h.enqueue_many((0..2_000).map(lane).collect()).await;
    h.advance(secs(1)).await;
    h.claim(&any(100)).await;
    let urgent = h.enqueue(NewJob { priority: priority(1), ..lane(0) }).await;
    let elsewhere = h.enqueue(NewJob { priority: priority(1), ..in_lane("new", "new") }).await;
    let last = h.enqueue(lane(1)).await;
    let expected = in_claim_order(&h.pending().await, &any(1));
    assert_eq!((&expected[..2], expected.last()), (&[urgent, elsewhere][..], Some(&last)));
    assert_eq!(h.drain(&any(1)).await, expected);
}

pub(super) async fn concurrent_claims_over_thousands_of_lanes_take_each_job_once(h: &Harness) {
    let jobs = (0..3_000).map(|i| in_lane(&format!("q{}", i % 60), &format!("t{}", i / 60)));
    let expected: HashSet<JobId> = h.enqueue_many(jobs.collect()).await.into_iter().collect();
    let half = |prefix: &str, from: usize| (from..60).step_by(2).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let claims = (0..8).map(|i| async move {
        let mut request = any(70);
        if i % 4 == 1 {
            request.queues = Queues::Named(half("q", i / 4).iter().map(|name| queue(name)).collect());
        }
        if i % 4 == 2 {
            request.job_types = Some(half("t", i / 4).iter().map(|name| job_type(name)).collect());
        }
        let mut all = Vec::new();
        loop {
            let claimed = ids(&h.claim(&request).await);
            if claimed.is_empty() {
                return all;
            }
            all.extend(claimed);
        }
    });
    let mut all: Vec<JobId> = join_all(claims).await.into_iter().flatten().collect();
    // A claim may return nothing while others hold the last rows.
    all.extend(h.drain(&any(1)).await);
    assert_eq!(all.len(), expected.len());
    assert_eq!(all.into_iter().collect::<HashSet<_>>(), expected);
}

pub(super) async fn held_blocked_delayed_and_running_jobs_of_a_tenant_delay_no_other_tenant(h: &Harness) {
    let lane = |i: usize| hostile(&format!("a{}", i % 300), &format!("t{}", i % 7));
    let parent = h.start(hostile("a0", "parent")).await.id();
    let waiting = (0..3_000).map(|i| match i % 3 {
        0 => NewJob { hold: true, ..lane(i) },
        1 => NewJob { depends_on: vec![DependsOn::Job(parent)], ..lane(i) },
        _ => NewJob { start: Start::After(secs(60)), ..lane(i) },
    });
    h.enqueue_many(waiting.collect()).await;
    h.enqueue_many((0..1_000).map(lane).collect()).await;
    assert_eq!(h.claim(&any(500)).await.len(), 500);
    h.advance(secs(1)).await;
    let low = h.enqueue(in_lane("victim", "own")).await;
    let urgent = h.enqueue(NewJob { priority: priority(1000), ..in_lane("victim", "own") }).await;
    let claimed = ids(&h.claim(&any(502)).await);
    assert_eq!((claimed.len(), claimed[0], claimed[501]), (502, urgent, low));
    assert_eq!(h.claim(&any(1)).await, []);
}

pub(super) async fn paused_queues_with_thousands_of_jobs_hide_nothing(h: &Harness) {
    let names: Vec<String> = (0..100).map(|i| format!("{}{i}", if i % 2 == 0 { "a" } else { "z" })).collect();
    for name in &names {
        h.pause(name).await;
    }
    let stopped = (0..5_000).map(|i| hostile(&names[i % 100], ["own", "other"][i / 100 % 2]));
    h.enqueue_many(stopped.collect()).await;
    h.advance(secs(1)).await;
    let mut expected = h.enqueue_many(vec![in_lane("victim", "own"); 50]).await.into_iter();
    let everywhere: Vec<Queue> = names.iter().map(String::as_str).chain(["victim"]).map(queue).collect();
    for request in [
        any(10),
        ClaimRequest { job_types: types(&["own"]), ..any(10) },
        ClaimRequest { job_types: types(&["unknown", "own", "other"]), ..any(10) },
        ClaimRequest { queues: Queues::Named(everywhere.clone()), ..any(10) },
        ClaimRequest { queues: Queues::Named(everywhere), job_types: types(&["other", "own"]), ..any(10) },
    ] {
        let expected: Vec<JobId> = expected.by_ref().take(10).collect();
        assert_eq!(ids(&h.claim(&request).await), expected);
        assert_eq!(h.claim(&ClaimRequest { queues: queues(&[&names[0]]), ..request }).await, []);
    }
}

pub(super) async fn resumed_queues_return_their_jobs_in_the_old_order(h: &Harness) {
    let lane = |i: usize| NewJob {
        priority: priority(i64::try_from(i % 3).expect("a small number")),
        ..in_lane(&format!("q{}", i % 50), &format!("t{}", i / 50 % 20))
    };
    h.enqueue_many((0..1_500).map(lane).collect()).await;
    h.advance(secs(1)).await;
    // The jobs of these attempts return to a queue that is paused by then.
    let started = h.claim(&any(30)).await;
    let names: Vec<String> = (0..50).step_by(2).map(|i| format!("q{i}")).collect();
    for name in &names {
        h.pause(name).await;
    }
    h.end_all(&started, Outcome::Release).await;
    h.enqueue_many((1_500..2_500).map(lane).collect()).await;
    let delayed = NewJob { start: Start::After(secs(5)), priority: priority(5), ..in_lane("q0", "t0") };
    let delayed = h.enqueue(delayed).await;
    h.advance(secs(5)).await;
    h.promote_all().await;
    let raised = h.pending().await.into_iter().find(|job| job.queue == queue("q2")).expect("a job of a paused queue");
    h.store.reprioritize_job(raised.id, priority(6)).await.expect("a pending job");
    let paused = |job: &JobSummary| names.iter().any(|name| job.queue.as_str() == name);
    let (stopped, going): (Vec<JobSummary>, Vec<JobSummary>) = h.pending().await.into_iter().partition(paused);
    assert_eq!(h.drain(&any(1)).await, in_claim_order(&going, &any(1)));

    for name in &names {
        h.resume(name).await;
    }
    let expected = in_claim_order(&stopped, &any(1));
    assert_eq!(expected[..2], [raised.id, delayed]);
    let mut claimed = ids(&h.claim(&any(400)).await);
    for name in &names {
        h.pause(name).await;
    }
    assert_eq!(h.claim(&any(1)).await, [], "every queue with jobs is paused again");
    for name in &names {
        h.resume(name).await;
    }
    claimed.extend(h.drain(&any(1)).await);
    assert_eq!(claimed, expected);
}

pub(super) async fn cancelled_expired_and_reprioritized_jobs_leave_no_gap_in_a_wide_backlog(h: &Harness) {
    let soon = h.now().await + secs(5);
    let jobs = (0..3_000).map(|i| NewJob {
        expires_at: (i % 3 == 0).then_some(soon),
        ..in_lane(&format!("q{}", i % 70), &format!("t{}", i / 70))
    });
    let jobs = h.enqueue_many(jobs.collect()).await;
    let started = h.claim(&any(100)).await;
    let mut gone: HashSet<JobId> = jobs.iter().step_by(3).copied().collect();
    for job in &started {
        // A job that has started does not expire.
        gone.remove(&job.id());
    }
    h.end_all(&started, Outcome::Release).await;
    for id in jobs.iter().skip(1).step_by(15) {
        h.store.cancel_job(*id).await.expect("a pending job");
        gone.insert(*id);
    }
    for (i, id) in (0..).zip(jobs.iter().skip(2).step_by(15)) {
        h.store.reprioritize_job(*id, priority(i % 5 - 2)).await.expect("a pending job");
    }
    h.advance(secs(5)).await;
    // The sweep cancels a part of the expired jobs before the claims.
    h.store.expire_jobs(Fence::NONE, 300).await.expect("a valid limit");
    let left: Vec<JobSummary> = h.pending().await.into_iter().filter(|job| !gone.contains(&job.id)).collect();
    assert_eq!(left.len(), jobs.len() - gone.len());
    assert_eq!(h.drain(&any(1)).await, in_claim_order(&left, &any(1)));
}
