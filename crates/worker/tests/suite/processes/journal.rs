//! What the handlers of one process write down, each line in one write to the end of the process's own file: a process that
//! is killed leaves what it had done until then.
//!
//! ```text
//! start JOB ATTEMPT LEASE PID TIME KIND
//! end JOB ATTEMPT LEASE PID TIME WORD
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

/// Microseconds since 1970, by the clock that all processes of the machine share, the database's too.
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

    /// Writes that a handler has begun.
    pub(crate) fn begin(&self, context: &Context) -> Begun {
        let (id, token) = (context.id().as_uuid().simple(), context.lease_token());
        let who = format!("{id} {} {} {}", context.attempt(), token.counter, std::process::id());
        self.write(&format!("start {who} {} {}\n", now(), context.job_type()));
        Begun { journal: self.clone(), who, ended: false }
    }

    pub(crate) fn stats(&self, stats: WorkerStats) {
        self.write(&format!("stats {} {}\n", stats.stale_rejected, stats.leases_lost));
    }
}

/// A handler at work. One that is dropped says so too.
pub(crate) struct Begun {
    journal: Journal,
    who: String,
    ended: bool,
}

impl Begun {
    pub(crate) fn end(mut self, word: &str) {
        self.ended = true;
        self.write(word);
    }

    fn write(&self, word: &str) {
        self.journal.write(&format!("end {} {} {word}\n", self.who, now()));
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.ended {
            self.write("dropped");
        }
    }
}

/// How a handler said that it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Done,
    Failed,
    /// It was asked to stop, and did.
    Stopped,
    /// It was asked to stop, and did not.
    Dropped,
}

/// One run of a handler, as its process wrote it down.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) job: String,
    pub(crate) lease: i32,
    pub(crate) kind: String,
    pub(crate) start: Time,
    pub(crate) end: Option<(Time, Word)>,
}

/// All that a process wrote down.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) runs: Vec<Run>,
    /// Outcomes that were refused, and leases that were found lost.
    pub(crate) stale: u64,
    pub(crate) lost: u64,
    pub(crate) violations: Vec<String>,
}

impl Written {
    /// Reads what is there so far. A last line that is not complete is not counted.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut written = Self::default();
        let mut open = HashMap::new();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            if written.take(line, &mut open).is_none() {
                written.violations.push(format!("cannot be read: {line}"));
            }
        }
        written
    }

    fn take<'a>(&mut self, line: &'a str, open: &mut HashMap<&'a str, usize>) -> Option<()> {
        let (event, rest) = line.split_once(' ')?;
        if event == "stats" {
            let (stale, lost) = rest.split_once(' ')?;
            (self.stale, self.lost) = (stale.parse().ok()?, lost.parse().ok()?);
            return Some(());
        }
        let (rest, word) = rest.rsplit_once(' ')?;
        let (who, time) = rest.rsplit_once(' ')?;
        let time = time.parse().ok()?;
        if event == "end" {
            let word = match word {
                "done" => Word::Done,
                "failed" => Word::Failed,
                "stopped" => Word::Stopped,
                _ => Word::Dropped,
            };
            self.runs[open.remove(who)?].end = Some((time, word));
            return Some(());
        }
        let mut words = who.split(' ');
        let (job, _attempt, lease) = (words.next()?.to_owned(), words.next()?, words.next()?.parse().ok()?);
        if open.insert(who, self.runs.len()).is_some() {
            self.violations.push(format!("begun twice: {line}"));
        }
        self.runs.push(Run { job, lease, kind: word.to_owned(), start: time, end: None });
        Some(())
    }

    /// Runs that have not ended.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.end.is_none())
    }
}
