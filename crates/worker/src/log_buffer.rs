//! The log lines and the progress of a running job, buffered so that a chatty handler costs the store few writes.
//!
//! The log writer writes them periodically and before the attempt ends. The buffer is bounded: it drops lines that
//! arrive faster than they can be written, and the log says how many.

use std::{
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use orchestrix_core::{Progress, Timestamp};
use orchestrix_store::{LogLevel, LogLine, ProgressUpdate};

/// The maximum number of lines and bytes that are buffered for one job.
pub(crate) const MAX_LINES: usize = 1_000;
const MAX_BYTES: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct LogBuffer(Mutex<Buffered>);

#[derive(Debug, Default)]
struct Buffered {
    lines: Vec<LogLine>,
    bytes: usize,
    dropped: usize,
    progress: Option<Progress>,
    /// Whether a flush has been requested and not yet begun.
    flush_requested: bool,
    /// Whether the handler ever logged or reported progress.
    used: bool,
}

/// What was pending out of the buffer to be written.
#[derive(Debug, Default)]
pub(crate) struct PendingWrites {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) progress: Option<ProgressUpdate>,
}

impl LogBuffer {
    fn lock(&self) -> MutexGuard<'_, Buffered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buffers a line. Returns whether the caller must request a flush.
    pub(crate) fn push_line(&self, level: LogLevel, message: &str) -> bool {
        let mut buffered = self.lock();
        let message = sanitize(message, LogLine::MAX_MESSAGE);
        if buffered.lines.len() >= MAX_LINES || buffered.bytes + message.len() > MAX_BYTES {
            buffered.dropped += 1;
        } else {
            buffered.bytes += message.len();
            buffered.lines.push(LogLine { at: Some(Timestamp::now()), level, message });
        }
        buffered.used = true;
        !std::mem::replace(&mut buffered.flush_requested, true)
    }

    /// Replaces the buffered progress. Returns whether the caller must request a flush.
    pub(crate) fn set_progress(&self, percent: Option<f64>, message: Option<&str>) -> bool {
        let mut buffered = self.lock();
        let percent = percent.filter(|percent| percent.is_finite()).map(|percent| percent.clamp(0.0, 100.0));
        let message = message.map(|text| sanitize(text, ProgressUpdate::MAX_MESSAGE));
        buffered.progress = Some(Progress { percent, message });
        buffered.used = true;
        !std::mem::replace(&mut buffered.flush_requested, true)
    }

    /// Whether the handler ever logged or reported progress. The buffer may be empty or being written.
    pub(crate) fn was_used(&self) -> bool {
        self.lock().used
    }

    /// Makes the next line or progress request a flush again.
    pub(crate) fn allow_flush_request(&self) {
        self.lock().flush_requested = false;
    }

    /// Empties the buffer. `None` if it was empty.
    pub(crate) fn take(&self) -> Option<PendingWrites> {
        let mut buffered = self.lock();
        if buffered.dropped > 0 {
            let mut message = String::new();
            // Writing to a String cannot fail.
            let _ =
                write!(message, "{} lines were dropped: they came faster than they could be written", buffered.dropped);
            buffered.lines.push(LogLine { at: Some(Timestamp::now()), level: LogLevel::Warn, message });
            buffered.dropped = 0;
        }
        buffered.bytes = 0;
        let lines = std::mem::take(&mut buffered.lines);
        let progress = buffered.progress.take();
        if lines.is_empty() && progress.is_none() {
            return None;
        }
        let progress = progress.map(|progress| ProgressUpdate { progress: Some(progress), checkpoint: None });
        Some(PendingWrites { lines, progress })
    }

    /// Puts back what could not be written, in front of what arrived since.
    pub(crate) fn put_back(&self, mut pending: PendingWrites) {
        let mut buffered = self.lock();
        pending.lines.append(&mut buffered.lines);
        buffered.dropped += pending.lines.len().saturating_sub(MAX_LINES);
        pending.lines.truncate(MAX_LINES);
        buffered.bytes = pending.lines.iter().map(|line| line.message.len()).sum();
        buffered.lines = pending.lines;
        if buffered.progress.is_none() {
            buffered.progress = pending.progress.and_then(|update| update.progress);
        }
    }
}

/// Makes `text` acceptable to every store: replaces NUL and truncates to `max` bytes at a character boundary.
fn sanitize(text: &str, max: usize) -> String {
    // The replacement is longer than a NUL, so replace before truncating.
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
    fn text_is_sanitized_and_truncated_at_a_character_boundary() {
        assert_eq!(sanitize("a\0b", 10), "a\u{fffd}b");
        assert_eq!(sanitize("ééé", 5), "éé");
        assert_eq!(sanitize(&"\0".repeat(10), 10), "\u{fffd}".repeat(3));
    }

    #[test]
    fn excess_lines_are_dropped_and_counted_and_lines_put_back_come_first() {
        let buffer = LogBuffer::default();
        assert!(buffer.push_line(LogLevel::Info, "0"), "the first line requests a flush");
        for i in 1..MAX_LINES + 5 {
            assert!(!buffer.push_line(LogLevel::Info, &i.to_string()), "a flush is already requested");
        }
        let pending = buffer.take().expect("the buffer holds lines");
        assert_eq!(pending.lines.len(), MAX_LINES + 1);
        assert!(pending.lines[MAX_LINES].message.starts_with("5 lines were dropped"));
        buffer.push_line(LogLevel::Info, "later");
        buffer.put_back(PendingWrites { lines: pending.lines[..2].to_vec(), progress: None });
        let again: Vec<String> =
            buffer.take().expect("the buffer holds lines").lines.into_iter().map(|line| line.message).collect();
        assert_eq!(again, ["0", "1", "later"]);
        assert!(buffer.take().is_none());
    }

    #[test]
    fn the_latest_progress_counts_and_is_clamped() {
        let buffer = LogBuffer::default();
        buffer.set_progress(Some(10.0), Some("began"));
        buffer.set_progress(Some(250.0), None);
        let update = buffer.take().expect("the buffer is not empty").progress.expect("progress was set");
        assert_eq!(update.progress, Some(Progress { percent: Some(100.0), message: None }));
        assert_eq!(update.validate(), Ok(()));
    }
}
