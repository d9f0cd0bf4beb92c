//! Random sequences of calls, after which states, counts and lists must agree.

use std::{
    collections::{BTreeMap, HashSet},
    env,
    time::Duration,
};

use orchestrix_core::{
    DependsOn, Event, JobId, JobState, LeaseToken, NewJob, OnDependencyFailure, Priority, Progress, Start,
};
use rand::{RngExt, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use uuid::Uuid;

use super::{Harness, fixture::*};
use orchestrix_store::{
    ClaimRequest, Fence, JobFilter, LeaseStatus, Outcome, OutcomeReport, ProgressUpdate, QueueDepth, Queues, StoreError,
};

const STEPS: usize = 3_000;
const QUEUES: [&str; 3] = ["a", "b", "c"];

/// Prints how to reproduce a failed sequence.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("reproduce this sequence with ORCHESTRIX_SEED={}", self.0);
        }
    }
}

/// The model of the store that the sequence checks against.
struct Model<'h> {
    h: &'h Harness,
    random: SmallRng,
    jobs: Vec<JobId>,
    tokens: Vec<LeaseToken>,
    leases: HashSet<(JobId, i32)>,
    secrets: HashSet<(JobId, Uuid)>,
    /// Redriven jobs, which neither wait for parents nor block dependents any more.
    redriven: HashSet<JobId>,
}

pub(super) async fn states_counts_and_lists_agree_after_any_sequence_of_calls(h: &Harness) {
    let seed = env::var("ORCHESTRIX_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    let _seed = Seed(seed);
    let random = SmallRng::seed_from_u64(seed);
    let mut model = Model {
        h,
        random,
        jobs: Vec::new(),
        tokens: Vec::new(),
        leases: HashSet::new(),
        secrets: HashSet::new(),
        redriven: HashSet::new(),
    };
    for step in 0..STEPS {
        model.step().await;
        if step % 500 == 499 {
            model.check().await;
        }
    }
    model.drain().await;
    model.check().await;
    assert_eq!(h.depths().await, []);
    assert_eq!(h.listed(&JobFilter::default()).await.len(), model.jobs.len());
}

impl Model<'_> {
    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..20 => self.enqueue().await,
            20..24 => self.enqueue_many().await,
            24..44 => self.claim().await,
            44..66 => self.finish().await,
            66..70 => self.heartbeat().await,
            70..72 => self.progress().await,
            72..82 => self.operate().await,
            82..90 => self.sweep().await,
            90..98 => {
                let millis = self.random.random_range(1..20_000);
                self.h.advance(Duration::from_millis(millis)).await;
            }
            _ => self.pause().await,
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        self.random.random_bool(share)
    }

    fn priority(&mut self) -> Priority {
        priority(self.random.random_range(-2..=2))
    }

    fn queue(&mut self) -> &'static str {
        QUEUES.choose(&mut self.random).expect("some queues")
    }

    async fn request(&mut self) -> NewJob {
        let now = self.h.now().await;
        let mut request = NewJob {
            queue: queue(self.queue()),
            priority: self.priority(),
            max_attempts: self.random.random_range(1..4),
            lease: secs(self.random.random_range(1..30)),
            hold: self.chance(0.05),
            ..job(["x", "y"].choose(&mut self.random).expect("some types"))
        };
        if self.chance(0.2) {
            request.start = Start::After(secs(self.random.random_range(0..20)));
        }
        if self.chance(0.2) {
            request.expires_at = Some(now + secs(self.random.random_range(0..60)));
        }
        if self.chance(0.2) {
            request.timeout = Some(secs(self.random.random_range(1..20)));
        }
        if self.chance(0.3) {
            let policies = [OnDependencyFailure::Cancel, OnDependencyFailure::Run, OnDependencyFailure::Hold];
            request.on_dependency_failure = *policies.choose(&mut self.random).expect("some policies");
            let count = self.random.random_range(1..4);
            let parents = self.jobs.sample(&mut self.random, count).copied();
            request.depends_on = parents.map(DependsOn::Job).collect();
        }
        request
    }

    async fn enqueue(&mut self) {
        let request = self.request().await;
        self.jobs.push(self.h.enqueue(request).await);
    }

    async fn enqueue_many(&mut self) {
        let mut jobs = Vec::new();
        for i in 0..self.random.random_range(1..6) {
            let mut request = NewJob { reference: Some(format!("r{i}")), ..self.request().await };
            if i > 0 && self.chance(0.5) {
                request.depends_on.push(reference(&format!("r{}", self.random.random_range(0..i))));
            }
            jobs.push(request);
        }
        self.jobs.extend(self.h.enqueue_many(jobs).await);
    }

    async fn claim(&mut self) {
        let limit = self.random.random_range(1..8);
        let mut request = ClaimRequest::any(worker("w"), limit);
        if self.chance(0.5) {
            request.queues = Queues::Named(vec![queue(self.queue()), queue(self.queue())]);
        }
        for claimed in self.h.claim(&request).await {
            assert!(claimed.attempt <= claimed.max_attempts, "an attempt beyond the budget");
            assert!(self.leases.insert((claimed.id(), claimed.token.counter)), "a lease counter was used twice");
            assert!(self.secrets.insert((claimed.id(), claimed.token.secret)), "two leases have the same secret");
            self.tokens.push(claimed.token);
            self.check_parents(claimed.id()).await;
        }
    }

    /// Checks that a job starts only after its parents.
    async fn check_parents(&self, child: JobId) {
        let parents = self.h.job(child).await.depends_on;
        for parent in parents.into_iter().filter(|id| !self.redriven.contains(id) && !self.redriven.contains(&child)) {
            assert!(self.h.state(parent).await.is_terminal(), "a job started before a parent had finished");
        }
    }

    async fn finish(&mut self) {
        // Tokens stay in the list, so some outcomes are repeated or late.
        let Some(token) = self.tokens.choose(&mut self.random).copied() else { return };
        let outcome = match self.random.random_range(0..10) {
            0..5 => Outcome::DONE,
            5 => fatal("no use"),
            6 => Outcome::Snooze(secs(self.random.random_range(0..20))),
            7 => Outcome::Release,
            8 => Outcome::Cancelled,
            _ => Outcome::fail("not yet"),
        };
        let current = self.h.store.extend_leases(&[token]).await.expect("a store that answers")[0] != LeaseStatus::Lost;
        let before = self.h.job(token.job).await;
        let items = vec![OutcomeReport { token, outcome }];
        let answer = self.h.store.finish_attempts(items).await.expect("a store that answers").remove(0);
        let after = self.h.job(token.job).await;
        match answer {
            Ok(state) if current => assert_eq!(after.state, state),
            _ => {
                assert!(!current, "a current token was refused");
                assert_eq!(after, before, "a stale token changed the job");
            }
        }
    }

    async fn heartbeat(&mut self) {
        let tokens: Vec<LeaseToken> = self.tokens.sample(&mut self.random, 5).copied().collect();
        self.h.store.extend_leases(&tokens).await.expect("a store that answers");
    }

    async fn progress(&mut self) {
        let Some(token) = self.tokens.choose(&mut self.random).copied() else { return };
        let progress = Some(Progress { percent: Some(self.random.random_range(0.0..=100.0)), message: None });
        let answer = self.h.store.record_progress(token, ProgressUpdate { progress, checkpoint: None }).await;
        assert!(answer.is_ok() || lease_lost(&answer));
    }

    async fn operate(&mut self) {
        let Some(id) = self.jobs.choose(&mut self.random).copied() else { return };
        let before = self.h.state(id).await;
        let (event, answer) = match self.random.random_range(0..4) {
            0 => (Some(Event::Cancel), self.h.store.cancel_job(id).await),
            1 => (None, self.h.store.release_held_job(id).await),
            2 => (Some(Event::Redrive), self.h.store.retry_job(id).await),
            _ => {
                let priority = self.priority();
                (None, self.h.store.reprioritize_job(id, priority).await)
            }
        };
        match answer {
            Ok(state) => {
                if event == Some(Event::Redrive) {
                    self.redriven.insert(id);
                }
                assert_eq!(self.h.state(id).await, state);
                assert!(event.is_none_or(|event| before.next(event) == Ok(state)));
            }
            Err(StoreError::IllegalTransition(illegal)) => {
                assert_eq!(illegal.from, before);
                assert!(event.is_none_or(|event| before.next(event).is_err()));
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn sweep(&mut self) {
        self.h.promote().await;
        match self.random.random_range(0..4) {
            0 => self.h.expire().await,
            1 => self.h.reap().await,
            2 => self.h.time_out().await,
            _ => self.h.store.unblock_jobs(Fence::NONE, 1_000).await.expect("a valid limit"),
        };
    }

    async fn pause(&mut self) {
        let queue = queue(self.queue());
        if self.chance(0.3) {
            self.h.store.pause_queue(&queue).await.expect("a store that answers");
        } else {
            self.h.store.resume_queue(&queue).await.expect("a store that answers");
        }
    }

    /// Runs jobs until none is left.
    async fn drain(&mut self) {
        for name in QUEUES {
            self.h.store.resume_queue(&queue(name)).await.expect("a store that answers");
        }
        // Each round finishes at least one generation of dependents.
        for _ in 0..self.jobs.len() {
            self.h.advance(secs(3600)).await;
            let held = JobFilter { states: vec![JobState::Created], ..JobFilter::default() };
            for id in self.h.listed(&held).await {
                self.h.store.release_held_job(id).await.expect("a held job");
            }
            self.h.store.unblock_jobs(Fence::NONE, 1_000).await.expect("a valid limit");
            self.h.expire().await;
            self.h.time_out().await;
            self.h.reap().await;
            self.h.promote().await;
            let claimed = self.h.claim_all().await;
            for claimed in &claimed {
                self.h.end(claimed, Outcome::DONE).await;
            }
            if self.h.depths().await.is_empty() {
                return;
            }
        }
        panic!("some jobs never finish: {:?}", self.h.depths().await);
    }

    /// Compares counts over all jobs with the depths that the store reports.
    async fn check(&mut self) {
        let jobs = self.h.list(&JobFilter::default()).await;
        let mut counted: Vec<QueueDepth> = Vec::new();
        for depth in self.h.depths().await {
            let mut counts = BTreeMap::new();
            for job in jobs.iter().filter(|job| job.queue == depth.queue && !job.state.is_terminal()) {
                *counts.entry(job.state).or_default() += 1;
            }
            counted.push(QueueDepth { counts, ..depth });
        }
        assert_eq!(self.h.depths().await, counted);
        let unfinished = jobs.iter().filter(|job| !job.state.is_terminal()).count();
        let total: u64 = counted.iter().flat_map(|depth| depth.counts.values()).sum();
        assert_eq!(usize::try_from(total).expect("a small number"), unfinished);
        for job in &jobs {
            assert!(job.attempts <= job.max_attempts, "attempts exceed the budget");
            assert_eq!(job.finished_at.is_some(), job.state.is_terminal());
            assert!(!job.cancel_requested || job.state.is_leased(), "only a leased job has a cancel request");
        }
    }
}
