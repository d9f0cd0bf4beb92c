//! What a program says: line by line into the job's log, and the end of it for the result.
//!
//! Nothing is left out: where lines come faster than they are written, the program waits for its pipe.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orchestrix_store::{LogLevel, LogLine};
use orchestrix_worker::Context;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::watch,
    time::sleep,
};

/// How many lines and bytes of one stream are said before they are written. Two streams, and what could not be written at
/// once, must fit into what a context keeps: a thousand lines, a megabyte.
const LINES: usize = 200;
const BYTES: usize = 200 * 1024;

/// How much of the end is kept.
const TAIL: usize = 4 * 1024;

/// How long a stream may be silent after the program has exited, where somebody out of reach keeps it open.
const QUIET: Duration = Duration::from_millis(500);

/// One of the two streams of a program.
pub(super) struct Output {
    level: LogLevel,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    tail: Vec<u8>,
    last_line: String,
}

impl Output {
    pub(super) fn new(level: LogLevel) -> Self {
        Self { level, heard: Mutex::default() }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of all that was said.
    pub(super) fn tail(&self) -> String {
        let heard = self.heard();
        // The first character may be cut.
        let start = heard.tail.len().saturating_sub(TAIL);
        let cut = heard.tail[start..].iter().take(3).take_while(|byte| start > 0 && **byte & 0xc0 == 0x80).count();
        String::from_utf8_lossy(&heard.tail[start + cut..]).into_owned()
    }

    /// The last line that was not empty.
    pub(super) fn last_line(&self) -> String {
        self.heard().last_line.clone()
    }

    /// Reads until the end of the stream, or until it is silent after the program has `exited`.
    pub(super) async fn follow(
        &self,
        mut stream: impl AsyncRead + Unpin,
        ctx: &Context,
        exited: watch::Receiver<bool>,
    ) {
        let mut buffer = vec![0; 8 * 1024];
        let mut line = Vec::new();
        let mut unwritten = Unwritten::default();
        loop {
            let count = tokio::select! {
                biased;
                // An error of a pipe of our own would be its end.
                read = stream.read(&mut buffer) => read.unwrap_or(0),
                () = quiet(exited.clone()) => 0,
            };
            if count == 0 {
                break;
            }
            self.keep(&buffer[..count]);
            for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                let whole = part.strip_suffix(b"\n");
                line.extend_from_slice(whole.unwrap_or(part));
                while line.len() > LogLine::MAX_MESSAGE {
                    let rest = line.split_off(last_boundary(&line));
                    self.say(&line, ctx, &mut unwritten).await;
                    line = rest;
                }
                if whole.is_some() {
                    self.say(&line, ctx, &mut unwritten).await;
                    line.clear();
                }
            }
        }
        if !line.is_empty() {
            self.say(&line, ctx, &mut unwritten).await;
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut heard = self.heard();
        heard.tail.extend_from_slice(bytes);
        // Now and then, so that not every line moves all of it.
        if heard.tail.len() > 4 * TAIL {
            let surplus = heard.tail.len() - TAIL;
            heard.tail.drain(..surplus);
        }
    }

    async fn say(&self, line: &[u8], ctx: &Context, unwritten: &mut Unwritten) {
        let text = text(line);
        if !text.trim().is_empty() {
            self.heard().last_line = text.trim().to_owned();
        }
        for piece in pieces(&text) {
            ctx.log(self.level, piece);
            unwritten.lines += 1;
            unwritten.bytes += piece.len();
            if unwritten.lines >= LINES || unwritten.bytes >= BYTES {
                write(ctx).await;
                *unwritten = Unwritten::default();
            }
        }
    }
}

#[derive(Default)]
struct Unwritten {
    lines: usize,
    bytes: usize,
}

async fn quiet(mut exited: watch::Receiver<bool>) {
    // An error means that whoever would tell is gone, and with it whoever reads.
    let _ = exited.wait_for(|exited| *exited).await;
    sleep(QUIET).await;
}

/// Writes what was said; waits while the database is away, unless the job should stop anyway.
async fn write(ctx: &Context) {
    let mut pause = Duration::from_millis(50);
    while ctx.flush().await.is_err() && !ctx.is_cancelled() {
        tokio::select! {
            () = sleep(pause) => pause = (2 * pause).min(Duration::from_secs(1)),
            () = ctx.cancelled() => {}
        }
    }
}

/// Where to cut a line that is too long: not within a character.
fn last_boundary(line: &[u8]) -> usize {
    let most = LogLine::MAX_MESSAGE;
    // A character has at most four bytes; what goes on longer is not text.
    (most - 3..=most).rev().find(|at| line[*at] & 0xc0 != 0x80).unwrap_or(most)
}

/// A line without its end, as text that a log can hold.
fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).replace('\0', "\u{fffd}")
}

/// Cuts a text into what one line of a log can hold; at least one piece.
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
    fn the_tail_is_the_end_and_begins_with_a_whole_character() {
        let output = Output::new(LogLevel::Info);
        assert_eq!(output.tail(), "");
        output.keep("é".as_bytes());
        assert_eq!(output.tail(), "é");
        for _ in 0..10_000 {
            output.keep("é".as_bytes());
        }
        output.keep(b"!");
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
        // What grows by being made readable fits too.
        let odd = text(&[0xff; LogLine::MAX_MESSAGE]);
        assert_eq!(super::pieces(&odd).concat().chars().count(), LogLine::MAX_MESSAGE);
    }

    #[test]
    fn the_end_of_a_line_is_no_part_of_it_and_a_nul_can_be_kept() {
        assert_eq!(text(b"a\r"), "a");
        assert_eq!(text(b"a\0b"), "a\u{fffd}b");
        let long = "é".repeat(LogLine::MAX_MESSAGE);
        assert_eq!(last_boundary(long.as_bytes()), LogLine::MAX_MESSAGE);
        assert_eq!(last_boundary(&long.as_bytes()[1..]), LogLine::MAX_MESSAGE - 1);
        assert_eq!(last_boundary(&[0x80; 2 * LogLine::MAX_MESSAGE]), LogLine::MAX_MESSAGE);
    }
}
