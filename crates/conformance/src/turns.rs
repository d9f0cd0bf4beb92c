//! Fair shares: tenants of one priority take turns, by their weights.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
};

use orchestrix_core::{
    JobId, NewJob, Start, Tenant, Weight,
    turn::{quantum, ring_position},
};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, PageRequest, Queues, TenantPatch, TenantSettings};

fn tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("a valid tenant")
}

fn of(name: &str) -> NewJob {
    NewJob { tenant: tenant(name), ..job("t") }
}

fn any(limit: usize) -> ClaimRequest {
    ClaimRequest::any(worker("w"), limit)
}

fn weight(weight: i64) -> TenantPatch {
    TenantPatch { weight: Some(Weight::new(weight).expect("a valid weight")) }
}

fn repeat(job: &NewJob, n: usize) -> Vec<NewJob> {
    std::iter::repeat_n(job.clone(), n).collect()
}

fn count(claimed: &[ClaimedJob], name: &str) -> usize {
    claimed.iter().filter(|job| job.tenant.as_str() == name).count()
}

fn tenants(claimed: &[ClaimedJob]) -> Vec<&str> {
    claimed.iter().map(|job| job.tenant.as_str()).collect()
}

impl Harness {
    async fn set_weight(&self, name: &str, to: i64) {
        self.store.set_tenant(&tenant(name), weight(to)).await.expect("a store that answers");
    }

    /// Claims `n` times up to `limit` jobs.
    async fn claims(&self, n: usize, limit: usize) -> Vec<ClaimedJob> {
        let mut all = Vec::new();
        for _ in 0..n {
            all.extend(self.claim(&any(limit)).await);
        }
        all
    }
}

pub(super) async fn a_first_job_waits_at_most_one_round_of_the_other_tenants(h: &Harness) {
    for limit in [1, 10, 100] {
        h.enqueue_many(repeat(&of("large"), 500)).await;
        h.enqueue_many(repeat(&of("other"), 500)).await;
        h.claims(3, limit).await;
        h.advance(secs(10)).await;
        let small = h.enqueue(of("small")).await;
        // A claim of at most sixteen jobs gives each tenant one job in a turn.
        let rounds = if limit == 1 { 3 } else { 1 };
        let claimed = h.claims(rounds, limit).await;
        assert!(claimed.iter().any(|job| job.id() == small), "not within a round of claims of {limit}");
        while !h.claim(&any(1_000)).await.is_empty() {}
    }
}

pub(super) async fn tenants_get_equal_shares_whatever_their_backlogs(h: &Harness) {
    h.enqueue_many(repeat(&of("large"), 900)).await;
    h.advance(secs(60)).await;
    h.enqueue_many(repeat(&of("small"), 100)).await;
    for (n, limit) in [(10, 1), (4, 10), (1, 100)] {
        let claimed = h.claims(n, limit).await;
        assert!(count(&claimed, "small").abs_diff(n * limit / 2) <= quantum(limit), "claims of {limit}");
    }
}

pub(super) async fn a_lone_tenant_gets_everything(h: &Harness) {
    h.enqueue_many(repeat(&of("large"), 300)).await;
    h.enqueue(of("small")).await;
    assert_eq!(h.claims(1, 200).await.len(), 200);
    assert_eq!(h.claims(20, 5).await.len(), 100);
    assert_eq!(h.claims(1, 5).await.len(), 1, "no job is left out");
}

pub(super) async fn shares_follow_weights(h: &Harness) {
    h.set_weight("heavy", 3).await;
    for name in ["light", "heavy"] {
        h.enqueue_many(repeat(&of(name), 400)).await;
    }
    for (n, limit) in [(80, 1), (8, 10), (1, 80)] {
        let claimed = h.claims(n, limit).await;
        let (heavy, light) = (count(&claimed, "heavy"), count(&claimed, "light"));
        // A claim may end within a turn.
        assert!(light.abs_diff(20) <= quantum(limit) && heavy + light == 80, "claims of {limit}: {heavy} and {light}");
    }
}

pub(super) async fn a_new_weight_counts_from_the_next_claim(h: &Harness) {
    for name in ["a", "b"] {
        h.enqueue_many(repeat(&of(name), 200)).await;
    }
    assert_eq!(count(&h.claims(1, 16).await, "a"), 8);
    h.set_weight("a", 7).await;
    assert_eq!(count(&h.claims(1, 16).await, "a"), 14);
    h.set_weight("a", 1).await;
    assert_eq!(count(&h.claims(1, 16).await, "a"), 8);
}

pub(super) async fn small_claims_continue_the_turns_of_earlier_ones(h: &Harness) {
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        h.enqueue_many(repeat(&of(name), 10)).await;
    }
    h.set_weight("c", 2).await;
    let claimed = h.claims(30, 1).await;
    let mut ring = names;
    ring.sort_unstable_by_key(|name| ring_position(&tenant(name)));
    let round: Vec<&str> = ring.iter().flat_map(|name| vec![*name; if *name == "c" { 2 } else { 1 }]).collect();
    let start = round.iter().position(|name| *name == claimed[0].tenant.as_str()).expect("a tenant");
    let expected: Vec<&str> = round.into_iter().cycle().skip(start).take(30).collect();
    assert_eq!(tenants(&claimed), expected);
}

pub(super) async fn a_round_reaches_every_one_of_a_thousand_tenants(h: &Harness) {
    const TENANTS: usize = 1_000;
    let jobs: Vec<NewJob> = (0..2 * TENANTS).map(|n| of(&format!("t{}", n % TENANTS))).collect();
    h.enqueue_many(jobs).await;
    // Claims of up to sixteen jobs give each tenant one job in a turn.
    for round in 0..2 {
        let claimed = h.claims(TENANTS / 8, 8).await;
        let distinct: BTreeSet<&str> = tenants(&claimed).into_iter().collect();
        assert_eq!((claimed.len(), distinct.len()), (TENANTS, TENANTS), "round {round}");
    }
    assert_eq!(h.claim(&any(8)).await, []);
}

pub(super) async fn priority_goes_before_fairness(h: &Harness) {
    h.enqueue_many(repeat(&NewJob { priority: priority(5), ..of("urgent") }, 30)).await;
    h.enqueue_many(repeat(&of("other"), 30)).await;
    h.enqueue_many(repeat(&of("urgent"), 30)).await;
    assert_eq!(count(&h.claims(3, 10).await, "urgent"), 30);
    // What a tenant got at a higher priority does not count at a lower one.
    assert_eq!(count(&h.claims(2, 10).await, "urgent"), 10);
}

pub(super) async fn the_order_within_a_tenant_is_by_time_of_eligibility(h: &Harness) {
    let mut expected = Vec::new();
    let late = h.enqueue(NewJob { start: Start::After(secs(2)), ..of("a") }).await;
    for _ in 0..4 {
        expected.push(h.enqueue(of("a")).await);
        h.enqueue(of("b")).await;
        h.advance(secs(1)).await;
    }
    h.promote().await;
    expected.insert(2, late);
    // Both became eligible at the same time, and the earlier enqueued one has the lower id.
    let claimed = h.claims(1, 100).await;
    let of_a: Vec<JobId> = claimed.iter().filter(|job| job.tenant.as_str() == "a").map(ClaimedJob::id).collect();
    assert_eq!(of_a, expected);
}

pub(super) async fn splitting_jobs_over_queues_and_types_gains_nothing(h: &Harness) {
    let spread = |n: usize| NewJob {
        queue: queue(&format!("q{}", n % 20)),
        ..NewJob { tenant: tenant("spread"), ..job(&format!("t{n}")) }
    };
    h.enqueue_many((0..300).map(spread).collect()).await;
    h.enqueue_many(repeat(&of("plain"), 300)).await;
    for (n, limit) in [(20, 1), (2, 10), (1, 100)] {
        let spread = count(&h.claims(n, limit).await, "spread");
        assert!(spread.abs_diff(n * limit / 2) <= quantum(limit), "claims of {limit}: {spread}");
    }
    let names = (0..20).map(|n| queue(&format!("q{n}"))).chain([queue("default")]).collect();
    let named = ClaimRequest { queues: Queues::Named(names), ..any(40) };
    let spread = count(&h.claim(&named).await, "spread");
    assert!(spread.abs_diff(20) <= quantum(40), "{spread}");
}

pub(super) async fn shares_are_of_the_queues_that_a_worker_requests(h: &Harness) {
    let in_queue = |name: &str, of_tenant: &str| NewJob { queue: queue(name), ..of(of_tenant) };
    h.enqueue_many(repeat(&in_queue("x", "a"), 100)).await;
    h.enqueue_many(repeat(&in_queue("y", "a"), 100)).await;
    h.enqueue_many(repeat(&in_queue("y", "b"), 100)).await;
    let from = |name: &str| ClaimRequest { queues: Queues::Named(vec![queue(name)]), ..any(20) };
    // What a tenant gets from one queue does not count for workers of another.
    assert_eq!(count(&h.claim(&from("x")).await, "a"), 20);
    assert_eq!(count(&h.claim(&from("y")).await, "a"), 10);
    assert_eq!(count(&h.claim(&from("y")).await, "b"), 10);
}

pub(super) async fn a_tenant_without_jobs_saves_nothing_up(h: &Harness) {
    h.enqueue_many(repeat(&of("busy"), 200)).await;
    h.enqueue(of("idle")).await;
    h.claims(10, 10).await;
    h.enqueue_many(repeat(&of("idle"), 100)).await;
    assert_eq!(count(&h.claims(4, 10).await, "idle"), 20);
}

pub(super) async fn jobs_that_cannot_run_take_no_turn(h: &Harness) {
    h.enqueue_many(repeat(&of("able"), 100)).await;
    let waiting = h.enqueue_many(repeat(&of("cancelled"), 20)).await;
    h.enqueue_many(repeat(&NewJob { queue: queue("paused"), ..of("paused") }, 20)).await;
    let expires_at = Some(h.now().await + secs(5));
    h.enqueue_many(repeat(&NewJob { expires_at, ..of("expired") }, 20)).await;
    h.store.pause_queue(&queue("paused")).await.expect("a store that answers");
    for id in waiting {
        h.store.cancel_job(id).await.expect("a waiting job");
    }
    h.advance(secs(10)).await;
    assert_eq!(count(&h.claims(5, 1).await, "able"), 5);
    assert_eq!(count(&h.claims(1, 50).await, "able"), 50);
    h.store.resume_queue(&queue("paused")).await.expect("a store that answers");
    assert_eq!(count(&h.claims(1, 20).await, "paused"), 10);
}

pub(super) async fn a_retried_job_waits_behind_the_jobs_of_its_tenant(h: &Harness) {
    h.enqueue_many(repeat(&of("a"), 3)).await;
    let first = h.claim(&any(1)).await;
    h.advance(secs(1)).await;
    h.end(&first[0], Outcome::Release).await;
    let rest: Vec<JobId> = h.claims(1, 10).await.iter().map(ClaimedJob::id).collect();
    assert_eq!(rest.last(), Some(&first[0].id()));
}

pub(super) async fn settings_of_tenants_can_be_set_and_listed(h: &Harness) {
    let settings = |to: i64| TenantSettings { weight: Weight::new(to).expect("a valid weight") };
    let read = async |name: &str| h.store.tenant_settings(&tenant(name)).await.expect("a store that answers");
    assert_eq!(read("a").await, TenantSettings::default());
    for (name, to) in [("b", 4), ("a", 2), ("c", 5)] {
        assert_eq!(h.store.set_tenant(&tenant(name), weight(to)).await.expect("valid"), settings(to));
    }
    let unchanged = h.store.set_tenant(&tenant("b"), TenantPatch::default()).await;
    assert_eq!(unchanged.expect("valid"), settings(4), "what is absent stays");
    assert_eq!((read("a").await, read("unknown").await), (settings(2), settings(1)));
    let page = h.store.list_tenants(&PageRequest::first(2)).await.expect("a valid page");
    assert_eq!(page.items, [(tenant("a"), settings(2)), (tenant("b"), settings(4))]);
    let page = h.store.list_tenants(&PageRequest { cursor: page.next, limit: 2 }).await.expect("a valid page");
    assert_eq!((page.items, page.next), (vec![(tenant("c"), settings(5))], None));
    assert_eq!(bad_fields(h.store.list_tenants(&PageRequest::first(0)).await), ["limit"]);
}

/// A scheduler with the same promises, written as plainly as possible: it plays one job after the other.
struct Reference {
    /// The jobs that wait, by priority and ring position, in order.
    waiting: BTreeMap<Reverse<i16>, BTreeMap<i64, VecDeque<JobId>>>,
    weights: HashMap<i64, usize>,
    /// Whose turn it is at each priority, and how many jobs the tenant has had in it.
    turns: HashMap<Reverse<i16>, (i64, usize)>,
}

impl Reference {
    fn claim(&mut self, limit: usize) -> Vec<JobId> {
        let mut claimed = Vec::new();
        while claimed.len() < limit
            && let Some(job) = self.next(limit)
        {
            claimed.push(job);
        }
        claimed
    }

    fn next(&mut self, limit: usize) -> Option<JobId> {
        self.waiting.retain(|_, ring| {
            ring.retain(|_, jobs| !jobs.is_empty());
            !ring.is_empty()
        });
        let (priority, ring) = self.waiting.iter_mut().next()?;
        let (turn, taken) = self.turns.get(priority).copied().unwrap_or_default();
        let allowance = |position: i64| self.weights.get(&position).unwrap_or(&1) * quantum(limit);
        let goes_on = ring.contains_key(&turn) && taken < allowance(turn);
        let after = if goes_on || taken == 0 { turn } else { turn.wrapping_add(1) };
        let position = ring.range(after..).chain(ring.iter()).map(|(position, _)| *position).next()?;
        let taken = if position == turn && goes_on { taken + 1 } else { 1 };
        let ends = taken == allowance(position);
        self.turns.insert(*priority, if ends { (position.wrapping_add(1), 0) } else { (position, taken) });
        ring.get_mut(&position)?.pop_front()
    }
}

pub(super) async fn claims_follow_a_reference_scheduler(h: &Harness) {
    let mut random = SmallRng::seed_from_u64(20);
    for round in 0..6 {
        let mut reference = Reference { waiting: BTreeMap::new(), weights: HashMap::new(), turns: HashMap::new() };
        let names: Vec<String> = (0..random.random_range(1..12)).map(|n| format!("r{round}-{n}")).collect();
        for name in &names {
            let to = random.random_range(1..5);
            h.set_weight(name, to).await;
            reference.weights.insert(ring_position(&tenant(name)), usize::try_from(to).expect("small"));
        }
        for _ in 0..8 {
            let jobs: Vec<NewJob> = (0..random.random_range(0..120))
                .map(|_| {
                    // Some tenants have much more than others.
                    let name = &names[random.random_range(0..names.len()).min(random.random_range(0..names.len()))];
                    let (in_queue, kind) = (random.random_range(0..3), random.random_range(0..3));
                    NewJob {
                        queue: queue(&format!("r{round}-{in_queue}")),
                        priority: priority(random.random_range(0..2)),
                        tenant: tenant(name),
                        ..job(&format!("t{kind}"))
                    }
                })
                .collect();
            for (job, id) in jobs.iter().zip(h.enqueue_many(jobs.clone()).await) {
                let ring = reference.waiting.entry(Reverse(job.priority.get())).or_default();
                ring.entry(ring_position(&job.tenant)).or_default().push_back(id);
            }
            h.advance(secs(1)).await;
            // A scope of its own for each round, so that each begins with the first turn.
            let names = (0..3).map(|n| queue(&format!("r{round}-{n}"))).collect();
            let limit = *[1, 3, 16, 17, 40, 100].get(random.random_range(0..6)).expect("one of six");
            let request = ClaimRequest { queues: Queues::Named(names), ..any(limit) };
            let claimed: Vec<JobId> = h.claim(&request).await.iter().map(ClaimedJob::id).collect();
            assert_eq!(claimed, reference.claim(limit), "round {round}, a claim of {limit}");
        }
    }
}
