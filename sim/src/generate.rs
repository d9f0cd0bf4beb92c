//! Random sequences, everything from the seed.
//!
//! Names are few, so that jobs meet in queues, keys and graphs. Times are mostly whole seconds, so that what falls due
//! does so at the very moment that somebody looks; now and then they have digits that stores have to cut off.

use std::time::Duration;

use orchestrix_core::{JobState, Lifecycle, Misfire, NewJob, OnDependencyFailure, Overlap};
use orchestrix_store::{Directive, LogLevel};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

use crate::{
    player::RETENTION_PASSED,
    step::{Ending, Filter, Forged, Payload, Request, Series, Start, Step, Time, Token, Turns, Which},
};

const QUEUES: [&str; 3] = ["a", "b", "c"];
const TYPES: [&str; 2] = ["mail", "report"];
const TENANTS: [&str; 2] = ["default", "acme"];
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];
const NODES: [&str; 3] = ["n1", "n2", "n3"];
const TERMS: [Duration; 4] =
    [Duration::from_secs(10), Duration::from_millis(100), Duration::from_secs(3600), Duration::ZERO];
const SCHEDULES: [&str; 4] = ["s1", "s2", "s3", "nobody"];
const TURNS: [Turns; 6] = [
    Turns::Every(1),
    Turns::Every(5),
    Turns::Every(60),
    Turns::Cron("*/10 * * * * *"),
    Turns::Cron("30 2 * * *"),
    Turns::Every(0),
];
const OVERLAPS: [Overlap; 4] = [Overlap::Skip, Overlap::Allow, Overlap::BufferOne, Overlap::CancelRunning];
const KEYS: [&str; 3] = ["k1", "k2", "k3"];
const REFERENCES: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];
const TAGS: [&str; 2] = ["red", "blue"];
const TEXTS: [&str; 9] = ["mail", "e", "corr-1", "k2", "expired", "%", "_", "", "\0"];
const RESULTS: [&str; 3] = ["1", r#"{"ok": true,  "n":1.50}"#, r#""\u0000""#];
/// PostgreSQL keeps 31 bits of them, and cuts off what no worker has.
const SLOTS: [u32; 3] = [0, 8, u32::MAX / 2];
const POLICIES: [OnDependencyFailure; 3] =
    [OnDependencyFailure::Cancel, OnDependencyFailure::Run, OnDependencyFailure::Hold];

/// More than any sequence has jobs: which of several that fall due together come first is a store's own affair.
const SWEEP: usize = 1_000;

/// The sequence of `seed`, so many steps long.
pub fn generate(seed: u64, steps: usize) -> Vec<Step> {
    let mut generator = Generator { random: SmallRng::seed_from_u64(seed), now: Duration::ZERO };
    (0..steps).map(|_| generator.step()).collect()
}

struct Generator {
    random: SmallRng,
    /// What the clock will show if every step is played, from the start.
    now: Duration,
}

impl Generator {
    fn step(&mut self) -> Step {
        match self.random.random_range(0..1000) {
            0..140 => Step::Enqueue(self.request()),
            140..200 => self.schedule(),
            200..245 => self.enqueue_many(),
            245..425 => self.claim(),
            425..620 => {
                let items = if self.chance(0.7) { 1 } else { self.random.random_range(0..5) };
                Step::OutcomeReport((0..items).map(|_| (self.token(), self.ending())).collect())
            }
            620..645 => Step::Heartbeat((0..self.random.random_range(0..4)).map(|_| self.token()).collect()),
            645..660 => self.progress(),
            660..675 => Step::Checkpoint(self.token(), self.one(RESULTS)),
            675..700 => self.append_logs(),
            700..720 => Step::ReleaseHold(self.which()),
            720..755 => Step::Cancel(self.which()),
            755..785 => Step::Retry(self.which()),
            785..793 => Step::RetryMany(self.filter(), self.limit(5, 1001)),
            793..810 => Step::Reprioritize(self.which(), self.random.random_range(-2..=2)),
            810..816 => Step::Pause(self.one(QUEUES)),
            816..828 => Step::Resume(self.one(QUEUES)),
            828..850 => Step::Promote(self.sweep()),
            850..854 => Step::Unblock(self.sweep()),
            854..866 => Step::Expire(self.sweep()),
            866..884 => Step::Reap(self.sweep(), self.one([0, 1, 2, Lifecycle::CRASH_LOOP])),
            884..898 => Step::TimeOut(self.sweep()),
            898..910 => self.worker(),
            910..925 => self.coordinate(),
            925..945 => self.read(),
            945..947 => {
                self.now += RETENTION_PASSED;
                Step::Prune
            }
            947..949 => Step::KeepForever(self.sweep()),
            _ => {
                let by = self.advance();
                self.now += by;
                Step::Advance(by)
            }
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        self.random.random_bool(share)
    }

    fn one<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.random.random_range(0..N)]
    }

    fn maybe<T>(&mut self, share: f64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(share).then(|| make(self))
    }

    /// The newest are the liveliest, so they are met most.
    fn which(&mut self) -> Which {
        match self.random.random_range(0..100) {
            0..3 => Which::Unknown(self.random.random_range(0..3)),
            3..60 => Which::Back(self.random.random_range(0..8)),
            _ => Which::Back(self.random.random_range(0..60)),
        }
    }

    fn token(&mut self) -> Token {
        let back = if self.chance(0.7) { self.random.random_range(0..6) } else { self.random.random_range(0..40) };
        let forged = self.maybe(0.04, |g| g.one([Forged::Secret, Forged::Counter, Forged::Job]));
        Token { back, forged }
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

    fn time(&mut self, before: u64, after: u64) -> Time {
        let span = self.span(before + after);
        Time::After((self.now + span).saturating_sub(Duration::from_secs(before)))
    }

    /// A time that somebody may ask for, however odd.
    fn any_time(&mut self) -> Time {
        match self.random.random_range(0..20) {
            0 => Time::First,
            1 => Time::Last,
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

    // Mostly the same: jobs wait for those of their own tenant alone, and schedules stay their tenant's.
    fn tenant(&mut self) -> &'static str {
        if self.chance(0.15) { TENANTS[1] } else { TENANTS[0] }
    }

    fn request(&mut self) -> Request {
        if self.chance(0.15) { self.keyed() } else { self.unkeyed() }
    }

    /// One of few requests under few keys, so that repeats, and repeats that are not quite the same, are common.
    fn keyed(&mut self) -> Request {
        let key = self.one(KEYS);
        let spelt = [r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, r#"{"a":1,"b":2}"#, r#"{"a":2}"#];
        Request {
            key: Some(key),
            payload: Payload::Json(self.one(spelt)),
            tenant: self.tenant(),
            hold: key == "k2",
            start: if key == "k3" { Start::After(Duration::from_secs(5)) } else { Start::Now },
            reference: (key == "k1").then_some("k1"),
            parents: self.maybe(0.1, Self::which).into_iter().collect(),
            ..Request::new(self.one(TYPES))
        }
    }

    fn unkeyed(&mut self) -> Request {
        let mut request = Request {
            queue: self.one(QUEUES),
            tenant: self.tenant(),
            priority: self.random.random_range(-1..=1),
            payload: if self.chance(0.05) { Payload::Long } else { Payload::Json(self.one(RESULTS)) },
            max_attempts: self.random.random_range(1..4),
            lease: Duration::from_secs(self.random.random_range(1..10)),
            timeout: self.maybe(0.2, |g| g.span(8)),
            back_off: (self.span(3), Duration::from_secs(5)),
            on_failure: self.one(POLICIES),
            tag: self.maybe(0.3, |g| g.one(TAGS)),
            correlation: self.maybe(0.2, |g| g.one(["corr-1", "corr-2"])),
            expires: self.maybe(0.15, |g| g.time(1, 20)),
            hold: self.chance(0.08),
            ..Request::new(self.one(TYPES))
        };
        if self.chance(0.2) {
            request.start = if self.chance(0.5) { Start::After(self.span(10)) } else { Start::At(self.time(5, 10)) };
        }
        if self.chance(0.35) {
            request.parents = (0..self.random.random_range(1..4)).map(|_| self.which()).collect();
        }
        match self.random.random_range(0..150) {
            0 => request.max_attempts = 0,
            1 => request.lease = Duration::from_millis(10),
            2 => request.correlation = Some(""),
            3 => request.inside = vec!["r0"],
            _ => {}
        }
        request
    }

    fn enqueue_many(&mut self) -> Step {
        let count = self.random.random_range(0..=REFERENCES.len());
        let mut requests: Vec<Request> = REFERENCES[..count]
            .iter()
            .map(|name| match self.chance(0.2) {
                true => self.keyed(),
                false => Request { reference: Some(name), ..self.unkeyed() },
            })
            .collect();
        for i in 1..count {
            // Only those before it, so that there is no cycle, and only by names that they have.
            let names: Vec<&'static str> = requests[..i].iter().filter_map(|earlier| earlier.reference).collect();
            if requests[i].key.is_none() && !names.is_empty() && self.chance(0.6) {
                requests[i].inside.push(names[self.random.random_range(0..names.len())]);
            }
        }
        match self.random.random_range(0..30) {
            // Perhaps a cycle, perhaps a reference that nobody has or two have.
            0 => requests.iter_mut().take(1).for_each(|first| first.inside.push("r1")),
            1 => requests.iter_mut().take(1).for_each(|first| first.inside.push("nobody")),
            2 => requests.iter_mut().for_each(|each| each.reference = each.reference.map(|_| "r0")),
            _ => {}
        }
        Step::EnqueueMany(requests)
    }

    fn claim(&mut self) -> Step {
        Step::Claim {
            worker: self.one(WORKERS),
            queues: self.maybe(0.4, |g| (0..g.random.random_range(0..3)).map(|_| g.one(QUEUES)).collect()),
            types: self.maybe(0.3, |g| (0..g.random.random_range(0..3)).map(|_| g.one(TYPES)).collect()),
            limit: self.limit(4, 10_001),
        }
    }

    fn ending(&mut self) -> Ending {
        match self.random.random_range(0..100) {
            0..45 => Ending::Complete(self.maybe(0.5, |g| g.one(RESULTS))),
            45..65 => Ending::Fail(self.one(["not yet", "nul \0"]), true, None),
            65..72 => Ending::Fail("busy", true, Some(self.span(5))),
            72..80 => Ending::Fail("no use", false, None),
            80..87 => Ending::Snooze(self.span(5)),
            87..91 => Ending::Release,
            91..94 => Ending::Cancelled,
            94..98 => Ending::TimedOut,
            98 => Ending::Snooze(NewJob::MAX_DELAY + self.span(1)),
            _ => Ending::Fail("later", true, Some(NewJob::MAX_DELAY + Duration::from_secs(1))),
        }
    }

    fn progress(&mut self) -> Step {
        let percent = self.maybe(0.8, |g| g.one([0.0, 33.3, 100.0, 12.345_678_901_234, 101.0]));
        Step::Progress(self.token(), percent, self.maybe(0.5, |g| g.one(["half", "", "é\n", "nul \0"])))
    }

    fn append_logs(&mut self) -> Step {
        let token = self.token();
        let line = |g: &mut Self| {
            (g.one(LogLevel::ALL), g.maybe(0.3, |g| g.time(5, 5)), g.one(["begun", "", "done\n", "begun"]))
        };
        Step::AppendLogs(token, (0..self.random.random_range(0..4)).map(|_| line(self)).collect())
    }

    fn worker(&mut self) -> Step {
        let name = self.one(WORKERS);
        match self.random.random_range(0..12) {
            0..4 => {
                let (queues, slots) = (self.maybe(0.5, |g| vec![g.one(QUEUES)]), self.one(SLOTS));
                let instance = self.maybe(0.6, |g| g.one(["first", "second"]));
                let silence = self.maybe(0.3, |g| if g.chance(0.1) { Duration::MAX } else { g.span(60) });
                Step::RegisterWorker(name, queues, slots, instance, silence)
            }
            4..7 => Step::HeartbeatWorker(name, self.maybe(0.8, |g| g.one(SLOTS)), self.chance(0.1)),
            7..9 => Step::DirectWorker(name, self.one([Directive::Run, Directive::Drain, Directive::Stop])),
            9..11 => Step::RemoveWorker(name),
            _ => Step::ForgetWorkers(if self.chance(0.2) { Duration::MAX } else { self.span(60) }, self.sweep()),
        }
    }

    fn coordinate(&mut self) -> Step {
        let name = self.one(NODES);
        match self.random.random_range(0..20) {
            0..7 => Step::Campaign(name, self.one(TERMS), self.chance(0.5)),
            7..9 => Step::Resign(name),
            9..12 => Step::PromoteAs(self.one([0, 0, -1, 1]), self.sweep()),
            12..15 => Step::HeartbeatNode(name),
            15 => Step::RemoveNode(name),
            16 => Step::ForgetNodes(if self.chance(0.2) { Duration::MAX } else { self.span(60) }, self.sweep()),
            17..19 => Step::Nodes,
            _ => Step::SweepTimes,
        }
    }

    fn schedule(&mut self) -> Step {
        let name = self.one(SCHEDULES);
        match self.random.random_range(0..20) {
            0..4 => Step::PutSchedule(self.series()),
            4..11 => Step::Fire(self.sweep()),
            11 => Step::FireAs(self.one([0, 0, -1, 1]), self.sweep()),
            12 => Step::PauseSchedule(name, self.maybe(0.5, |g| g.one(["broken", "nul \0"]))),
            13..15 => Step::ResumeSchedule(name),
            15 => Step::TriggerSchedule(name),
            16..18 => {
                let (from, to) = (self.time(60, 0), self.time(30, 10));
                Step::BackfillSchedule(name, from, to, self.maybe(0.5, |g| g.one(OVERLAPS)))
            }
            18 => match self.random.random_range(0..4) {
                0 => Step::DeleteSchedule(name),
                _ => Step::Schedule(name),
            },
            _ => match self.chance(0.5) {
                true => Step::Schedules(self.limit(3, 1001)),
                false => Step::Occurrences(name, self.limit(5, 1001)),
            },
        }
    }

    /// Few of each kind, so that the same is put again now and then.
    fn series(&mut self) -> Series {
        let (request, turns) = (self.unkeyed(), self.one(TURNS));
        let job = match self.random.random_range(0..10) {
            0 => request,
            1 => self.keyed(),
            _ => Request { max_attempts: 2, ..Request::new(self.one(TYPES)) },
        };
        Series {
            name: self.one(["s1", "s2", "s3"]),
            turns,
            overlap: self.one(OVERLAPS),
            misfire: self.one([Misfire::Skip, Misfire::FireOnce, Misfire::CatchUp]),
            catch_up: self.one([1, 3, 120, 0]),
            jitter: if self.chance(0.3) { self.span(5) } else { Duration::ZERO },
            start: self.maybe(0.1, |g| g.time(5, 20)),
            end: self.maybe(0.1, |g| g.time(5, 60)),
            paused: self.chance(0.1),
            job,
            delay: if self.chance(0.2) { self.span(5) } else { Duration::ZERO },
        }
    }

    fn read(&mut self) -> Step {
        match self.random.random_range(0..11) {
            0 => Step::Get(self.which()),
            1 => Step::Summary(self.which()),
            2..6 => Step::List(self.filter(), self.limit(20, 1001)),
            6 => Step::Logs(self.which(), self.maybe(0.3, |g| g.one([i64::MIN, 0, i64::MAX])), self.limit(3, 1001)),
            7 => Step::Depths,
            8 => Step::PausedQueues,
            9 => Step::Lanes(self.limit(6, 10_001)),
            _ => Step::Workers(self.limit(3, 1001)),
        }
    }

    fn filter(&mut self) -> Filter {
        let states = (0..self.random.random_range(0..3)).map(|_| self.one(JobState::ALL)).collect();
        Filter {
            states,
            queue: self.maybe(0.2, |g| g.one(QUEUES)),
            job_type: self.maybe(0.2, |g| g.one(TYPES)),
            tenant: self.maybe(0.2, |g| g.one(TENANTS)),
            tag: self.maybe(0.2, |g| g.one(TAGS)),
            text: self.maybe(0.2, |g| g.one(TEXTS)),
            from: self.maybe(0.2, Self::any_time),
            to: self.maybe(0.2, Self::any_time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence() {
        assert_eq!(generate(7, 300), generate(7, 300));
        assert_ne!(generate(7, 300), generate(8, 300));
        assert_eq!(generate(7, 300)[..100], generate(7, 100));
    }
}
