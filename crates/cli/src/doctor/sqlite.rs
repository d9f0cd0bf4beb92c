//! An SQLite file, the disk it is on, and what is in it. Nothing is changed in it.

use std::{io, path::Path, time::Duration};

use orchestrix_sqlite::{
    SCHEMA_VERSION, SqliteOptions,
    diagnose::{self, Damage, Examination, Schema},
};
use orchestrix_store::{Result, StoreError};
use rustix::fs::{Access, access, statvfs};

use super::{
    Report,
    check::{Check, bytes, listed},
    standing,
    ward::Ward,
};

/// How long damage is looked for.
const SEARCH: Duration = Duration::from_secs(6);
/// With less space nothing can be written soon, or before long.
const NO_SPACE: u64 = 64 * 1024 * 1024;
const LITTLE_SPACE: u64 = 1024 * 1024 * 1024;
/// A log larger than this was not folded into the file for long: it is cut to a quarter of it whenever it is.
const LARGE_LOG: u64 = 256 * 1024 * 1024;

/// What the file system says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    file_writable: bool,
    folder_writable: bool,
    free: u64,
    bytes: u64,
    log: u64,
    /// Which network file system it is, where that can be told.
    network: Option<&'static str>,
}

/// Looks at it.
pub(super) async fn examine(options: SqliteOptions) -> Report {
    let shown = options.path.display().to_string();
    let place = match look_around(&options.path) {
        Ok(place) => place,
        Err(error) => {
            let detail = format!("{shown} cannot be reached: {error}");
            let advice = "is the path right? `orchestrix migrate` would make the file";
            return Report { checks: vec![Check::problem("file", detail, advice)], unreachable: true };
        }
    };
    let mut ward = Ward::new("the file");
    ward.checks.extend([file(&shown, &place), disk(place.free), log(place.log), file_system(place.network)]);
    ward.look("journal", asking(&options, Examination::journal_mode), |mode| vec![journal(mode)]).await;
    ward.look("integrity", asking(&options, |it| it.damage(SEARCH)), |damage| vec![integrity(&shown, damage)]).await;
    let schema = ward.look("migrations", asking(&options, Examination::schema), |it| vec![migrations(*it)]).await;
    if matches!(schema, Some(Schema::Version(1..))) {
        ward.look("standing", asking(&options, Examination::snapshot), standing::judge).await;
    }
    Report { checks: ward.checks, unreachable: false }
}

// On a thread of its own: what is given up on ends in its own time.
async fn asking<T: Send + 'static>(
    options: &SqliteOptions,
    ask: impl FnOnce(&Examination) -> Result<T> + Send + 'static,
) -> Result<T> {
    let options = options.clone();
    let asked = tokio::task::spawn_blocking(move || ask(&Examination::begin(options)?));
    asked.await.unwrap_or_else(|error| Err(StoreError::Backend(Box::new(error))))
}

fn look_around(path: &Path) -> io::Result<Place> {
    let file = path.metadata()?;
    if !file.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    // A bare name is in the current folder.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let space = statvfs(folder)?;
    Ok(Place {
        file_writable: access(path, Access::WRITE_OK).is_ok(),
        folder_writable: access(folder, Access::WRITE_OK).is_ok(),
        free: space.f_bavail.saturating_mul(space.f_frsize),
        bytes: file.len(),
        log: diagnose::wal_path(path).metadata().map_or(0, |log| log.len()),
        network: network(folder),
    })
}

#[cfg(target_os = "linux")]
fn network(folder: &Path) -> Option<&'static str> {
    // From linux/magic.h and the sources of file systems that are not in it.
    rustix::fs::statfs(folder).ok().and_then(|it| network_name(it.f_type as u32))
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

fn file(shown: &str, place: &Place) -> Check {
    const NAME: &str = "file";
    let what = match (place.file_writable, place.folder_writable) {
        (true, true) => return Check::ok(NAME, format!("{shown} is writable and has {}", bytes(place.bytes))),
        (false, false) => "neither the file nor its directory is",
        (false, true) => "the file is not",
        (true, false) => "its directory is not, where SQLite keeps its log,",
    };
    let advice = "give this user the right to write both, and look whether the disk is mounted read-only";
    Check::problem(NAME, format!("{shown}: {what} writable, so no job can be recorded or finished"), advice)
}

fn disk(free: u64) -> Check {
    const NAME: &str = "disk";
    let detail = format!("{} are free on the disk", bytes(free));
    let advice = "free some space, or move the file to a larger disk while nothing runs";
    match free {
        _ if free < NO_SPACE => Check::problem(NAME, format!("only {detail}: jobs will soon be refused"), advice),
        _ if free < LITTLE_SPACE => Check::warning(NAME, format!("only {detail}"), advice),
        _ => Check::ok(NAME, detail),
    }
}

fn log(size: u64) -> Check {
    const NAME: &str = "log";
    match size {
        0 => Check::ok(NAME, "there is no log beside the file: nobody has it open"),
        _ if size < LARGE_LOG => Check::ok(NAME, format!("the log beside the file has {}", bytes(size))),
        _ => Check::warning(
            NAME,
            format!(
                "the log beside the file has {}: some reader has kept it from being folded into the file",
                bytes(size)
            ),
            "find the program that reads the file for so long (a backup, a shell of sqlite3) and let it end",
        ),
    }
}

fn file_system(network: Option<&'static str>) -> Check {
    const NAME: &str = "file-system";
    match network {
        None => Check::ok(NAME, "no network file system, as far as that can be told"),
        Some(kind) => Check::warning(
            NAME,
            format!("the file is on {kind}: there locks and shared memory may not work, and the file may be damaged"),
            "keep it on a local disk; processes on several machines need PostgreSQL",
        ),
    }
}

fn journal(mode: &str) -> Check {
    const NAME: &str = "journal";
    match mode {
        "wal" => Check::ok(
            NAME,
            "write-ahead log; every process of ours waits for the disk with each commit (synchronous = FULL)",
        ),
        other => Check::note(
            NAME,
            format!("the journal mode is {other}"),
            "nothing need be done: whatever of ours opens the file next changes it to wal",
        ),
    }
}

fn integrity(shown: &str, damage: &Damage) -> Check {
    const NAME: &str = "integrity";
    match damage {
        Damage::None => Check::ok(NAME, "no damage was found"),
        Damage::Unfinished => Check::note(
            NAME,
            format!("no damage was found in {} s, and not all was looked at", SEARCH.as_secs()),
            format!("for all of it: sqlite3 {shown} 'PRAGMA integrity_check'"),
        ),
        Damage::Found(faults) => Check::problem(
            NAME,
            format!("the file is damaged: {}", listed(faults.iter().map(|fault| fault.replace('\n', " ")))),
            "stop what uses it, keep a copy, and restore it from a backup; sqlite3's .recover saves what can be read",
        ),
    }
}

fn migrations(schema: Schema) -> Check {
    const NAME: &str = "migrations";
    match schema {
        Schema::Foreign => {
            Check::problem(NAME, "this is the database of another program", "choose another path in --database")
        }
        Schema::Version(version) if version == SCHEMA_VERSION => {
            Check::ok(NAME, format!("the schema is at version {version}, as this program wants it"))
        }
        Schema::Version(version) if version > SCHEMA_VERSION => Check::problem(
            NAME,
            format!("the schema is at version {version}, newer than this program, which knows {SCHEMA_VERSION}"),
            "run a newer orchestrix: this one refuses to touch the file",
        ),
        Schema::Version(version) => Check::problem(
            NAME,
            format!("the schema is at version {version}, this program needs {SCHEMA_VERSION}"),
            "run `orchestrix migrate`; whatever opens the file next does so, too",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::Status, *};

    fn assert_is(check: &Check, status: Status, words: &str) {
        assert!(check.status == status && check.detail.contains(words), "not {status} with {words:?}: {check:?}");
    }

    #[test]
    fn both_the_file_and_its_folder_must_be_writable() {
        let place = |file_writable, folder_writable| {
            let place = Place { file_writable, folder_writable, free: 0, bytes: 2048, log: 0, network: None };
            file("jobs.db", &place)
        };
        assert_is(&place(true, true), Status::Ok, "jobs.db is writable and has 2.0 KiB");
        assert_is(&place(false, true), Status::Problem, "the file is not writable");
        assert_is(&place(true, false), Status::Problem, "its directory is not");
        assert_is(&place(false, false), Status::Problem, "neither the file nor its directory");
    }

    #[test]
    fn space_and_log_count_by_their_size() {
        assert_is(&disk(2 << 30), Status::Ok, "2.0 GiB are free");
        assert_is(&disk(512 << 20), Status::Warning, "only 512.0 MiB");
        assert_is(&disk(1 << 20), Status::Problem, "soon be refused");
        assert_is(&log(0), Status::Ok, "nobody has it open");
        assert_is(&log(4096), Status::Ok, "4.0 KiB");
        assert_is(&log(300 << 20), Status::Warning, "300.0 MiB");
    }

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!(network_name(0xef53), None);
        let kinds = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400, 0x5346_414f, 0x0bd0_0bd0];
        for kind in kinds.into_iter().chain([0x6b41_4653, 0x6573_5546]) {
            assert!(network_name(kind).is_some(), "{kind:x}");
        }
        assert_is(&file_system(None), Status::Ok, "no network");
        assert_is(&file_system(network_name(0x6969)), Status::Warning, "on NFS");
    }

    #[test]
    fn journal_integrity_and_schema_are_judged() {
        assert_is(&journal("wal"), Status::Ok, "write-ahead");
        assert_is(&journal("delete"), Status::Note, "is delete");
        assert_is(&integrity("f", &Damage::None), Status::Ok, "no damage");
        assert_is(&integrity("f", &Damage::Unfinished), Status::Note, "not all was looked at");
        let found = Damage::Found(vec!["row 1\nmissing".into(), "b".into()]);
        assert_is(&integrity("f", &found), Status::Problem, "damaged: row 1 missing, b");
        assert_is(&migrations(Schema::Foreign), Status::Problem, "another program");
        assert_is(&migrations(Schema::Version(SCHEMA_VERSION)), Status::Ok, "as this program wants it");
        assert_is(&migrations(Schema::Version(0)), Status::Problem, "needs");
        assert_is(&migrations(Schema::Version(SCHEMA_VERSION + 1)), Status::Problem, "newer");
    }
}
