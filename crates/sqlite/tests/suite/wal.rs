//! The write-ahead log as a file. Its format is documented at <https://www.sqlite.org/fileformat2.html#walformat>.

use std::{
    fs,
    path::{Path, PathBuf},
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
