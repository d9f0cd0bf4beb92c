//! Finds PostgreSQL's programs.
//!
//! Debian keeps them off the PATH, in one directory per major version. The programs on the PATH are wrappers that
//! manage system clusters, and are of no use here.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Error;

/// The oldest major version that Orchestrix supports.
pub const OLDEST_POSTGRES: u32 = 15;

/// The environment variable with PostgreSQL's bin directory. It replaces the search.
pub const PG_BIN: &str = "PG_BIN";

const DEBIAN: &str = "/usr/lib/postgresql";
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "psql"];

/// A supported PostgreSQL with all programs that a private server needs.
#[derive(Debug, Clone)]
pub struct PostgresInstallation {
    bin: PathBuf,
    major: u32,
}

impl PostgresInstallation {
    /// Finds an installation: the one in [`PG_BIN`], else Debian's newest, else the one on the PATH.
    ///
    /// A success is cached. A failure is not, because the package may be installed later.
    pub fn find() -> Result<Self, Error> {
        static FOUND: OnceLock<PostgresInstallation> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found.clone());
        }
        let found = match env::var_os(PG_BIN) {
            Some(bin) => Self::named(bin.into()),
            None => Self::search(),
        }?;
        Ok(FOUND.get_or_init(|| found).clone())
    }

    /// The path of one of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// The directory of its programs.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.major
    }

    fn named(bin: PathBuf) -> Result<Self, Error> {
        match first_missing(&bin) {
            Some(program) => Err(Error::PostgresIncomplete { bin, program }),
            None => Self::checked(bin),
        }
    }

    fn search() -> Result<Self, Error> {
        let mut debian: Vec<(u32, PathBuf)> = fs::read_dir(DEBIAN)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let major = entry.file_name().to_str()?.parse().ok()?;
                Some((major, entry.path().join("bin")))
            })
            .collect();
        debian.sort_unstable_by(|a, b| b.cmp(a));
        let path = env::var_os("PATH").unwrap_or_default();
        let found = debian
            .into_iter()
            .map(|(_, bin)| bin)
            .chain(env::split_paths(&path))
            .find(|bin| first_missing(bin).is_none());
        Self::checked(found.ok_or(Error::PostgresMissing)?)
    }

    fn checked(bin: PathBuf) -> Result<Self, Error> {
        let program = bin.join("postgres");
        let output = Command::new(&program).arg("--version").output().map_err(Error::run(&program))?;
        let major = major(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| Error::failed(&program, &output))?;
        if major < OLDEST_POSTGRES {
            return Err(Error::PostgresTooOld { bin, found: major });
        }
        Ok(Self { bin, major })
    }
}

fn first_missing(bin: &Path) -> Option<&'static str> {
    PROGRAMS.into_iter().find(|program| !bin.join(program).is_file())
}

/// Parses the major version in `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`, `17beta1` or `9.6.24`.
fn major(version: &str) -> Option<u32> {
    let number = version.split_once("(PostgreSQL) ")?.1;
    let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn the_major_version_is_parsed_from_releases_and_betas() {
        assert_eq!(major("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 19beta1\n"), Some(19));
        assert_eq!(major("postgres (PostgreSQL) 9.6.24"), Some(9));
        assert_eq!(major("mysqld 8.0"), None);
    }
}
