//! The result table.

use std::fmt;

use super::{Measured, Request, table_sizes::TableHistory};
use crate::{report::write_aligned, sample::thousands};

/// The most that a table may be larger than what is live in it.
const TARGET: f64 = 5.0;
/// Smaller tables are not judged: a few pages are many times a few rows.
const JUDGED: u64 = 8 * 1024 * 1024;
/// The first and the last part of the time, whose growth is compared.
const FIRST: f64 = 0.1;
const LAST: f64 = 0.5;

/// One measured table.
#[derive(Debug)]
struct TableRow {
    name: String,
    heap: u64,
    indexes: u64,
    total: u64,
    live_rows: f64,
    live_bytes: f64,
    /// Bytes per minute, in the first and the last part of the time.
    growth: (f64, f64),
}

impl TableRow {
    /// `jobs` is the number of unfinished jobs to compare with.
    fn new(table: &TableHistory, jobs: f64, jobs_per_second: f64) -> Self {
        let live_rows = table.live_rows(jobs, jobs_per_second);
        Self {
            name: table.name.clone(),
            heap: table.peak(|size| size.heap),
            indexes: table.peak(|size| size.indexes),
            total: table.peak(|size| size.total),
            live_rows,
            live_bytes: live_rows * table.row_bytes.unwrap_or_default(),
            growth: (table.growth_per_minute(0.0, FIRST), table.growth_per_minute(LAST, 1.0)),
        }
    }

    fn ratio(&self) -> f64 {
        self.total as f64 / self.live_bytes
    }

    /// Whether it missed the target; `None` if the table is too small to judge.
    fn missed(&self) -> Option<bool> {
        (self.total >= JUDGED).then(|| self.ratio() > TARGET)
    }

    fn cells(&self, snapshot: bool) -> Vec<String> {
        let mut cells = vec![
            self.name.clone(),
            megabytes(self.heap as f64),
            megabytes(self.indexes as f64),
            megabytes(self.total as f64),
            thousands(self.live_rows),
            megabytes(self.live_bytes),
            self.missed().map_or("-".into(), |_| format!("{:.1}", self.ratio())),
        ];
        cells.extend(if snapshot {
            [self.growth.0, self.growth.1].map(megabytes)
        } else {
            let result = self.missed().map_or("-", |missed| if missed { "MISS" } else { "pass" });
            [format!("<= {TARGET}"), result.into()]
        });
        cells
    }
}

/// All results.
#[derive(Debug)]
pub(super) struct Table<'a> {
    request: &'a Request,
    measured: &'a Measured,
    rows: Vec<TableRow>,
}

impl<'a> Table<'a> {
    /// Live are the unfinished jobs on average, and at least those of one second.
    pub(super) fn new(request: &'a Request, measured: &'a Measured) -> Self {
        let jobs = measured.unfinished.0.max(measured.rate);
        let written = measured.tables.iter().filter(|table| table.peak(|size| size.heap) > 0);
        let mut rows: Vec<TableRow> = written.map(|table| TableRow::new(table, jobs, measured.rate)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        Self { request, measured, rows }
    }

    /// Whether a target was missed. Growth under a snapshot has none.
    pub(super) fn missed(&self) -> bool {
        !self.request.snapshot && self.rows.iter().any(|row| row.missed() == Some(true))
    }
}

/// As megabytes.
pub(super) fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1024.0 / 1024.0)
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { seconds, rate, snapshot, .. } = *self.request;
        let last = if snapshot { ["first tenth, per minute", "last half, per minute"] } else { ["target", "result"] };
        let head =
            ["table", "peak heap", "peak indexes", "peak", "live rows", "live", "peak/live"].into_iter().chain(last);
        let rows = self.rows.iter().map(|row| row.cells(snapshot));
        write_aligned(f, &std::iter::once(head.map(str::to_owned).collect()).chain(rows).collect::<Vec<_>>())?;
        let (mean, most) = self.measured.unfinished;
        writeln!(
            f,
            "\n{} of {} jobs/s for {seconds} s{}; {} jobs unfinished on average, {} at most. Live: the rows of the unfinished jobs,\n\
             at least of one second, without indexes. Tables under {} are not judged. See bench/README.md.",
            thousands(self.measured.rate),
            thousands(rate as f64),
            if snapshot { " under one snapshot" } else { "" },
            thousands(mean),
            thousands(most as f64),
            megabytes(JUDGED as f64)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{super::table_sizes::tests::table, *};

    fn measured(peak: u64) -> Measured {
        // One row of 100 bytes per job.
        Measured { rate: 100_000.0, unfinished: (50.0, 80), tables: vec![table(&[0, peak, 0], 6_000_000)] }
    }

    fn missed(peak: u64, snapshot: bool) -> bool {
        let measured = measured(peak);
        let request = Request { seconds: 120, rate: 100_000, snapshot, strict: true };
        // The heap decides whether a table was written to at all.
        let rows = measured.tables.iter().map(|table| TableRow::new(table, measured.rate, measured.rate)).collect();
        Table { request: &request, measured: &measured, rows }.missed()
    }

    #[test]
    fn a_table_may_be_five_times_what_is_live() {
        assert!(!missed(50_000_000, false));
        assert!(missed(50_100_000, false));
        assert!(!missed(50_100_000, true));
    }

    #[test]
    fn a_small_table_is_not_judged() {
        let small = TableRow::new(&table(&[0, 1_000_000], 0), 1.0, 1.0);
        assert_eq!(small.missed(), None);
        let large = TableRow::new(&table(&[0, 10_000_000], 0), 1.0, 1.0);
        assert_eq!(large.missed(), Some(true));
    }
}
