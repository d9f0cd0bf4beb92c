//! The result table.

use std::fmt;

use super::{
    Request,
    ledger::{EventLedger, SubscriberKind},
};
use crate::{progress::Progress, report::write_aligned, sample::thousands};

/// The target for p99 latencies in milliseconds, and for the memory of many connections.
const LATENCY_TARGET: f64 = 500.0;
const MEMORY_TARGET: u64 = 200 * 1024 * 1024;
/// The target for the median of queries for recent changes.
const QUERY_TARGET: f64 = 50.0;

/// A row of the table.
#[derive(Debug)]
pub(super) struct TableRow {
    what: String,
    measured: String,
    target: String,
    met: bool,
    missed_ends: usize,
}

impl TableRow {
    /// The memory with many connections, and without.
    pub(super) fn memory(what: &str, most: u64, alone: u64) -> Self {
        let megabytes = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
        Self {
            what: what.into(),
            measured: format!("{:.1} MB, {:.1} before", megabytes(most), megabytes(alone)),
            target: format!("< {} MB", MEMORY_TARGET / 1024 / 1024),
            met: most < MEMORY_TARGET,
            missed_ends: 0,
        }
    }

    /// The duration of queries for recent changes.
    pub(super) fn recent_changes_millis(what: &str, took: &[f64]) -> Self {
        Self {
            what: format!("{what}: query for recent changes"),
            measured: spread(took),
            target: format!("p50 <= {QUERY_TARGET} ms"),
            met: at(took, 0.5) <= QUERY_TARGET,
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
    lines: Vec<TableRow>,
}

impl<'a> Table<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self { request, lines: Vec::new() }
    }

    pub(super) fn add(&mut self, line: TableRow, progress: &Progress) {
        progress.note(&line.cells().join("  "));
        self.lines.push(line);
    }

    /// Adds the timings of all subscribers.
    pub(super) fn add_ledger(&mut self, host: &str, ledger: &EventLedger, progress: &Progress) {
        for kind in SubscriberKind::ALL {
            let timings = ledger.timings(kind);
            let (first, ends) = (at(&timings.first, 0.99), at(&timings.ends, 0.99));
            let line = TableRow {
                what: format!("{host}: {}", kind.name()),
                measured: format!(
                    "first {}; end {}; of {} ends {} missed, {} lags",
                    spread(&timings.first),
                    spread(&timings.ends),
                    thousands((timings.ends.len() + timings.missed) as f64),
                    timings.missed,
                    timings.lags
                ),
                target: format!("p99 <= {LATENCY_TARGET} ms"),
                met: timings.missed == 0
                    && !timings.ends.is_empty()
                    && first <= LATENCY_TARGET
                    && ends <= LATENCY_TARGET,
                missed_ends: timings.missed,
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
        let head = ["what", "measured", "target", "result"];
        let rows = self.lines.iter().map(|line| line.cells().to_vec());
        write_aligned(f, &std::iter::once(head.to_vec()).chain(rows).collect::<Vec<_>>())?;
        let Request { seconds, rate, .. } = self.request;
        writeln!(
            f,
            "\n{rate} jobs a second for {seconds} s, of 0 to 0.7 s each. First: from the 202 to the first event. End: from the job's end, by the\ndatabase's clock, to its event. See bench/README.md."
        )
    }
}
