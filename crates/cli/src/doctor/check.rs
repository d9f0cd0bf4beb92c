//! What was looked at and what to think of it.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::output::plain;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing need be done.
    Note,
    /// Something may go wrong, or slowly.
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

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// What it is about, in a word that never changes.
    pub(super) name: &'static str,
    pub(super) status: Status,
    /// How it stands, in one line.
    pub(super) detail: String,
    /// What to do, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, detail: detail.into(), advice: None }
    }

    pub(super) fn note(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Note, advice: Some(advice.into()), ..Self::ok(name, detail) }
    }

    pub(super) fn warning(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Warning, ..Self::note(name, detail, advice) }
    }

    pub(super) fn problem(name: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Problem, ..Self::note(name, detail, advice) }
    }

    /// One that failed itself.
    pub(super) fn unknown(name: &'static str, why: impl fmt::Display) -> Self {
        let advice = "this is no verdict: mend what the message says, then ask again";
        Self::warning(name, format!("could not be looked at: {why}"), advice)
    }

    /// For people: what and, beneath it, what to do.
    pub(super) fn lines(&self) -> String {
        let mut text = format!("{:<8} {:<18} {}\n", self.status, self.name, plain(&self.detail));
        if let Some(advice) = &self.advice {
            text += &format!("{:<27} → {}\n", "", plain(advice));
        }
        text
    }
}

/// Several names in one line, the first few of them.
pub(super) fn listed(names: impl IntoIterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<String> = names.into_iter().collect();
    match names.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        rest => format!("{} and {rest} more", names[..SHOWN].join(", ")),
    }
}

/// A number of bytes in the unit that suits it.
pub(super) fn bytes(n: u64) -> String {
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

/// A duration in milliseconds, as far as they matter.
pub(super) fn millis(duration: Duration) -> String {
    let millis = duration.as_secs_f64() * 1000.0;
    if millis < 10.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_shown_with_what_to_do_beneath_it() {
        assert_eq!(Check::ok("clock", "fine").lines(), "ok       clock              fine\n");
        let lines = Check::problem("clock", "a\u{1b}b", "turn it").lines();
        assert_eq!(lines, "problem  clock              a\\u{1b}b\n                            → turn it\n");
    }

    #[test]
    fn the_worst_comes_last() {
        assert!(Status::Ok < Status::Note && Status::Note < Status::Warning && Status::Warning < Status::Problem);
    }

    #[test]
    fn sizes_and_lists_are_short() {
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
        assert_eq!(millis(Duration::from_micros(412)), "0.4 ms");
        assert_eq!(millis(Duration::from_millis(1234)), "1234 ms");
        assert_eq!(listed((1..=5).map(|n| n.to_string())), "1, 2, 3, 4, 5");
        assert_eq!(listed((1..=7).map(|n| n.to_string())), "1, 2, 3, 4, 5 and 2 more");
    }
}
