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
            Target::Most(most, _) if value <= most => "pass",
            Target::None => "-",
            Target::Ratio(_) | Target::Bytes(_) | Target::Most(..) => "MISS",
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

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (written, transactions, source) = counters(self.request.subject.backend());
        let store = !matches!(self.request.subject, Subject::Coordinator);
        let head = if self.request.subject == Subject::Http {
            ["figure", "measured, requests/s", "beside", "ratio", "target", "result", written, transactions]
        } else if store {
            ["figure", "ours, jobs/s", "limit, jobs/s", "ratio", "target", "result", written, transactions]
        } else {
            ["figure", "measured", "without", "ratio", "target", "result", written, transactions]
        };
        // The coordinator has no per-job counters.
        let columns = if store { head.len() } else { head.len() - 2 };
        let lines: Vec<[&str; 8]> = std::iter::once(head).chain(self.rows.iter().map(Row::cells)).collect();
        let widths: [usize; 8] = std::array::from_fn(|i| lines.iter().map(|line| line[i].len()).max().unwrap_or(0));
        for line in &lines {
            let cells: Vec<String> =
                line.iter().zip(widths).take(columns).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
        }
        writeln!(f)?;
        let rounds = self.request.rounds;
        if store {
            writeln!(
                f,
                "Medians of {rounds} rounds (lowest-highest), each figure in turns with its limit. The last two columns: ours / limit;"
            )?;
            writeln!(f, "{source} See bench/README.md.")?;
        } else {
            writeln!(
                f,
                "Promotion and reaping: medians of {rounds} rounds (lowest-highest); the others once. See bench/README.md."
            )?;
        }
        if !self.request.scale.is_full() {
            writeln!(f, "A quick run, a tenth of every count: good to see that it works, not to judge by.")?;
        }
        Ok(())
    }
}
