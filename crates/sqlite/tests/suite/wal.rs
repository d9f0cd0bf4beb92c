//! The write-ahead log file. Its format is documented at <https://www.sqlite.org/fileformat2.html#walformat>.

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
    support::{Folder, TIMEOUT, connect, number, open},
};

/// The path of the log of `file`. It exists while the file is open.
pub(crate) fn path(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", file.display()))
}

/// The number of commits in the log since it was last restarted.
pub(crate) fn commits(file: &Path) -> usize {
    const HEADER: usize = 32;
    const FRAME_HEADER: usize = 24;
    let log = fs::read(path(file)).expect("a log");
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let page = number(8) as usize;
    let salts = (number(16), number(20));
    let frames = (HEADER..).step_by(FRAME_HEADER + page).take_while(|at| at + FRAME_HEADER + page <= log.len());
    // Frames with other salts are left over from before the restart.
    let current = frames.take_while(|at| (number(at + 8), number(at + 12)) == salts);
    // Only the last frame of a commit holds the size of the file.
    current.filter(|at| number(at + 4) != 0).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_bounded_while_readers_are_active_at_all_times() {
    const MEGABYTE: u64 = 1024 * 1024;
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let done = Arc::new(AtomicBool::new(false));
    // Two readers with overlapping transactions: the log is always in use.
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
    let mut truncated = false;
    // Writes until the store has truncated the log once.
    while !truncated {
        assert!(begun.elapsed() < TIMEOUT, "the log was never truncated: {longest} bytes");
        enqueue(&store, large.clone()).await;
        longest = longest.max(length());
        truncated = longest > 64 * MEGABYTE && length() < 32 * MEGABYTE;
    }
    done.store(true, Ordering::Relaxed);
    readers.join().unwrap();
}
