//! Whether this machine's clock and another one agree.

use std::time::Duration;

use orchestrix_core::Timestamp;

use super::check::{Check, millis};

/// More than this is worth a word.
const TOLERATED: Duration = Duration::from_secs(1);

/// A reading of another clock: between which two of our own it was taken, and how fine it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) asked: Timestamp,
    pub(super) theirs: Timestamp,
    pub(super) answered: Timestamp,
    /// It may have been as much later as this.
    pub(super) grain: Duration,
}

impl Reading {
    /// How far the clocks are apart at least, in seconds; ahead is positive. Nothing is said that the way there and back, or the
    /// grain, could explain.
    fn ahead(&self) -> f64 {
        let earliest = seconds(self.asked, self.theirs) + self.grain.as_secs_f64();
        let latest = seconds(self.answered, self.theirs);
        match (earliest, latest) {
            // Even its end lies before we asked, or its beginning after we heard.
            (end, _) if end < 0.0 => end,
            (_, begin) if begin > 0.0 => begin,
            _ => 0.0,
        }
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// Judges the clock of `whom`, which is the one that counts.
pub(super) fn judge(name: &'static str, whom: &str, reading: &Reading) -> Check {
    let ahead = reading.ahead();
    let apart = Duration::try_from_secs_f64(ahead.abs()).unwrap_or(Duration::MAX);
    if apart <= TOLERATED {
        return Check::ok(name, format!("this machine and {whom} agree within {}", millis(TOLERATED)));
    }
    let side = if ahead > 0.0 { "behind" } else { "ahead of" };
    Check::warning(
        name,
        format!(
            "this machine's clock is {:.1} s {side} that of {whom}; leases, delays and schedules follow the database's and are \
             right, but times that programs here work out (runAt, expiresAt) and log are off by as much",
            apart.as_secs_f64()
        ),
        "let a time service (chrony, systemd-timesyncd) set the clocks of both machines",
    )
}

#[cfg(test)]
mod tests {
    use super::{super::check::Status, *};

    fn reading(asked: f64, theirs: f64, answered: f64, grain: u64) -> Reading {
        let at = |seconds: f64| Timestamp::from_microsecond((seconds * 1e6) as i64).unwrap();
        Reading { asked: at(asked), theirs: at(theirs), answered: at(answered), grain: Duration::from_secs(grain) }
    }

    #[test]
    fn what_the_way_and_the_grain_explain_is_no_difference() {
        assert_eq!(reading(10.0, 10.2, 10.4, 0).ahead(), 0.0);
        assert_eq!(reading(10.9, 10.0, 10.95, 1).ahead(), 0.0);
        assert_eq!(reading(10.0, 15.0, 11.0, 0).ahead(), 4.0);
        assert_eq!(reading(10.0, 5.0, 11.0, 0).ahead(), -5.0);
        assert_eq!(reading(10.0, 5.0, 11.0, 1).ahead(), -4.0);
    }

    #[test]
    fn more_than_a_second_is_a_warning_that_says_what_it_matters_for() {
        assert_eq!(judge("clock", "it", &reading(10.0, 11.0, 10.0, 0)).status, Status::Ok);
        let behind = judge("clock", "the database", &reading(10.0, 13.0, 10.0, 0));
        assert_eq!(behind.status, Status::Warning);
        assert!(behind.detail.contains("3.0 s behind that of the database"), "{}", behind.detail);
        assert!(judge("clock", "it", &reading(10.0, 7.0, 10.0, 0)).detail.contains("3.0 s ahead of"));
    }
}
