//! What this machine allows the process.

use rustix::process::{Resource, getrlimit};

use super::check::Check;

/// As many as a server with all the long polls it takes needs.
const AMPLE: u64 = 12_000;
/// Fewer are used up by a busy process.
const FEW: u64 = 1_024;

/// Looks at the limit of open files.
pub(super) fn open_files() -> Check {
    judge(getrlimit(Resource::Nofile).current)
}

fn judge(limit: Option<u64>) -> Check {
    const NAME: &str = "open-files";
    let advice =
        format!("raise it where processes are started: `ulimit -n {AMPLE}`, or LimitNOFILE={AMPLE} in systemd");
    match limit {
        None => Check::ok(NAME, "a process here may have any number of files and connections open"),
        Some(n) if n < FEW => Check::warning(
            NAME,
            format!("a process here may have {n} files and connections open; a server or worker may run out of them"),
            advice,
        ),
        Some(n) if n < AMPLE => Check::note(
            NAME,
            format!("a process here may have {n} files and connections open; a server answers as many waiting workers"),
            advice,
        ),
        Some(n) => Check::ok(NAME, format!("a process here may have {n} files and connections open")),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::Status, *};

    #[test]
    fn few_open_files_are_told() {
        assert_eq!(judge(None).status, Status::Ok);
        assert_eq!(judge(Some(1_000_000)).status, Status::Ok);
        assert_eq!(judge(Some(1_024)).status, Status::Note);
        assert_eq!(judge(Some(256)).status, Status::Warning);
    }
}
