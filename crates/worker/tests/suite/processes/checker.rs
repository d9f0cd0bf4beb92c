//! Checks the history of a fleet: the rows of the database and the journals of the processes, against the injected
//! faults. It shares no code with the runtime.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use super::{
    journal::{JournalContents, Run, RunEnd, Time},
    test_store::{Lease, Row},
    workload::ExpectedStates,
};

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// SIGKILL.
    Killed,
    /// SIGSTOP and later SIGCONT.
    Suspended,
    /// SIGTERM.
    Terminated,
    /// The worker's connections to the database passed no data.
    NetworkFrozen,
    /// The server closed connections.
    Disconnected,
    /// The database was killed and restarted.
    DatabaseDown,
}

/// An injected fault.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// The affected worker. `None` means all.
    pub(crate) worker: Option<String>,
    pub(crate) from: Time,
    pub(crate) until: Time,
}

/// How long after a fault its consequences may still occur: leases that expired meanwhile, or whose claim response was
/// lost.
const AFTERMATH: Time = 5_000_000;

impl Fault {
    fn affects(&self, worker: &str) -> bool {
        self.worker.as_ref().is_none_or(|affected| affected == worker)
    }

    /// Whether the fault can have caused the loss of this lease.
    fn explains(&self, lease: &Lease, run: Option<&Run>) -> bool {
        // A run that was cancelled before the loss should have been released.
        let gave_up = run
            .and_then(|run| run.end)
            .is_some_and(|(at, end)| matches!(end, RunEnd::Cancelled | RunEnd::Dropped) && at < lease.until);
        let aftermath = match self.kind {
            // A claim in flight may still lease jobs to the dead worker.
            FaultKind::Killed => Time::MAX / 2,
            FaultKind::Terminated => return false,
            // The response to a claim may be lost. Heartbeats and outcomes are sent again.
            FaultKind::Disconnected if run.is_some() => return false,
            _ if gave_up => return false,
            _ => AFTERMATH,
        };
        self.affects(&lease.worker) && self.from <= lease.until && lease.until <= self.until + aftermath
    }
}

/// The result of a check.
#[derive(Debug, Default)]
pub(crate) struct CheckReport {
    pub(crate) jobs: usize,
    pub(crate) runs: usize,
    /// Leases that were lost before their handler started.
    pub(crate) lost_before_start: usize,
    /// Runs after a lost lease.
    pub(crate) reruns: usize,
    /// Reruns that started while the previous run still ran without a lease.
    pub(crate) overlaps: usize,
    pub(crate) released: usize,
    /// Runs that ended during an outage and whose outcome was reported.
    pub(crate) kept: usize,
    /// Runs that ended during an outage and whose outcome was lost.
    pub(crate) forgotten: usize,
    /// Outcomes that were refused, according to the journals.
    pub(crate) stale: u64,
    /// Lost leases that workers noticed, according to the journals.
    pub(crate) lost: u64,
    /// The time from a kill to the next start of each interrupted job, if the database was available.
    pub(crate) reclaimed: Vec<Duration>,
    /// The time from the end of an outage until jobs finished at the previous rate.
    pub(crate) restored: Vec<Duration>,
    pub(crate) violations: Vec<String>,
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, runs, lost_before_start, reruns, overlaps, released, stale, lost, .. } = self;
        writeln!(f, "{jobs} jobs, {runs} runs, {reruns} explained reruns, {overlaps} of them overlapping")?;
        write!(
            f,
            "{lost_before_start} lost before their start, {released} released, {stale} stale outcomes refused, {lost} lost leases noticed"
        )?;
        if self.kept + self.forgotten > 0 {
            write!(f, "; {} outcomes kept through an outage, {} lost", self.kept, self.forgotten)?;
        }
        for (what, took) in [("restarted", &self.reclaimed), ("full rate again", &self.restored)] {
            if let Some(longest) = took.iter().max() {
                write!(f, "; {what} {} times, after at most {longest:.1?}", took.len())?;
            }
        }
        Ok(())
    }
}

/// Everything that is known about a run of a fleet.
pub(crate) struct History<'a> {
    pub(crate) expected: &'a ExpectedStates,
    pub(crate) rows: &'a [Row],
    pub(crate) journals: &'a BTreeMap<String, JournalContents>,
    pub(crate) faults: &'a [Fault],
    /// When the workload stopped.
    pub(crate) closed: Time,
}

/// A worker's name and one of its runs.
type WorkerRun<'a> = (&'a str, &'a Run);

impl History<'_> {
    pub(crate) fn check(&self) -> CheckReport {
        let mut report = CheckReport { jobs: self.rows.len(), ..CheckReport::default() };
        let mut runs: HashMap<(&str, i32), WorkerRun<'_>> = HashMap::new();
        for (worker, contents) in self.journals {
            report.runs += contents.runs.len();
            report.stale += contents.stale;
            report.lost += contents.lost;
            report.violations.extend(contents.violations.iter().map(|what| format!("{worker}: {what}")));
            for run in &contents.runs {
                if let Some((other, _)) = runs.insert((&run.job, run.lease), (worker, run)) {
                    report.violations.push(format!("lease {} of {} ran by {other} and {worker}", run.lease, run.job));
                }
                if run.end.is_none() && self.killed(worker).is_none() {
                    report.violations.push(format!("{worker} survived, but its run of {} did not end", run.job));
                }
            }
        }
        let ids: HashMap<&str, &Row> = self.rows.iter().map(|row| (row.job.as_str(), row)).collect();
        for (job, end) in self.expected {
            match ids.get(job.as_str()) {
                None => report.violations.push(format!("{job} was acknowledged and is missing")),
                Some(row) if row.state != **end => {
                    report.violations.push(format!("{job} should be {end}: {row:?}"));
                }
                Some(_) => {}
            }
        }
        for (job, lease) in runs.keys() {
            if !ids.get(job).is_some_and(|row| row.leases.iter().any(|known| known.counter == *lease)) {
                report.violations.push(format!("{job} ran with lease {lease}, of which the database has no record"));
            }
        }
        for row in self.rows {
            let violations = self.check_row(row, &runs);
            report.violations.extend(violations.into_iter().map(|what| format!("{what}: {row:?}")));
            self.check_successive_leases(row, &runs, &mut report);
        }
        report.restored = self.recovery_times();
        report
    }

    fn killed(&self, worker: &str) -> Option<Time> {
        let killed = |fault: &&Fault| fault.kind == FaultKind::Killed && fault.affects(worker);
        self.faults.iter().find(killed).map(|fault| fault.from)
    }

    fn database_down(&self, from: Time, until: Time) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.kind == FaultKind::DatabaseDown && fault.from <= until && fault.until >= from)
    }

    /// Checks a job's row against its leases and runs.
    fn check_row(&self, row: &Row, runs: &HashMap<(&str, i32), WorkerRun<'_>>) -> Vec<String> {
        let mut violations = Vec::new();
        let counters: Vec<i32> = row.leases.iter().map(|lease| lease.counter).collect();
        if counters != (1..=row.counter).collect::<Vec<_>>() {
            violations.push("not every lease ended exactly once".to_owned());
        }
        let spent = row.leases.iter().filter(|lease| matches!(&*lease.outcome, "completed" | "failed" | "lost"));
        if spent.count() != usize::try_from(row.attempts).unwrap() || row.attempts > row.max_attempts {
            violations.push("attempts do not add up".to_owned());
        }
        let last = row.leases.last().map(|lease| lease.outcome.as_str());
        match (row.state.as_str(), last) {
            ("completed", Some("completed")) if row.done_by == Some(row.counter) => {}
            ("dead", Some("failed" | "lost")) => {}
            _ => violations.push("its final state is not that of its last lease".to_owned()),
        }
        for lease in &row.leases {
            let run = runs.get(&(row.job.as_str(), lease.counter));
            if let Some((worker, _)) = run
                && *worker != lease.worker
            {
                violations.push(format!("lease {} is not that of {worker}", lease.counter));
            }
            let end = run.and_then(|(_, run)| run.end).filter(|(at, _)| *at <= lease.until).map(|(_, end)| end);
            let is_explained = match (lease.outcome.as_str(), end) {
                ("completed", Some(RunEnd::Succeeded)) | ("failed", Some(RunEnd::Failed)) => true,
                // A job that was not started may be released at any time. A started one only by a terminated worker.
                ("released", end) => {
                    let terminated = |fault: &Fault| {
                        fault.kind == FaultKind::Terminated && fault.affects(&lease.worker) && fault.from <= lease.until
                    };
                    run.is_none()
                        || matches!(end, Some(RunEnd::Cancelled | RunEnd::Dropped))
                            && self.faults.iter().any(terminated)
                }
                ("lost", _) => self.faults.iter().any(|fault| fault.explains(lease, run.map(|(_, run)| *run))),
                _ => false,
            };
            if !is_explained {
                violations.push(format!("lease {} has no explanation: {run:?}", lease.counter));
            }
        }
        violations
    }

    /// Checks each lease against the next one.
    fn check_successive_leases(&self, row: &Row, runs: &HashMap<(&str, i32), WorkerRun<'_>>, report: &mut CheckReport) {
        for lease in &row.leases {
            report.released += usize::from(lease.outcome == "released");
            let Some((worker, run)) = runs.get(&(row.job.as_str(), lease.counter)) else {
                report.lost_before_start += usize::from(lease.outcome == "lost");
                continue;
            };
            if let Some((at, RunEnd::Succeeded | RunEnd::Failed)) = run.end
                && self.database_down(at, at)
                && self.killed(worker).is_none()
            {
                match lease.outcome.as_str() {
                    "completed" | "failed" => report.kept += 1,
                    _ => report.forgotten += 1,
                }
            }
            let later = (lease.counter + 1..=row.counter).find_map(|next| runs.get(&(row.job.as_str(), next)));
            let Some((next_worker, next)) = later else { continue };
            report.reruns += usize::from(lease.outcome == "lost");
            let killed = self.killed(worker);
            if let (Some(killed), None) = (killed, run.end)
                && !self.database_down(killed, next.start)
            {
                report.reclaimed.push(Duration::from_micros((next.start - killed).unsigned_abs()));
            }
            let alive_until = run.end.map(|(at, _)| at).or(killed).unwrap_or(Time::MAX);
            if next.start < alive_until {
                // A handler runs on until it learns that its lease is lost, which takes long if the worker is suspended
                // or disconnected. A kill is no excuse: a worker that was still alive could extend its lease.
                let excused =
                    self.faults.iter().any(|fault| fault.kind != FaultKind::Killed && fault.explains(lease, Some(run)));
                match excused && lease.outcome == "lost" {
                    true => report.overlaps += 1,
                    false => report.violations.push(format!(
                        "{next_worker} started {} at {} while {worker} was running it: {row:?}",
                        row.job, next.start
                    )),
                }
            }
        }
    }

    /// For each outage: the time until a second in which at least 80 % as many jobs finished as before. Skips outages
    /// with too little time before or after.
    fn recovery_times(&self) -> Vec<Duration> {
        const SECOND: Time = 1_000_000;
        let mut ends: Vec<Time> = self.rows.iter().filter_map(|row| row.finished).collect();
        ends.sort_unstable();
        let finished_before = |then: Time| ends.partition_point(|at| *at < then);
        let per_second = |from: Time, to: Time| {
            (finished_before(to) - finished_before(from)) as f64 / (to - from) as f64 * SECOND as f64
        };
        let outages: Vec<&Fault> = self.faults.iter().filter(|fault| fault.kind == FaultKind::DatabaseDown).collect();
        let mut restored = Vec::new();
        let mut calm_since = ends.first().copied().unwrap_or(0);
        for (n, fault) in outages.iter().enumerate() {
            let before = (fault.from - 5 * SECOND).max(calm_since);
            let limit = outages.get(n + 1).map_or(self.closed, |next| next.from);
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
