//! Whether all promises were kept, by what the database holds, what the processes wrote down and what was done to them. It
//! shares nothing with the runtime: not its types, not its ways to read.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use super::{
    ground::{Lease, Row},
    journal::{Run, Time, Word, Written},
    stream::Ledger,
};

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Blow {
    /// SIGKILL.
    Killed,
    /// SIGSTOP and later SIGCONT.
    Stopped,
    /// SIGTERM.
    Terminated,
    /// Its line to the database passed nothing on.
    Frozen,
    /// Connections were ended by the server.
    Disconnected,
    /// The database was killed and started again.
    Away,
}

/// What was done, to whom and when.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) blow: Blow,
    /// A worker, or all.
    pub(crate) worker: Option<String>,
    pub(crate) from: Time,
    pub(crate) until: Time,
}

/// How long after a database came back what happens may still come of its absence: leases that ran out meanwhile, or were
/// given in answers that never arrived.
const AFTERMATH: Time = 5_000_000;

impl Fault {
    fn struck(&self, worker: &str) -> bool {
        self.worker.as_ref().is_none_or(|struck| struck == worker)
    }

    // Whether a lease may have been lost by it, with the run that there was.
    fn explains(&self, lease: &Lease, run: Option<&Run>) -> bool {
        // One that ended because it was asked to, and not by the loss, was to be handed back.
        let gave_up = run
            .and_then(|run| run.end)
            .is_some_and(|(at, word)| matches!(word, Word::Stopped | Word::Dropped) && at < lease.until);
        let aftermath = match self.blow {
            // What it had asked for may still be given to it.
            Blow::Killed => Time::MAX / 2,
            Blow::Terminated => return false,
            // The answer to a claim may be lost; heartbeats and outcomes are sent again.
            Blow::Disconnected if run.is_some() => return false,
            _ if gave_up => return false,
            _ => AFTERMATH,
        };
        self.struck(&lease.worker) && self.from <= lease.until && lease.until <= self.until + aftermath
    }
}

/// What came of it all.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) jobs: usize,
    pub(crate) runs: usize,
    /// Leases that were lost before their handler began.
    pub(crate) unbegun: usize,
    /// Runs after one that was cut short, or whose end could not be told.
    pub(crate) doubles: usize,
    /// Of those, how many began while the one before still ran, without a lease.
    pub(crate) overlaps: usize,
    pub(crate) released: usize,
    /// Runs that ended while the database was away, whose word it has all the same; and those whose word it has not.
    pub(crate) kept: usize,
    pub(crate) forgotten: usize,
    /// Outcomes that were refused, and leases that were found lost, by the word of the workers.
    pub(crate) stale: u64,
    pub(crate) lost: u64,
    /// From a kill to the next begin of each job that was cut short, where the database was there all the while.
    pub(crate) reclaimed: Vec<Duration>,
    /// From the return of the database until jobs ended at the rate of before.
    pub(crate) restored: Vec<Duration>,
    pub(crate) violations: Vec<String>,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, runs, unbegun, doubles, overlaps, released, stale, lost, .. } = self;
        writeln!(f, "{jobs} jobs, {runs} runs, {doubles} double executions explained, {overlaps} of them overlapping")?;
        write!(f, "{unbegun} lost unbegun, {released} handed back, {stale} stale outcomes refused, {lost} found lost")?;
        if self.kept + self.forgotten > 0 {
            write!(f, "; of outcomes without a database {} were kept, {} forgotten", self.kept, self.forgotten)?;
        }
        for (what, took) in [("begun anew", &self.reclaimed), ("full rate again", &self.restored)] {
            if let Some(longest) = took.iter().max() {
                write!(f, "; {what} {} times, at the latest after {longest:.1?}", took.len())?;
            }
        }
        Ok(())
    }
}

/// All that there is to judge by.
pub(crate) struct Evidence<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) rows: &'a [Row],
    pub(crate) written: &'a BTreeMap<String, Written>,
    pub(crate) faults: &'a [Fault],
    /// When jobs ceased to come.
    pub(crate) closed: Time,
}

/// A run and whose it was.
type Ran<'a> = (&'a str, &'a Run);

impl Evidence<'_> {
    pub(crate) fn judge(&self) -> Judgement {
        let mut found = Judgement { jobs: self.rows.len(), ..Judgement::default() };
        let mut runs: HashMap<(&str, i32), Ran<'_>> = HashMap::new();
        for (worker, written) in self.written {
            found.runs += written.runs.len();
            found.stale += written.stale;
            found.lost += written.lost;
            found.violations.extend(written.violations.iter().map(|what| format!("{worker}: {what}")));
            for run in &written.runs {
                if let Some((other, _)) = runs.insert((&run.job, run.lease), (worker, run)) {
                    found.violations.push(format!("lease {} of {} ran by {other} and {worker}", run.lease, run.job));
                }
                if run.end.is_none() && self.killed(worker).is_none() {
                    found.violations.push(format!("{worker} lived on, and {} never ended", run.job));
                }
            }
        }
        let ids: HashMap<&str, &Row> = self.rows.iter().map(|row| (row.job.as_str(), row)).collect();
        for (job, end) in self.ledger {
            match ids.get(job.as_str()) {
                None => found.violations.push(format!("{job} was acknowledged and is gone")),
                Some(row) if row.state != **end => {
                    found.violations.push(format!("{job} should be {end}: {row:?}"));
                }
                Some(_) => {}
            }
        }
        for (job, lease) in runs.keys() {
            if !ids.get(job).is_some_and(|row| row.leases.iter().any(|known| known.counter == *lease)) {
                found.violations.push(format!("{job} ran by lease {lease}, of which the database knows nothing"));
            }
        }
        for row in self.rows {
            let wrong = self.wrong_with(row, &runs);
            found.violations.extend(wrong.into_iter().map(|what| format!("{what}: {row:?}")));
            self.follow(row, &runs, &mut found);
        }
        found.restored = self.restored();
        found
    }

    fn killed(&self, worker: &str) -> Option<Time> {
        let killed = |fault: &&Fault| fault.blow == Blow::Killed && fault.struck(worker);
        self.faults.iter().find(killed).map(|fault| fault.from)
    }

    fn away(&self, from: Time, until: Time) -> bool {
        self.faults.iter().any(|fault| fault.blow == Blow::Away && fault.from <= until && fault.until >= from)
    }

    // What a job's row and its leases say, and whether the runs agree.
    fn wrong_with(&self, row: &Row, runs: &HashMap<(&str, i32), Ran<'_>>) -> Vec<String> {
        let mut wrong = Vec::new();
        let counters: Vec<i32> = row.leases.iter().map(|lease| lease.counter).collect();
        if counters != (1..=row.counter).collect::<Vec<_>>() {
            wrong.push("not every lease ended once".to_owned());
        }
        let spent = row.leases.iter().filter(|lease| matches!(&*lease.outcome, "completed" | "failed" | "lost"));
        if spent.count() != usize::try_from(row.attempts).unwrap() || row.attempts > row.max_attempts {
            wrong.push("attempts do not add up".to_owned());
        }
        let last = row.leases.last().map(|lease| lease.outcome.as_str());
        match (row.state.as_str(), last) {
            ("completed", Some("completed")) if row.done_by == Some(row.counter) => {}
            ("dead", Some("failed" | "lost")) => {}
            _ => wrong.push("its end is not that of its last lease".to_owned()),
        }
        for lease in &row.leases {
            let run = runs.get(&(row.job.as_str(), lease.counter));
            if let Some((worker, _)) = run
                && *worker != lease.worker
            {
                wrong.push(format!("lease {} is not that of {worker}", lease.counter));
            }
            let end = run.and_then(|(_, run)| run.end).filter(|(at, _)| *at <= lease.until).map(|(_, word)| word);
            let right = match (lease.outcome.as_str(), end) {
                ("completed", Some(Word::Done)) | ("failed", Some(Word::Failed)) => true,
                // What no handler has begun may be handed back at any time; what one has, by whoever was asked to end.
                ("released", end) => {
                    let asked = |fault: &Fault| {
                        fault.blow == Blow::Terminated && fault.struck(&lease.worker) && fault.from <= lease.until
                    };
                    run.is_none() || matches!(end, Some(Word::Stopped | Word::Dropped)) && self.faults.iter().any(asked)
                }
                ("lost", _) => self.faults.iter().any(|fault| fault.explains(lease, run.map(|(_, run)| *run))),
                _ => false,
            };
            if !right {
                wrong.push(format!("lease {} has no explanation by {run:?}", lease.counter));
            }
        }
        wrong
    }

    // From each lease to the next.
    fn follow(&self, row: &Row, runs: &HashMap<(&str, i32), Ran<'_>>, found: &mut Judgement) {
        for lease in &row.leases {
            found.released += usize::from(lease.outcome == "released");
            let Some((worker, run)) = runs.get(&(row.job.as_str(), lease.counter)) else {
                found.unbegun += usize::from(lease.outcome == "lost");
                continue;
            };
            if let Some((at, Word::Done | Word::Failed)) = run.end
                && self.away(at, at)
                && self.killed(worker).is_none()
            {
                match lease.outcome.as_str() {
                    "completed" | "failed" => found.kept += 1,
                    _ => found.forgotten += 1,
                }
            }
            let later = (lease.counter + 1..=row.counter).find_map(|next| runs.get(&(row.job.as_str(), next)));
            let Some((next_worker, next)) = later else { continue };
            found.doubles += usize::from(lease.outcome == "lost");
            let killed = self.killed(worker);
            if let (Some(killed), None) = (killed, run.end)
                && !self.away(killed, next.start)
            {
                found.reclaimed.push(Duration::from_micros((next.start - killed).unsigned_abs()));
            }
            let alive_until = run.end.map(|(at, _)| at).or(killed).unwrap_or(Time::MAX);
            if next.start < alive_until {
                // A handler goes on until it learns that its lease is lost, which it could not while it was stopped or cut
                // off. A kill is no excuse: one that was still alive had its lease.
                let excused =
                    self.faults.iter().any(|fault| fault.blow != Blow::Killed && fault.explains(lease, Some(run)));
                match excused && lease.outcome == "lost" {
                    true => found.overlaps += 1,
                    false => found.violations.push(format!(
                        "{next_worker} began {} at {} while {worker} was at it: {row:?}",
                        row.job, next.start
                    )),
                }
            }
        }
    }

    // For each return of the database: until a second in which as many jobs ended as in one before, nearly. Where there was
    // too little time before or after to tell, nothing is said.
    fn restored(&self) -> Vec<Duration> {
        const SECOND: Time = 1_000_000;
        let mut ends: Vec<Time> = self.rows.iter().filter_map(|row| row.finished).collect();
        ends.sort_unstable();
        let until = |then: Time| ends.partition_point(|at| *at < then);
        let per_second = |from: Time, to: Time| (until(to) - until(from)) as f64 / (to - from) as f64 * SECOND as f64;
        let away: Vec<&Fault> = self.faults.iter().filter(|fault| fault.blow == Blow::Away).collect();
        let mut restored = Vec::new();
        let mut calm_since = ends.first().copied().unwrap_or(0);
        for (n, fault) in away.iter().enumerate() {
            let before = (fault.from - 5 * SECOND).max(calm_since);
            let limit = away.get(n + 1).map_or(self.closed, |next| next.from);
            calm_since = fault.until + 5 * SECOND;
            if fault.from - before < 2 * SECOND {
                continue;
            }
            let full = per_second(before, fault.from);
            let mut from = fault.until;
            while from + SECOND <= limit && per_second(from, from + SECOND) < 0.8 * full {
                from += SECOND / 20;
            }
            if from + SECOND <= limit || limit - fault.until > 6 * SECOND {
                restored.push(Duration::from_micros((from + SECOND - fault.until).unsigned_abs()));
            }
        }
        restored
    }
}
