//! An SQLite file, its disk and its contents. Nothing is changed.

use std::{io, path::Path, time::Duration};

use orchestrix_sqlite::{
    SCHEMA_VERSION, SqliteOptions,
    diagnose::{self, Damage, Examination, Schema},
};
use orchestrix_store::{Result, StoreError};
use rustix::fs::{Access, access, statvfs};

use crate::{
    Report,
    check::{Check, bytes, join_first},
    runner::CheckRunner,
    snapshot,
};

/// The time limit of the integrity check.
const INTEGRITY_TIMEOUT: Duration = Duration::from_secs(6);
/// With less free space writes will soon fail.
const NO_SPACE: u64 = 64 * 1024 * 1024;
/// With less free space the disk may soon be full.
const LITTLE_SPACE: u64 = 1024 * 1024 * 1024;
/// A write-ahead log larger than this was not checkpointed for long: a checkpoint truncates it to a quarter of this
/// size.
const LARGE_WAL: u64 = 256 * 1024 * 1024;

/// What the file system reports about the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStatus {
    file_writable: bool,
    directory_writable: bool,
    free: u64,
    bytes: u64,
    wal: u64,
    /// The kind of network file system, if it is one that can be recognised.
    network: Option<&'static str>,
}

/// Checks an SQLite file: access, disk space, write-ahead log, file system, integrity, migrations and jobs.
pub async fn check_sqlite(options: SqliteOptions) -> Report {
    let path = options.path.display().to_string();
    let status = match file_status(&options.path) {
        Ok(status) => status,
        Err(error) => {
            let detail = format!("{path} cannot be reached: {error}");
            let advice = "check the path; `orchestrix migrate` creates the file";
            return Report { checks: vec![Check::problem("file", detail, advice)], unreachable: true };
        }
    };
    let mut runner = CheckRunner::new("the file");
    runner.checks.extend([file(&path, &status), disk(status.free), wal(status.wal), file_system(status.network)]);
    runner.run("journal", probe(&options, Examination::journal_mode), |mode| vec![journal(mode)]).await;
    let find_damage = probe(&options, |examination| examination.damage(INTEGRITY_TIMEOUT));
    runner.run("integrity", find_damage, |damage| vec![integrity(&path, damage)]).await;
    let schema = runner.run("migrations", probe(&options, Examination::schema), |it| vec![migrations(*it)]).await;
    if matches!(schema, Some(Schema::Version(1..))) {
        runner.run("standing", probe(&options, Examination::snapshot), snapshot::evaluate).await;
    }
    Report { checks: runner.checks, unreachable: false }
}

// On a blocking thread: a probe that times out ends there by itself.
async fn probe<T: Send + 'static>(
    options: &SqliteOptions,
    examine: impl FnOnce(&Examination) -> Result<T> + Send + 'static,
) -> Result<T> {
    let options = options.clone();
    let examined = tokio::task::spawn_blocking(move || examine(&Examination::begin(options)?));
    examined.await.unwrap_or_else(|error| Err(StoreError::Backend(Box::new(error))))
}

fn file_status(path: &Path) -> io::Result<FileStatus> {
    let file = path.metadata()?;
    if !file.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // A bare name is in the current directory.
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let space = statvfs(directory)?;
    Ok(FileStatus {
        file_writable: access(path, Access::WRITE_OK).is_ok(),
        directory_writable: access(directory, Access::WRITE_OK).is_ok(),
        free: space.f_bavail.saturating_mul(space.f_frsize),
        bytes: file.len(),
        wal: diagnose::wal_path(path).metadata().map_or(0, |wal| wal.len()),
        network: network(directory),
    })
}

#[cfg(target_os = "linux")]
fn network(directory: &Path) -> Option<&'static str> {
    // The numbers are from linux/magic.h, or from the sources of file systems that it does not list.
    rustix::fs::statfs(directory).ok().and_then(|it| network_name(it.f_type as u32))
}

#[cfg(not(target_os = "linux"))]
fn network(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(any(target_os = "linux", test))]
fn network_name(kind: u32) -> Option<&'static str> {
    match kind {
        0x6969 => Some("NFS"),
        0x517b => Some("SMB"),
        0xff53_4d42 | 0xfe53_4d42 => Some("CIFS"),
        0x0102_1997 => Some("9P"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f | 0x6b41_4653 => Some("AFS"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x6573_5546 => Some("FUSE, perhaps over a network"),
        _ => None,
    }
}

fn file(path: &str, status: &FileStatus) -> Check {
    const NAME: &str = "file";
    let what = match (status.file_writable, status.directory_writable) {
        (true, true) => return Check::ok(NAME, format!("{path} is writable and has {}", bytes(status.bytes))),
        (false, false) => "neither the file nor its directory is",
        (false, true) => "the file is not",
        (true, false) => "its directory, which holds the write-ahead log, is not",
    };
    let advice = "give this user write permission on both, and check whether the disk is mounted read-only";
    Check::problem(NAME, format!("{path}: {what} writable, so no job can be enqueued or finished"), advice)
}

fn disk(free: u64) -> Check {
    const NAME: &str = "disk";
    let detail = format!("{} are free on the disk", bytes(free));
    let advice = "free disk space, or stop all processes and move the file to a larger disk";
    match free {
        _ if free < NO_SPACE => Check::problem(NAME, format!("only {detail}: writes will soon fail"), advice),
        _ if free < LITTLE_SPACE => Check::warning(NAME, format!("only {detail}"), advice),
        _ => Check::ok(NAME, detail),
    }
}

fn wal(size: u64) -> Check {
    const NAME: &str = "log";
    match size {
        0 => Check::ok(NAME, "there is no write-ahead log: no process has the file open"),
        _ if size < LARGE_WAL => Check::ok(NAME, format!("the write-ahead log has {}", bytes(size))),
        _ => Check::warning(
            NAME,
            format!("the write-ahead log has {}: a long read transaction prevents checkpoints", bytes(size)),
            "find the program that keeps the transaction open (a backup, an sqlite3 shell) and end it",
        ),
    }
}

fn file_system(network: Option<&'static str>) -> Check {
    const NAME: &str = "file-system";
    match network {
        None => Check::ok(NAME, "not a known network file system"),
        Some(kind) => Check::warning(
            NAME,
            format!("the file is on {kind}: locks and shared memory may not work there, which can corrupt the file"),
            "move the file to a local disk; processes on several machines need PostgreSQL",
        ),
    }
}

fn journal(mode: &str) -> Check {
    const NAME: &str = "journal";
    match mode {
        "wal" => Check::ok(NAME, "write-ahead log; Orchestrix syncs every commit to disk (synchronous = FULL)"),
        other => Check::note(
            NAME,
            format!("the journal mode is {other}"),
            "no action needed: the next Orchestrix process that opens the file sets it to wal",
        ),
    }
}

fn integrity(path: &str, damage: &Damage) -> Check {
    const NAME: &str = "integrity";
    match damage {
        Damage::None => Check::ok(NAME, "no damage was found"),
        Damage::Unfinished => Check::note(
            NAME,
            format!("no damage was found in {} s, but the check did not finish", INTEGRITY_TIMEOUT.as_secs()),
            format!("run the full check: sqlite3 {path} 'PRAGMA integrity_check'"),
        ),
        Damage::Found(faults) => Check::problem(
            NAME,
            format!("the file is damaged: {}", join_first(faults.iter().map(|fault| fault.replace('\n', " ")))),
            "stop all processes that use it, keep a copy, and restore a backup; sqlite3 .recover saves what is readable",
        ),
    }
}

fn migrations(schema: Schema) -> Check {
    const NAME: &str = "migrations";
    match schema {
        Schema::Foreign => {
            Check::problem(NAME, "the file is the database of another program", "use another path in --database")
        }
        Schema::Version(version) if version == SCHEMA_VERSION => {
            Check::ok(NAME, format!("the schema is at version {version}, as this program requires"))
        }
        Schema::Version(version) if version > SCHEMA_VERSION => Check::problem(
            NAME,
            format!("the schema is at version {version}, newer than this program, which supports {SCHEMA_VERSION}"),
            "use a newer orchestrix: this one refuses to open the file",
        ),
        Schema::Version(version) => Check::problem(
            NAME,
            format!("the schema is at version {version}, this program needs {SCHEMA_VERSION}"),
            "run `orchestrix migrate`; the next Orchestrix process that opens the file does it as well",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn assert_is(check: &Check, status: Status, words: &str) {
        assert!(check.status == status && check.detail.contains(words), "not {status} with {words:?}: {check:?}");
    }

    #[test]
    fn the_file_and_its_directory_must_be_writable() {
        let check = |file_writable, directory_writable| {
            let status = FileStatus { file_writable, directory_writable, free: 0, bytes: 2048, wal: 0, network: None };
            file("jobs.db", &status)
        };
        assert_is(&check(true, true), Status::Ok, "jobs.db is writable and has 2.0 KiB");
        assert_is(&check(false, true), Status::Problem, "the file is not writable");
        assert_is(&check(true, false), Status::Problem, "its directory, which holds");
        assert_is(&check(false, false), Status::Problem, "neither the file nor its directory");
    }

    #[test]
    fn little_space_and_a_large_write_ahead_log_are_reported() {
        assert_is(&disk(2 << 30), Status::Ok, "2.0 GiB are free");
        assert_is(&disk(512 << 20), Status::Warning, "only 512.0 MiB");
        assert_is(&disk(1 << 20), Status::Problem, "writes will soon fail");
        assert_is(&wal(0), Status::Ok, "no process has the file open");
        assert_is(&wal(4096), Status::Ok, "4.0 KiB");
        assert_is(&wal(300 << 20), Status::Warning, "300.0 MiB");
    }

    #[test]
    fn network_file_systems_are_recognised_by_their_numbers() {
        assert_eq!(network_name(0xef53), None);
        let kinds = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400, 0x5346_414f, 0x0bd0_0bd0];
        for kind in kinds.into_iter().chain([0x6b41_4653, 0x6573_5546]) {
            assert!(network_name(kind).is_some(), "{kind:x}");
        }
        assert_is(&file_system(None), Status::Ok, "not a known network");
        assert_is(&file_system(network_name(0x6969)), Status::Warning, "on NFS");
    }

    #[test]
    fn journal_integrity_and_schema_are_evaluated() {
        assert_is(&journal("wal"), Status::Ok, "write-ahead");
        assert_is(&journal("delete"), Status::Note, "is delete");
        assert_is(&integrity("f", &Damage::None), Status::Ok, "no damage");
        assert_is(&integrity("f", &Damage::Unfinished), Status::Note, "did not finish");
        let found = Damage::Found(vec!["row 1\nmissing".into(), "b".into()]);
        assert_is(&integrity("f", &found), Status::Problem, "damaged: row 1 missing, b");
        assert_is(&migrations(Schema::Foreign), Status::Problem, "another program");
        assert_is(&migrations(Schema::Version(SCHEMA_VERSION)), Status::Ok, "as this program requires");
        assert_is(&migrations(Schema::Version(0)), Status::Problem, "needs");
        assert_is(&migrations(Schema::Version(SCHEMA_VERSION + 1)), Status::Problem, "newer");
    }
}
