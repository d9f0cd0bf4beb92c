//! The journal of one worker process. Handlers append each line in a single write, so a killed process leaves
//! everything that it did before.
//!
//! ```text
//! start JOB ATTEMPT LEASE PID TIME KIND
//! end JOB ATTEMPT LEASE PID TIME RESULT
//! stats STALE LOST
//! ```

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    time::SystemTime,
};

use orchestrix_worker::{Context, WorkerStats};

/// Microseconds since the Unix epoch, by the clock of the machine, which the database shares.
pub(crate) type Time = i64;

pub(crate) fn now() -> Time {
    i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap()
}

#[derive(Clone)]
pub(crate) struct Journal(Arc<File>);

impl Journal {
    pub(crate) fn open(path: &Path) -> Self {
        Self(Arc::new(OpenOptions::new().create(true).append(true).open(path).unwrap()))
    }

    fn write(&self, line: &str) {
        (&*self.0).write_all(line.as_bytes()).unwrap();
    }

    /// Writes that a handler has started.
    pub(crate) fn start(&self, context: &Context) -> RunningEntry {
        let (id, token) = (context.id().as_uuid().simple(), context.lease_token());
        let run_id = format!("{id} {} {} {}", context.attempt(), token.counter, std::process::id());
        self.write(&format!("start {run_id} {} {}\n", now(), context.job_type()));
        RunningEntry { journal: self.clone(), run_id, ended: false }
    }

    pub(crate) fn stats(&self, stats: WorkerStats) {
        self.write(&format!("stats {} {}\n", stats.stale_rejected, stats.leases_lost));
    }
}

/// The entry of a running handler. Also writes when the handler is dropped.
pub(crate) struct RunningEntry {
    journal: Journal,
    run_id: String,
    ended: bool,
}

impl RunningEntry {
    pub(crate) fn end(mut self, result: &str) {
        self.ended = true;
        self.write(result);
    }

    fn write(&self, result: &str) {
        self.journal.write(&format!("end {} {} {result}\n", self.run_id, now()));
    }
}

impl Drop for RunningEntry {
    fn drop(&mut self) {
        if !self.ended {
            self.write("dropped");
        }
    }
}

/// How a run of a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Succeeded,
    Failed,
    /// It was cancelled and returned.
    Cancelled,
    /// It was cancelled, did not return, and was dropped.
    Dropped,
}

/// One run of a handler, according to the journal.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) job: String,
    pub(crate) lease: i32,
    pub(crate) kind: String,
    pub(crate) start: Time,
    pub(crate) end: Option<(Time, RunEnd)>,
}

/// The parsed journal of one process.
#[derive(Debug, Default)]
pub(crate) struct JournalContents {
    pub(crate) runs: Vec<Run>,
    /// Outcomes that were refused because the lease was lost.
    pub(crate) stale: u64,
    /// Leases that turned out lost when the worker extended them.
    pub(crate) lost: u64,
    pub(crate) violations: Vec<String>,
}

impl JournalContents {
    /// Parses the journal as far as it is written. Ignores an incomplete last line.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut contents = Self::default();
        let mut open = HashMap::new();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            if contents.parse_line(line, &mut open).is_none() {
                contents.violations.push(format!("invalid journal line: {line}"));
            }
        }
        contents
    }

    fn parse_line<'a>(&mut self, line: &'a str, open: &mut HashMap<&'a str, usize>) -> Option<()> {
        let (event, rest) = line.split_once(' ')?;
        if event == "stats" {
            let (stale, lost) = rest.split_once(' ')?;
            (self.stale, self.lost) = (stale.parse().ok()?, lost.parse().ok()?);
            return Some(());
        }
        let (rest, last_word) = rest.rsplit_once(' ')?;
        let (run_id, time) = rest.rsplit_once(' ')?;
        let time = time.parse().ok()?;
        if event == "end" {
            let end = match last_word {
                "done" => RunEnd::Succeeded,
                "failed" => RunEnd::Failed,
                "cancelled" => RunEnd::Cancelled,
                _ => RunEnd::Dropped,
            };
            self.runs[open.remove(run_id)?].end = Some((time, end));
            return Some(());
        }
        let mut words = run_id.split(' ');
        let (job, _attempt, lease) = (words.next()?.to_owned(), words.next()?, words.next()?.parse().ok()?);
        if open.insert(run_id, self.runs.len()).is_some() {
            self.violations.push(format!("started twice: {line}"));
        }
        self.runs.push(Run { job, lease, kind: last_word.to_owned(), start: time, end: None });
        Some(())
    }

    /// The runs that have not ended.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.end.is_none())
    }
}
