//! The write-ahead log as a file. Its format is documented at <https://www.sqlite.org/fileformat2.html#walformat>.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use orchestrix_core::NewJob;

use crate::{
    jobs::*,
    support::{Folder, LIMIT, connect, number, open},
};

/// Where the log of `file` is while anybody has it open.
pub(crate) fn path(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", file.display()))
}

/// How many commits the log holds since it was last begun anew.
pub(crate) fn commits(file: &Path) -> usize {
    const HEADER: usize = 32;
    const FRAME_HEADER: usize = 24;
    let log = fs::read(path(file)).expect("a log");
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let page = number(8) as usize;
    let salts = (number(16), number(20));
    let frames = (HEADER..).step_by(FRAME_HEADER + page).take_while(|at| at + FRAME_HEADER + page <= log.len());
    // What lies behind the last frame with the salts of the header is from before.
    let current = frames.take_while(|at| (number(at + 8), number(at + 12)) == salts);
    // Only the last frame of a commit says how large the file is after it.
    current.filter(|at| number(at + 4) != 0).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_bounded_though_somebody_reads_at_every_moment() {
    const MEGABYTE: u64 = 1024 * 1024;
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let done = Arc::new(AtomicBool::new(false));
    // Two readers that relieve each other: the log is in use without a break.
    let readers = {
        let (file, done) = (folder.file(), done.clone());
        thread::spawn(move || {
            let connections = [connect(&file), connect(&file)];
            let begin = |i: usize| {
                connections[i].execute_batch("BEGIN").unwrap();
                number(&connections[i], "SELECT count(*) FROM job");
            };
            begin(0);
            for turn in 1.. {
                begin(turn % 2);
                thread::sleep(Duration::from_millis(5));
                connections[1 - turn % 2].execute_batch("COMMIT").unwrap();
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        })
    };
    let large = NewJob { payload: payload(500_000), ..job("large") };
    let length = || fs::metadata(path(&folder.file())).unwrap().len();
    let begun = Instant::now();
    let mut longest = 0;
    let mut shortened = false;
    // Long enough for several looks at it, and until it was once made shorter.
    while !shortened {
        assert!(begun.elapsed() < LIMIT, "the log was never made shorter: {longest} bytes");
        enqueue(&store, large.clone()).await;
        longest = longest.max(length());
        shortened = longest > 64 * MEGABYTE && length() < 32 * MEGABYTE;
    }
    done.store(true, Ordering::Relaxed);
    readers.join().unwrap();
}
