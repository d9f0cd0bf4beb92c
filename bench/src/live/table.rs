//! The result table.

use std::fmt;

use super::{
    Request,
    ledger::{Follower, Ledger},
};
use crate::{progress::Progress, sample::thousands};

/// The target for p99 latencies in milliseconds, and for the memory of many connections.
const SOON: f64 = 500.0;
const MEMORY: u64 = 200 * 1024 * 1024;
/// The target for the median of queries for recent changes.
const LOOK: f64 = 50.0;

/// A row of the table.
#[derive(Debug)]
pub(super) struct Line {
    what: String,
    measured: String,
    target: String,
    met: bool,
    missed_ends: usize,
}

impl Line {
    /// The memory with many connections, and without.
    pub(super) fn memory(what: &str, most: u64, alone: u64) -> Self {
        let megabytes = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
        Self {
            what: what.into(),
            measured: format!("{:.1} MB, {:.1} before", megabytes(most), megabytes(alone)),
            target: format!("< {} MB", MEMORY / 1024 / 1024),
            met: most < MEMORY,
            missed_ends: 0,
        }
    }

    /// The duration of queries for recent changes.
    pub(super) fn looks(what: &str, took: &[f64]) -> Self {
        Self {
            what: format!("{what}: a look"),
            measured: spread(took),
            target: format!("p50 <= {LOOK} ms"),
            met: at(took, 0.5) <= LOOK,
            missed_ends: 0,
        }
    }

    fn cells(&self) -> [&str; 4] {
        [&self.what, &self.measured, &self.target, if self.met { "pass" } else { "MISS" }]
    }
}

/// All results.
#[derive(Debug)]
pub(super) struct Table<'a> {
    request: &'a Request,
    lines: Vec<Line>,
}

impl<'a> Table<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self { request, lines: Vec::new() }
    }

    pub(super) fn add(&mut self, line: Line, progress: &Progress) {
        progress.note(&line.cells().join("  "));
        self.lines.push(line);
    }

    /// Adds the timings of all subscribers.
    pub(super) fn add_ledger(&mut self, place: &str, ledger: &Ledger, progress: &Progress) {
        for who in Follower::ALL {
            let seen = ledger.seen(who);
            let (first, ends) = (at(&seen.first, 0.99), at(&seen.ends, 0.99));
            let line = Line {
                what: format!("{place}: {}", who.name()),
                measured: format!(
                    "first {}; end {}; of {} ends {} missed, {} lags",
                    spread(&seen.first),
                    spread(&seen.ends),
                    thousands((seen.ends.len() + seen.missed) as f64),
                    seen.missed,
                    seen.lags
                ),
                target: format!("p99 <= {SOON} ms"),
                met: seen.missed == 0 && !seen.ends.is_empty() && first <= SOON && ends <= SOON,
                missed_ends: seen.missed,
            };
            self.add(line, progress);
        }
    }

    /// Whether a target was missed.
    pub(super) fn missed(&self) -> bool {
        self.lines.iter().any(|line| !line.met)
    }

    /// Whether a subscriber missed the end of a job.
    pub(super) fn missed_an_end(&self) -> bool {
        self.lines.iter().any(|line| line.missed_ends > 0)
    }
}

// The percentile of sorted values; zero for none.
fn at(sorted: &[f64], share: f64) -> f64 {
    sorted.get(((sorted.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or_default()
}

fn spread(sorted: &[f64]) -> String {
    format!("p50 {:.0} p99 {:.0} max {:.0} ms", at(sorted, 0.5), at(sorted, 0.99), at(sorted, 1.0))
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "measured", "target", "verdict"];
        let lines: Vec<[&str; 4]> = std::iter::once(head).chain(self.lines.iter().map(Line::cells)).collect();
        let widths: [usize; 4] = std::array::from_fn(|i| lines.iter().map(|line| line[i].len()).max().unwrap_or(0));
        for line in &lines {
            let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
        }
        let Request { seconds, rate, .. } = self.request;
        writeln!(
            f,
            "\n{rate} jobs a second for {seconds} s, of 0 to 0.7 s each. First: from the answer that a job is recorded to the first news of it. End: from\nits end, by the database's clock, to the news of it. See bench/README.md."
        )
    }
}
