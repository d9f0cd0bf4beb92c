//! One finding: what was checked, how bad it is, and what to do.

use std::{fmt, time::Duration};

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Worth knowing; no action is needed.
    Note,
    /// Something may fail or become slow.
    Warning,
    /// Something is wrong.
    Problem,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        })
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// A stable name, for scripts and the documentation.
    pub name: &'static str,
    /// How bad it is.
    pub status: Status,
    /// What was found, in one line.
    pub detail: String,
    /// What to do, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Check {
    /// A finding that is as it should be.
    pub fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, detail: detail.into(), advice: None }
    }

    /// A finding that is worth knowing.
    pub fn note(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Note, advice: Some(advice.into()), ..Self::ok(name, detail) }
    }

    /// A finding that may cause failures.
    pub fn warning(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Warning, ..Self::note(name, detail, advice) }
    }

    /// A finding that is wrong.
    pub fn problem(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Problem, ..Self::note(name, detail, advice) }
    }

    /// A probe that failed itself: a warning, because nothing is known about its subject.
    pub fn unknown(name: &'static str, error: impl fmt::Display) -> Self {
        Self::warning(name, format!("check failed: {error}"), "fix this error, then run the doctor again")
    }
}

/// Several names in one line: the first five and the number of the others.
pub(crate) fn join_first(names: impl IntoIterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<String> = names.into_iter().collect();
    match names.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        rest => format!("{} and {rest} more", names[..SHOWN].join(", ")),
    }
}

/// A number of bytes in a suitable unit.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return format!("{n} bytes");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A duration in milliseconds, with one decimal below 10 ms.
pub(crate) fn millis(duration: Duration) -> String {
    let millis = duration.as_secs_f64() * 1000.0;
    if millis < 10.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

/// A duration in its largest unit.
pub(crate) fn brief(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_ordered_by_severity() {
        assert!(Status::Ok < Status::Note && Status::Note < Status::Warning && Status::Warning < Status::Problem);
    }

    #[test]
    fn sizes_durations_and_lists_are_short() {
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
        assert_eq!(millis(Duration::from_micros(412)), "0.4 ms");
        assert_eq!(millis(Duration::from_millis(1234)), "1234 ms");
        assert_eq!(brief(Duration::from_secs(7_200)), "2h");
        assert_eq!(join_first((1..=5).map(|n| n.to_string())), "1, 2, 3, 4, 5");
        assert_eq!(join_first((1..=7).map(|n| n.to_string())), "1, 2, 3, 4, 5 and 2 more");
    }
}
