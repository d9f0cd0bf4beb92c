//! A program's standard output or standard error: line by line into the job's log, and its end for the job's result.
//!
//! No line is dropped: where lines come faster than they are written, the program blocks on its pipe.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orchestrix_core::Backoff;
use orchestrix_store::{LogLevel, LogLine};
use orchestrix_worker::Context;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::watch,
    time::sleep,
};

/// How many lines and bytes of one stream are buffered before a flush. Both streams, and lines of a failed flush, must
/// fit into the log buffer of a context: a thousand lines, a megabyte.
const FLUSH_LINES: usize = 200;
const FLUSH_BYTES: usize = 200 * 1024;

/// How many bytes of the stream's end go into the result.
const TAIL: usize = 4 * 1024;

/// How long to wait for more output after the program has exited, where a process outside the group holds the pipe
/// open.
const IDLE_AFTER_EXIT: Duration = Duration::from_millis(500);

/// One of the two output streams of a program.
pub(super) struct OutputStream {
    level: LogLevel,
    captured: Mutex<Captured>,
}

#[derive(Default)]
struct Captured {
    tail: Vec<u8>,
    last_line: String,
}

impl OutputStream {
    pub(super) fn new(level: LogLevel) -> Self {
        Self { level, captured: Mutex::default() }
    }

    fn captured(&self) -> MutexGuard<'_, Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the stream.
    pub(super) fn tail(&self) -> String {
        let captured = self.captured();
        // The cut may fall within a character.
        let start = captured.tail.len().saturating_sub(TAIL);
        let cut = captured.tail[start..].iter().take(3).take_while(|byte| start > 0 && **byte & 0xc0 == 0x80).count();
        String::from_utf8_lossy(&captured.tail[start + cut..]).into_owned()
    }

    /// The last line that was not blank.
    pub(super) fn last_line(&self) -> String {
        self.captured().last_line.clone()
    }

    /// Reads until the end of the stream, or until it is idle after the program has `exited`.
    pub(super) async fn follow(
        &self,
        mut stream: impl AsyncRead + Unpin,
        ctx: &Context,
        exited: watch::Receiver<bool>,
    ) {
        let mut buffer = vec![0; 8 * 1024];
        let mut line = Vec::new();
        let mut pending = PendingLines::default();
        loop {
            let count = tokio::select! {
                biased;
                // A read error counts as the end of the stream.
                read = stream.read(&mut buffer) => read.unwrap_or(0),
                () = idle_after_exit(exited.clone()) => 0,
            };
            if count == 0 {
                break;
            }
            self.capture(&buffer[..count]);
            for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                let whole = part.strip_suffix(b"\n");
                line.extend_from_slice(whole.unwrap_or(part));
                while line.len() > LogLine::MAX_MESSAGE {
                    let rest = line.split_off(last_boundary(&line));
                    self.log_line(&line, ctx, &mut pending).await;
                    line = rest;
                }
                if whole.is_some() {
                    self.log_line(&line, ctx, &mut pending).await;
                    line.clear();
                }
            }
        }
        if !line.is_empty() {
            self.log_line(&line, ctx, &mut pending).await;
        }
    }

    fn capture(&self, bytes: &[u8]) {
        let mut captured = self.captured();
        captured.tail.extend_from_slice(bytes);
        // Trimmed only now and then, so that not every line moves the whole tail.
        if captured.tail.len() > 4 * TAIL {
            let surplus = captured.tail.len() - TAIL;
            captured.tail.drain(..surplus);
        }
    }

    async fn log_line(&self, line: &[u8], ctx: &Context, pending: &mut PendingLines) {
        let text = text(line);
        if !text.trim().is_empty() {
            self.captured().last_line = text.trim().to_owned();
        }
        for piece in pieces(&text) {
            ctx.log(self.level, piece);
            pending.lines += 1;
            pending.bytes += piece.len();
            if pending.lines >= FLUSH_LINES || pending.bytes >= FLUSH_BYTES {
                flush(ctx).await;
                *pending = PendingLines::default();
            }
        }
    }
}

/// What was logged since the last flush.
#[derive(Default)]
struct PendingLines {
    lines: usize,
    bytes: usize,
}

async fn idle_after_exit(mut exited: watch::Receiver<bool>) {
    // Fails only if the sender is gone, and then this task is about to end too.
    let _ = exited.wait_for(|exited| *exited).await;
    sleep(IDLE_AFTER_EXIT).await;
}

/// Flushes the log. Retries while the store is unavailable, until the job is cancelled.
async fn flush(ctx: &Context) {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    while ctx.flush().await.is_err() && !ctx.is_cancelled() {
        tokio::select! {
            () = sleep(backoff.next_delay()) => {}
            () = ctx.cancelled() => {}
        }
    }
}

/// Where to split a line that is too long: at a character boundary.
fn last_boundary(line: &[u8]) -> usize {
    let max = LogLine::MAX_MESSAGE;
    // A UTF-8 character has at most four bytes; a longer run of continuation bytes is not text.
    (max - 3..=max).rev().find(|at| line[*at] & 0xc0 != 0x80).unwrap_or(max)
}

/// A line without its carriage return, as valid text without NUL, which a log line cannot hold.
fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).replace('\0', "\u{fffd}")
}

/// Splits a text into pieces that fit into one log line each; at least one piece.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let (piece, tail) = rest.split_at(rest.floor_char_boundary(LogLine::MAX_MESSAGE));
        pieces.push(piece);
        if tail.is_empty() {
            return pieces;
        }
        rest = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_end_of_the_stream_and_starts_at_a_character_boundary() {
        let output = OutputStream::new(LogLevel::Info);
        assert_eq!(output.tail(), "");
        output.capture("é".as_bytes());
        assert_eq!(output.tail(), "é");
        for _ in 0..10_000 {
            output.capture("é".as_bytes());
        }
        output.capture(b"!");
        let tail = output.tail();
        assert!(tail.len() == TAIL - 1 && tail.ends_with("é!") && !tail.contains('\u{fffd}'), "{}", tail.len());
    }

    #[test]
    fn long_lines_are_split_and_nothing_is_lost() {
        let line = "é".repeat(LogLine::MAX_MESSAGE);
        let pieces = pieces(&line);
        assert!(pieces.iter().all(|piece| piece.len() <= LogLine::MAX_MESSAGE));
        assert_eq!(pieces.concat(), line);
        assert_eq!(super::pieces(""), [""]);
        // Replacement characters are longer than the invalid bytes; they still fit.
        let replaced = text(&[0xff; LogLine::MAX_MESSAGE]);
        assert_eq!(super::pieces(&replaced).concat().chars().count(), LogLine::MAX_MESSAGE);
    }

    #[test]
    fn carriage_returns_are_removed_and_nul_is_replaced() {
        assert_eq!(text(b"a\r"), "a");
        assert_eq!(text(b"a\0b"), "a\u{fffd}b");
        let long = "é".repeat(LogLine::MAX_MESSAGE);
        assert_eq!(last_boundary(long.as_bytes()), LogLine::MAX_MESSAGE);
        assert_eq!(last_boundary(&long.as_bytes()[1..]), LogLine::MAX_MESSAGE - 1);
        assert_eq!(last_boundary(&[0x80; 2 * LogLine::MAX_MESSAGE]), LogLine::MAX_MESSAGE);
    }
}
