//! Limits that this machine sets for a process.

use rustix::process::{Resource, getrlimit};

use crate::{Report, check::Check};

/// Enough for a server with the most long polls that it accepts.
const AMPLE: u64 = 12_000;
/// A busy process may run out of fewer.
const FEW: u64 = 1_024;

/// Checks this machine: how many files a process may open.
pub fn check_machine() -> Report {
    Report { checks: vec![evaluate(getrlimit(Resource::Nofile).current)], unreachable: false }
}

fn evaluate(limit: Option<u64>) -> Check {
    const NAME: &str = "open-files";
    let advice = format!("raise the limit with `ulimit -n {AMPLE}`, or with LimitNOFILE={AMPLE} in a systemd unit");
    match limit {
        None => Check::ok(NAME, "a process may open any number of files and connections"),
        Some(n) if n < FEW => Check::warning(
            NAME,
            format!("a process may open {n} files and connections; a server or worker may run out of them"),
            advice,
        ),
        Some(n) if n < AMPLE => Check::note(
            NAME,
            format!(
                "a process may open {n} files and connections, which also limits how many workers a server can serve"
            ),
            advice,
        ),
        Some(n) => Check::ok(NAME, format!("a process may open {n} files and connections")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    #[test]
    fn a_low_limit_of_open_files_is_reported() {
        assert_eq!(evaluate(None).status, Status::Ok);
        assert_eq!(evaluate(Some(1_000_000)).status, Status::Ok);
        assert_eq!(evaluate(Some(1_024)).status, Status::Note);
        assert_eq!(evaluate(Some(256)).status, Status::Warning);
    }
}
