//! What a running job says of itself, gathered so that a talkative handler costs the store little.
//!
//! Lines and progress are written every so often and before the attempt ends. The buffer is bounded: lines that come
//! faster than they can be kept are left out, and the log says how many.

use std::{
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use orchestrix_core::{Progress, Timestamp};
use orchestrix_store::{LogLevel, LogLine, ProgressUpdate};

/// The most lines and bytes that wait to be written for one job.
pub(crate) const MAX_LINES: usize = 1_000;
const MAX_BYTES: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    lines: Vec<LogLine>,
    bytes: usize,
    left_out: usize,
    progress: Option<Progress>,
    /// Whether somebody was told that there is something to write.
    announced: bool,
    /// Whether anything was ever said.
    spoke: bool,
}

/// What is to be written now.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) progress: Option<ProgressUpdate>,
}

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line; says whether it is the first thing to write since the last time.
    pub(crate) fn line(&self, level: LogLevel, message: &str) -> bool {
        let mut gathered = self.lock();
        let message = fit(message, LogLine::MAX_MESSAGE);
        if gathered.lines.len() >= MAX_LINES || gathered.bytes + message.len() > MAX_BYTES {
            gathered.left_out += 1;
        } else {
            gathered.bytes += message.len();
            gathered.lines.push(LogLine { at: Some(Timestamp::now()), level, message });
        }
        gathered.spoke = true;
        !std::mem::replace(&mut gathered.announced, true)
    }

    /// Takes how far the job has come; says whether it is the first thing to write since the last time.
    pub(crate) fn progress(&self, percent: Option<f64>, message: Option<&str>) -> bool {
        let mut gathered = self.lock();
        let percent = percent.filter(|percent| percent.is_finite()).map(|percent| percent.clamp(0.0, 100.0));
        let message = message.map(|text| fit(text, ProgressUpdate::MAX_MESSAGE));
        gathered.progress = Some(Progress { percent, message });
        gathered.spoke = true;
        !std::mem::replace(&mut gathered.announced, true)
    }

    /// Whether anything was ever said; what was said may be on its way.
    pub(crate) fn spoke(&self) -> bool {
        self.lock().spoke
    }

    /// Lets the next thing that is said be announced again.
    pub(crate) fn heard(&self) {
        self.lock().announced = false;
    }

    /// Takes out what is to be written; `None` if there is nothing.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut gathered = self.lock();
        if gathered.left_out > 0 {
            let mut message = String::new();
            // Writing to a String cannot fail.
            let _ =
                write!(message, "{} lines were left out: they came faster than they could be kept", gathered.left_out);
            gathered.lines.push(LogLine { at: Some(Timestamp::now()), level: LogLevel::Warn, message });
            gathered.left_out = 0;
        }
        gathered.bytes = 0;
        let lines = std::mem::take(&mut gathered.lines);
        let progress = gathered.progress.take();
        if lines.is_empty() && progress.is_none() {
            return None;
        }
        let progress = progress.map(|progress| ProgressUpdate { progress: Some(progress), checkpoint: None });
        Some(Taken { lines, progress })
    }

    /// Puts back what could not be written, before what came since.
    pub(crate) fn put_back(&self, mut taken: Taken) {
        let mut gathered = self.lock();
        taken.lines.append(&mut gathered.lines);
        gathered.left_out += taken.lines.len().saturating_sub(MAX_LINES);
        taken.lines.truncate(MAX_LINES);
        gathered.bytes = taken.lines.iter().map(|line| line.message.len()).sum();
        gathered.lines = taken.lines;
        if gathered.progress.is_none() {
            gathered.progress = taken.progress.and_then(|update| update.progress);
        }
    }
}

// What the store takes: no NUL, not too long, cut between characters.
fn fit(text: &str, max: usize) -> String {
    // The mark that stands for a NUL is longer than it: replace first, cut afterwards.
    let mut text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.to_owned() };
    if text.len() > max {
        let mut end = max;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_what_a_store_takes() {
        assert_eq!(fit("a\0b", 10), "a\u{fffd}b");
        assert_eq!(fit("ééé", 5), "éé");
        assert_eq!(fit(&"\0".repeat(10), 10), "\u{fffd}".repeat(3));
    }

    #[test]
    fn what_comes_too_fast_is_left_out_and_counted_and_what_failed_comes_first_again() {
        let notes = Notes::default();
        assert!(notes.line(LogLevel::Info, "0"), "the first is announced");
        for i in 1..MAX_LINES + 5 {
            assert!(!notes.line(LogLevel::Info, &i.to_string()), "once is enough");
        }
        let taken = notes.take().expect("lines");
        assert_eq!(taken.lines.len(), MAX_LINES + 1);
        assert!(taken.lines[MAX_LINES].message.starts_with("5 lines were left out"));
        notes.line(LogLevel::Info, "later");
        notes.put_back(Taken { lines: taken.lines[..2].to_vec(), progress: None });
        let again: Vec<String> = notes.take().expect("lines").lines.into_iter().map(|line| line.message).collect();
        assert_eq!(again, ["0", "1", "later"]);
        assert!(notes.take().is_none());
    }

    #[test]
    fn the_latest_progress_counts_and_stays_within_its_range() {
        let notes = Notes::default();
        notes.progress(Some(10.0), Some("began"));
        notes.progress(Some(250.0), None);
        let update = notes.take().expect("progress").progress.expect("progress");
        assert_eq!(update.progress, Some(Progress { percent: Some(100.0), message: None }));
        assert_eq!(update.validate(), Ok(()));
    }
}
