//! A place for files that need not survive the machine: in memory, if there is enough of it.
//!
//! The tests create and drop a database each, hundreds of files. On a disk the kernel spends more time on these files
//! than the tests and the server do on everything else.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::server_dir::ServerDir;
use crate::server_user::ServerUser;

/// The file system in memory of every Linux system. Containers often limit it to a few megabytes.
const MEMORY: &str = "/dev/shm";
/// The free memory, in KiB, from which on it is used. A full run of the tests fills less than half of it.
const ENOUGH: u64 = 6 << 20;

/// A directory for temporary files of tests, in memory if there is enough. It is removed when this value is dropped or
/// its process ends.
#[derive(Debug)]
pub struct ScratchDir(ServerDir);

impl ScratchDir {
    /// Creates the directory. Only the current user has access.
    pub fn create() -> Result<Self, Error> {
        ServerDir::create_in(&in_memory().unwrap_or_else(env::temp_dir), "scratch", ServerUser::CURRENT, "TERM")
            .map(Self)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The directory in memory, unless it or the machine has too little left.
pub(crate) fn in_memory() -> Option<PathBuf> {
    let enough = free_space(MEMORY)? >= ENOUGH && available_memory()? >= ENOUGH;
    enough.then(|| MEMORY.into())
}

/// The free space of a file system in KiB.
fn free_space(directory: &str) -> Option<u64> {
    let output = Command::new("df").args(["-P", "-k", directory]).stdin(Stdio::null()).output().ok()?;
    let output = String::from_utf8(output.stdout).ok()?;
    output.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

/// The memory in KiB that processes can use without swapping.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_is_gone_when_it_is_dropped() {
        let scratch = ScratchDir::create().unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "text").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn free_space_and_memory_are_read() {
        assert!(free_space("/").is_some());
        assert!(available_memory().is_some_and(|memory| memory > 0));
        assert_eq!(free_space("/no such directory"), None);
    }
}
