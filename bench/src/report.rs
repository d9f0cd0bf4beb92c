//! The result table.

use std::fmt;

use crate::{
    arguments::{Request, Subject},
    backend::Backend,
    figure::Target,
};

/// A row of the table.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) figure: String,
    pub(crate) ours: String,
    pub(crate) limit: String,
    pub(crate) ratio: String,
    pub(crate) written: String,
    pub(crate) transactions: String,
    pub(crate) target: String,
    pub(crate) result: &'static str,
}

impl Row {
    /// A row with its target and its result; the rest is left empty.
    pub(crate) fn with_target(target: Target, value: f64) -> Self {
        let result = match target {
            Target::Ratio(ratio) if value >= ratio => "pass",
            Target::Bytes(bytes) if value < bytes as f64 => "pass",
            Target::Least(least, _) if value >= least => "pass",
            Target::Most(most, _) if value <= most => "pass",
            Target::None => "-",
            Target::Ratio(_) | Target::Bytes(_) | Target::Least(..) | Target::Most(..) => "MISS",
        };
        Self { target: target.to_string(), result, ..Self::default() }
    }

    fn cells(&self) -> [&str; 8] {
        [
            &self.figure,
            &self.ours,
            &self.limit,
            &self.ratio,
            &self.target,
            self.result,
            &self.written,
            &self.transactions,
        ]
        .map(|cell| if cell.is_empty() { "-" } else { cell })
    }
}

/// The titles of the columns for bytes and transactions, and their source.
const fn counters(backend: Backend) -> (&'static str, &'static str, &'static str) {
    match backend {
        Backend::Postgres => (
            "WAL bytes/job",
            "transactions/job",
            "transactions are pg_stat_database.xact_commit of the measured database.",
        ),
        Backend::Sqlite => {
            ("bytes written/job", "commits/job", "bytes are all that was written, to the log and the file.")
        }
    }
}

/// All results.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    request: &'a Request,
    rows: Vec<Row>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(request: &'a Request) -> Self {
        Self { request, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Whether a target was missed.
    pub(crate) fn missed(&self) -> bool {
        self.rows.iter().any(|row| row.result == "MISS")
    }
}

impl Report<'_> {
    /// The titles of the columns. Figures that are no rate of jobs have no counters per job.
    fn head(&self) -> Vec<&'static str> {
        let (written, transactions, _) = counters(self.request.subject.backend());
        let (measured, beside) = match self.request.subject {
            Subject::Http => ("measured, requests/s", "beside"),
            Subject::Coordinator | Subject::Dependencies(_) => ("measured", "without"),
            Subject::Width(_) => ("ours, jobs/s", "one lane, jobs/s"),
            Subject::Store(_) | Subject::Worker(_) | Subject::Schedules => ("ours, jobs/s", "limit, jobs/s"),
        };
        let mut head = vec!["figure", measured, beside, "ratio", "target", "result"];
        if self.has_counters() {
            head.extend([written, transactions]);
        }
        head
    }

    const fn has_counters(&self) -> bool {
        !matches!(self.request.subject, Subject::Coordinator | Subject::Dependencies(_))
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = self.head();
        let columns = head.len();
        let rows = self.rows.iter().map(|row| row.cells()[..columns].to_vec());
        write_aligned(f, &std::iter::once(head).chain(rows).collect::<Vec<_>>())?;
        writeln!(f)?;
        let (rounds, batch) = (self.request.rounds, self.request.batch);
        let (.., source) = counters(self.request.subject.backend());
        match self.request.subject {
            Subject::Coordinator => writeln!(
                f,
                "Promotion and reaping: medians of {rounds} rounds (lowest-highest); the others once. See bench/README.md."
            )?,
            Subject::Dependencies(_) => {
                writeln!(f, "Medians of {rounds} rounds (lowest-highest). See bench/README.md.")?;
            }
            Subject::Width(_) => writeln!(
                f,
                "Medians of {rounds} rounds (lowest-highest), each figure in turns with a drain of one lane, {batch} jobs per claim.\n\
                 The last two columns: ours / one lane; {source} See bench/README.md."
            )?,
            _ => writeln!(
                f,
                "Medians of {rounds} rounds (lowest-highest), each figure in turns with its limit. The last two columns: ours / limit;\n\
                 {source} See bench/README.md."
            )?,
        }
        if !self.request.scale.is_full() {
            writeln!(f, "A quick run, a tenth of every count: good to see that it works, not to judge by.")?;
        }
        Ok(())
    }
}

/// Writes lines of as many cells each, in aligned columns.
pub(crate) fn write_aligned(f: &mut fmt::Formatter<'_>, lines: &[Vec<impl AsRef<str>>]) -> fmt::Result {
    let width = |column: usize| lines.iter().map(|line| line[column].as_ref().chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines.first().map_or(0, Vec::len)).map(width).collect();
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{:width$}", cell.as_ref()));
        let cells: Vec<String> = cells.collect();
        writeln!(f, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}
