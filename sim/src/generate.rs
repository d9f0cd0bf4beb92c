//! Generates random sequences. The seed determines the whole sequence.
//!
//! There are few names, so that jobs share queues, keys and graphs. Times are mostly whole seconds, so that things
//! become due exactly when a step happens. Some have more digits than stores keep.

use std::time::Duration;

use orchestrix_core::{JobState, Lifecycle, Misfire, NewJob, OnDependencyFailure, Overlap};
use orchestrix_store::{Directive, LogLevel};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

use crate::{
    executor::RETENTION_PASSED,
    step::{
        CadenceSpec, FilterSpec, Forged, JobRef, JobSpec, OutcomeSpec, Payload, ScheduleSpec, StartSpec, Step,
        TimeSpec, TokenRef,
    },
    wide,
};

const QUEUES: [&str; 3] = ["a", "b", "c"];
const TYPES: [&str; 2] = ["mail", "report"];
const TENANTS: [&str; 5] = ["default", "acme", "beta", "corp", "delta"];
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];
const NODES: [&str; 3] = ["n1", "n2", "n3"];
const TERMS: [Duration; 4] =
    [Duration::from_secs(10), Duration::from_millis(100), Duration::from_secs(3600), Duration::ZERO];
const SCHEDULES: [&str; 4] = ["s1", "s2", "s3", "unknown"];
const CADENCES: [CadenceSpec; 6] = [
    CadenceSpec::Every(1),
    CadenceSpec::Every(5),
    CadenceSpec::Every(60),
    CadenceSpec::Cron("*/10 * * * * *"),
    CadenceSpec::Cron("30 2 * * *"),
    CadenceSpec::Every(0),
];
const OVERLAPS: [Overlap; 4] = [Overlap::Skip, Overlap::Allow, Overlap::BufferOne, Overlap::CancelRunning];
const KEYS: [&str; 3] = ["k1", "k2", "k3"];
const REFERENCES: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];
const TAGS: [&str; 2] = ["red", "blue"];
const TEXTS: [&str; 9] = ["mail", "e", "corr-1", "k2", "expired", "%", "_", "", "\0"];
const RESULTS: [&str; 3] = ["1", r#"{"ok": true,  "n":1.50}"#, r#""\u0000""#];
/// PostgreSQL stores slots in 31 bits and caps larger values.
const SLOTS: [u32; 3] = [0, 8, u32::MAX / 2];
const POLICIES: [OnDependencyFailure; 3] =
    [OnDependencyFailure::Cancel, OnDependencyFailure::Run, OnDependencyFailure::Hold];

/// More jobs than any sequence has. Stores may differ in the order of jobs that become due at the same time, so a
/// sweep must never have to choose.
const SWEEP: usize = 10_000;

/// One of this many seeds is a crowded world: several tenants have more jobs than claims take.
const CROWDED_SEEDS: u64 = 4;
/// The number of jobs of a crowded world at its start.
const CROWD: usize = 40;

/// One of this many seeds is a wide world: it starts with very many lanes.
const WIDE_SEEDS: u64 = 8;
/// The number of jobs of a wide world at its start.
const WIDE_JOBS: usize = 2_000;
/// A wide world has at most this many steps, because each of them takes longer.
const WIDE_STEPS: usize = 40;

/// The first `steps` steps of the sequence of `seed`. A wide world may have fewer.
pub fn generate(seed: u64, steps: usize) -> Vec<Step> {
    let wide = seed % WIDE_SEEDS == WIDE_SEEDS / 2;
    let crowded = seed % CROWDED_SEEDS == CROWDED_SEEDS / 4;
    let mut generator = Generator { random: SmallRng::seed_from_u64(seed), now: Duration::ZERO, wide, crowded };
    let first = match (wide, crowded) {
        (true, _) => Some(Step::EnqueueWide(WIDE_JOBS)),
        (_, true) => Some(generator.crowd(CROWD)),
        _ => None,
    };
    let most = if wide { steps.min(WIDE_STEPS) } else { steps };
    first.into_iter().chain(std::iter::repeat_with(|| generator.step())).take(most).collect()
}

struct Generator {
    random: SmallRng,
    /// The virtual time since the start, if every step is executed.
    now: Duration,
    /// Whether there are very many lanes.
    wide: bool,
    /// Whether several tenants have more jobs than claims take.
    crowded: bool,
}

impl Generator {
    fn step(&mut self) -> Step {
        if self.wide && self.happens(0.3) {
            return self.wide_step();
        }
        if self.crowded && self.happens(0.1) {
            return self.crowd(CROWD / 4);
        }
        match self.random.random_range(0..1000) {
            0..140 => Step::Enqueue(self.job()),
            140..200 => self.schedule(),
            200..245 => self.enqueue_many(),
            245..425 => self.claim(),
            425..620 => {
                let items = if self.happens(0.7) { 1 } else { self.random.random_range(0..5) };
                Step::FinishAttempts((0..items).map(|_| (self.token(), self.outcome())).collect())
            }
            620..645 => Step::ExtendLeases((0..self.random.random_range(0..4)).map(|_| self.token()).collect()),
            645..660 => self.progress(),
            660..675 => Step::Checkpoint(self.token(), self.pick(RESULTS)),
            675..700 => self.append_logs(),
            700..720 => Step::ReleaseHeld(self.job_ref()),
            720..755 => Step::Cancel(self.job_ref()),
            755..785 => Step::Retry(self.job_ref()),
            785..793 => Step::RetryMany(self.filter(), self.limit(5, 1001)),
            793..806 => Step::Reprioritize(self.job_ref(), self.random.random_range(-2..=2)),
            806..813 => Step::SetTenant(self.pick(TENANTS), self.weight()),
            813..818 => Step::PauseQueue(self.pick(QUEUES)),
            818..828 => Step::ResumeQueue(self.pick(QUEUES)),
            828..850 => Step::Promote(self.sweep()),
            850..854 => Step::Unblock(self.sweep()),
            854..866 => Step::Expire(self.sweep()),
            866..884 => Step::ReapLeases(self.sweep(), self.pick([0, 1, 2, Lifecycle::CRASH_LOOP])),
            884..898 => Step::TimeOutAttempts(self.sweep()),
            898..910 => self.worker(),
            910..925 => self.coordinate(),
            925..945 => self.read(),
            945..947 => {
                self.now += RETENTION_PASSED;
                Step::Prune
            }
            947..949 => Step::PruneNothing(self.sweep()),
            _ => {
                let by = self.advance();
                self.now += by;
                Step::Advance(by)
            }
        }
    }

    fn happens(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    fn pick<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.random.random_range(0..N)]
    }

    fn maybe<T>(&mut self, probability: f64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.happens(probability).then(|| make(self))
    }

    /// Prefers recent jobs, because they are unfinished most often.
    fn job_ref(&mut self) -> JobRef {
        match self.random.random_range(0..100) {
            0..3 => JobRef::Unknown(self.random.random_range(0..3)),
            3..60 => JobRef::Recent(self.random.random_range(0..8)),
            _ => JobRef::Recent(self.random.random_range(0..60)),
        }
    }

    fn token(&mut self) -> TokenRef {
        let age = if self.happens(0.7) { self.random.random_range(0..6) } else { self.random.random_range(0..40) };
        let forged = self.maybe(0.04, |g| g.pick([Forged::Secret, Forged::Counter, Forged::Job]));
        TokenRef { age, forged }
    }

    fn span(&mut self, seconds: u64) -> Duration {
        let whole = Duration::from_secs(self.random.random_range(0..=seconds));
        match self.random.random_range(0..10) {
            0 => whole + Duration::from_nanos(700_499_999),
            1 => whole + Duration::from_millis(333),
            2 => whole + Duration::from_nanos(1),
            _ => whole,
        }
    }

    fn time(&mut self, before: u64, after: u64) -> TimeSpec {
        let span = self.span(before + after);
        TimeSpec::After((self.now + span).saturating_sub(Duration::from_secs(before)))
    }

    /// A time for a filter, sometimes at the edge of the range.
    fn any_time(&mut self) -> TimeSpec {
        match self.random.random_range(0..20) {
            0 => TimeSpec::Min,
            1 => TimeSpec::Max,
            _ => self.time(30, 0),
        }
    }

    fn limit(&mut self, usual: usize, beyond: usize) -> usize {
        match self.random.random_range(0..40) {
            0 => 0,
            1 => beyond,
            _ => self.random.random_range(1..=usual),
        }
    }

    fn sweep(&mut self) -> usize {
        match self.random.random_range(0..60) {
            0 => 0,
            1 => 10_001,
            _ => SWEEP,
        }
    }

    fn advance(&mut self) -> Duration {
        match self.random.random_range(0..10) {
            0 => Duration::from_millis(self.random.random_range(1..3_000)),
            1 => Duration::from_secs(self.random.random_range(30..4_000)),
            _ => Duration::from_secs(self.random.random_range(1..6)),
        }
    }

    // Mostly the same tenant: jobs depend only on jobs of their own tenant, and a schedule keeps its tenant.
    fn tenant(&mut self) -> &'static str {
        if self.happens(0.15) { self.pick(TENANTS) } else { TENANTS[0] }
    }

    /// Jobs of all tenants that can be claimed at once.
    fn crowd(&mut self, count: usize) -> Step {
        let job = |g: &mut Self| JobSpec {
            queue: g.pick(QUEUES),
            tenant: g.pick(TENANTS),
            priority: g.pick([0, 0, 1]),
            max_attempts: 3,
            ..JobSpec::new(g.pick(TYPES))
        };
        Step::EnqueueMany((0..count).map(|_| job(self)).collect())
    }

    fn weight(&mut self) -> Option<i64> {
        self.maybe(0.9, |g| g.pick([1, 2, 3, 1_000]))
    }

    fn job(&mut self) -> JobSpec {
        if self.happens(0.15) { self.keyed() } else { self.unkeyed() }
    }

    /// One of few jobs under few keys, so that repeated keys are common, with equal and with different jobs.
    fn keyed(&mut self) -> JobSpec {
        let key = self.pick(KEYS);
        let payloads = [r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, r#"{"a":1,"b":2}"#, r#"{"a":2}"#];
        JobSpec {
            key: Some(key),
            payload: Payload::Json(self.pick(payloads)),
            tenant: self.tenant(),
            hold: key == "k2",
            start: if key == "k3" { StartSpec::After(Duration::from_secs(5)) } else { StartSpec::Now },
            reference: (key == "k1").then_some("k1"),
            parents: self.maybe(0.1, Self::job_ref).into_iter().collect(),
            ..JobSpec::new(self.pick(TYPES))
        }
    }

    fn unkeyed(&mut self) -> JobSpec {
        let mut job = JobSpec {
            queue: self.pick(QUEUES),
            tenant: self.tenant(),
            priority: self.random.random_range(-1..=1),
            payload: if self.happens(0.05) { Payload::Long } else { Payload::Json(self.pick(RESULTS)) },
            max_attempts: self.random.random_range(1..4),
            lease: Duration::from_secs(self.random.random_range(1..10)),
            timeout: self.maybe(0.2, |g| g.span(8)),
            backoff: (self.span(3), Duration::from_secs(5)),
            on_failure: self.pick(POLICIES),
            tag: self.maybe(0.3, |g| g.pick(TAGS)),
            correlation: self.maybe(0.2, |g| g.pick(["corr-1", "corr-2"])),
            expires: self.maybe(0.15, |g| g.time(1, 20)),
            hold: self.happens(0.08),
            ..JobSpec::new(self.pick(TYPES))
        };
        if self.happens(0.2) {
            job.start =
                if self.happens(0.5) { StartSpec::After(self.span(10)) } else { StartSpec::At(self.time(5, 10)) };
        }
        if self.happens(0.35) {
            job.parents = (0..self.random.random_range(1..4)).map(|_| self.job_ref()).collect();
        }
        match self.random.random_range(0..150) {
            0 => job.max_attempts = 0,
            1 => job.lease = Duration::from_millis(10),
            2 => job.correlation = Some(""),
            3 => job.parents_in_call = vec!["r0"],
            _ => {}
        }
        job
    }

    fn enqueue_many(&mut self) -> Step {
        let count = self.random.random_range(0..=REFERENCES.len());
        let mut jobs: Vec<JobSpec> = REFERENCES[..count]
            .iter()
            .map(|name| match self.happens(0.2) {
                true => self.keyed(),
                false => JobSpec { reference: Some(name), ..self.unkeyed() },
            })
            .collect();
        for i in 1..count {
            // Only earlier jobs, so that there is no cycle, and only by reference names that exist.
            let names: Vec<&'static str> = jobs[..i].iter().filter_map(|earlier| earlier.reference).collect();
            if jobs[i].key.is_none() && !names.is_empty() && self.happens(0.6) {
                jobs[i].parents_in_call.push(names[self.random.random_range(0..names.len())]);
            }
        }
        match self.random.random_range(0..30) {
            // Invalid calls: a cycle, an unknown reference, a duplicate reference.
            0 => jobs.iter_mut().take(1).for_each(|first| first.parents_in_call.push("r1")),
            1 => jobs.iter_mut().take(1).for_each(|first| first.parents_in_call.push("unknown")),
            2 => jobs.iter_mut().for_each(|each| each.reference = each.reference.map(|_| "r0")),
            _ => {}
        }
        Step::EnqueueMany(jobs)
    }

    fn claim(&mut self) -> Step {
        Step::Claim {
            worker: self.pick(WORKERS),
            queues: self.maybe(0.4, |g| (0..g.random.random_range(0..3)).map(|_| g.pick(QUEUES)).collect()),
            types: self.maybe(0.3, |g| (0..g.random.random_range(0..3)).map(|_| g.pick(TYPES)).collect()),
            limit: if self.happens(0.8) { self.limit(4, 10_001) } else { self.pick([16, 17, 40]) },
        }
    }

    fn wide_step(&mut self) -> Step {
        match self.random.random_range(0..13) {
            0..8 => Step::Claim {
                worker: self.pick(WORKERS),
                queues: self.maybe(0.5, |g| g.some_of(&*wide::QUEUES)),
                types: self.maybe(0.5, |g| g.some_of(&*wide::TYPES)),
                limit: self.pick([1, 7, 100]),
            },
            8 => Step::EnqueueWide(self.random.random_range(1..100)),
            9 => Step::PauseQueue(wide::QUEUES[self.random.random_range(0..5)]),
            10 => Step::ResumeQueue(wide::QUEUES[self.random.random_range(0..5)]),
            11 => Step::SetTenant(wide::TENANTS[self.random.random_range(0..5)], self.weight()),
            _ => Step::Promote(SWEEP),
        }
    }

    /// Few or most of the names, some of them twice.
    fn some_of(&mut self, names: &[&'static str]) -> Vec<&'static str> {
        let count = self.pick([1, 5, names.len()]);
        (0..count).map(|_| names[self.random.random_range(0..names.len())]).collect()
    }

    fn outcome(&mut self) -> OutcomeSpec {
        match self.random.random_range(0..100) {
            0..45 => OutcomeSpec::Complete(self.maybe(0.5, |g| g.pick(RESULTS))),
            45..65 => OutcomeSpec::Fail(self.pick(["not yet", "nul \0"]), true, None),
            65..72 => OutcomeSpec::Fail("busy", true, Some(self.span(5))),
            72..80 => OutcomeSpec::Fail("no use", false, None),
            80..87 => OutcomeSpec::Snooze(self.span(5)),
            87..91 => OutcomeSpec::Release,
            91..94 => OutcomeSpec::Cancelled,
            94..98 => OutcomeSpec::TimedOut,
            98 => OutcomeSpec::Snooze(NewJob::MAX_DELAY + self.span(1)),
            _ => OutcomeSpec::Fail("later", true, Some(NewJob::MAX_DELAY + Duration::from_secs(1))),
        }
    }

    fn progress(&mut self) -> Step {
        let percent = self.maybe(0.8, |g| g.pick([0.0, 33.3, 100.0, 12.345_678_901_234, 101.0]));
        Step::Progress(self.token(), percent, self.maybe(0.5, |g| g.pick(["half", "", "é\n", "nul \0"])))
    }

    fn append_logs(&mut self) -> Step {
        let token = self.token();
        let line = |g: &mut Self| {
            (g.pick(LogLevel::ALL), g.maybe(0.3, |g| g.time(5, 5)), g.pick(["begun", "", "done\n", "begun"]))
        };
        Step::AppendLogs(token, (0..self.random.random_range(0..4)).map(|_| line(self)).collect())
    }

    fn worker(&mut self) -> Step {
        let name = self.pick(WORKERS);
        match self.random.random_range(0..12) {
            0..4 => {
                let (queues, slots) = (self.maybe(0.5, |g| vec![g.pick(QUEUES)]), self.pick(SLOTS));
                let instance = self.maybe(0.6, |g| g.pick(["first", "second"]));
                let silence = self.maybe(0.3, |g| if g.happens(0.1) { Duration::MAX } else { g.span(60) });
                Step::RegisterWorker(name, queues, slots, instance, silence)
            }
            4..7 => Step::HeartbeatWorker(name, self.maybe(0.8, |g| g.pick(SLOTS)), self.happens(0.1)),
            7..9 => Step::DirectWorker(name, self.pick([Directive::Run, Directive::Drain, Directive::Stop])),
            9..11 => Step::RemoveWorker(name),
            _ => Step::ForgetWorkers(if self.happens(0.2) { Duration::MAX } else { self.span(60) }, self.sweep()),
        }
    }

    fn coordinate(&mut self) -> Step {
        let name = self.pick(NODES);
        match self.random.random_range(0..20) {
            0..7 => Step::Campaign(name, self.pick(TERMS), self.happens(0.5)),
            7..9 => Step::Resign(name),
            9..12 => Step::PromoteFenced(self.pick([0, 0, -1, 1]), self.sweep()),
            12..15 => Step::HeartbeatNode(name),
            15 => Step::RemoveNode(name),
            16 => Step::ForgetNodes(if self.happens(0.2) { Duration::MAX } else { self.span(60) }, self.sweep()),
            17..19 => Step::Nodes,
            _ => Step::SweepTimes,
        }
    }

    fn schedule(&mut self) -> Step {
        let name = self.pick(SCHEDULES);
        match self.random.random_range(0..20) {
            0..4 => Step::PutSchedule(self.schedule_spec()),
            4..11 => Step::Fire(self.sweep()),
            11 => Step::FireFenced(self.pick([0, 0, -1, 1]), self.sweep()),
            12 => Step::PauseSchedule(name, self.maybe(0.5, |g| g.pick(["broken", "nul \0"]))),
            13..15 => Step::ResumeSchedule(name),
            15 => Step::TriggerSchedule(name),
            16..18 => {
                let (from, to) = (self.time(60, 0), self.time(30, 10));
                Step::BackfillSchedule(name, from, to, self.maybe(0.5, |g| g.pick(OVERLAPS)))
            }
            18 => match self.random.random_range(0..4) {
                0 => Step::DeleteSchedule(name),
                _ => Step::Schedule(name),
            },
            _ => match self.happens(0.5) {
                true => Step::Schedules(self.limit(3, 1001)),
                false => Step::Occurrences(name, self.limit(5, 1001)),
            },
        }
    }

    /// Few variants, so that an unchanged schedule is put again now and then.
    fn schedule_spec(&mut self) -> ScheduleSpec {
        let (unkeyed, cadence) = (self.unkeyed(), self.pick(CADENCES));
        let job = match self.random.random_range(0..10) {
            0 => unkeyed,
            1 => self.keyed(),
            _ => JobSpec { max_attempts: 2, ..JobSpec::new(self.pick(TYPES)) },
        };
        ScheduleSpec {
            name: self.pick(["s1", "s2", "s3"]),
            cadence,
            overlap: self.pick(OVERLAPS),
            misfire: self.pick([Misfire::Skip, Misfire::FireOnce, Misfire::CatchUp]),
            catch_up: self.pick([1, 3, 120, 0]),
            jitter: if self.happens(0.3) { self.span(5) } else { Duration::ZERO },
            start: self.maybe(0.1, |g| g.time(5, 20)),
            end: self.maybe(0.1, |g| g.time(5, 60)),
            paused: self.happens(0.1),
            job,
            delay: if self.happens(0.2) { self.span(5) } else { Duration::ZERO },
        }
    }

    fn read(&mut self) -> Step {
        match self.random.random_range(0..11) {
            0 => Step::Get(self.job_ref()),
            1 => Step::Summary(self.job_ref()),
            2..6 => Step::List(self.filter(), self.limit(20, 1001)),
            6 => Step::Logs(self.job_ref(), self.maybe(0.3, |g| g.pick([i64::MIN, 0, i64::MAX])), self.limit(3, 1001)),
            7 => Step::Depths,
            8 => Step::PausedQueues,
            9 => Step::Lanes(self.limit(6, 10_001)),
            _ => Step::Workers(self.limit(3, 1001)),
        }
    }

    fn filter(&mut self) -> FilterSpec {
        let states = (0..self.random.random_range(0..3)).map(|_| self.pick(JobState::ALL)).collect();
        FilterSpec {
            states,
            queue: self.maybe(0.2, |g| g.pick(QUEUES)),
            job_type: self.maybe(0.2, |g| g.pick(TYPES)),
            tenant: self.maybe(0.2, |g| g.pick(TENANTS)),
            tag: self.maybe(0.2, |g| g.pick(TAGS)),
            text: self.maybe(0.2, |g| g.pick(TEXTS)),
            from: self.maybe(0.2, Self::any_time),
            to: self.maybe(0.2, Self::any_time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_sequence() {
        assert_eq!(generate(7, 300), generate(7, 300));
        assert_ne!(generate(7, 300), generate(8, 300));
        assert_eq!(generate(7, 300)[..100], generate(7, 100));
    }

    #[test]
    fn some_seeds_begin_with_very_many_lanes() {
        let wide = |seed| matches!(generate(seed, 300)[..], [Step::EnqueueWide(WIDE_JOBS), ..]);
        assert_eq!((0..40).filter(|seed| wide(*seed)).count(), 5);
    }
}
