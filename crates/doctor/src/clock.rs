//! Whether this machine's clock agrees with that of a database or a server.

use std::time::Duration;

use orchestrix_core::Timestamp;

use crate::check::{Check, brief};

/// A larger difference is a warning.
const TOLERANCE: Duration = Duration::from_secs(1);

/// A reading of a remote clock, between two readings of the local one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockSample {
    pub(crate) sent_at: Timestamp,
    pub(crate) remote: Timestamp,
    pub(crate) received_at: Timestamp,
    /// The remote reading is rounded down to a multiple of this.
    pub(crate) resolution: Duration,
}

impl ClockSample {
    /// The least difference that explains the readings, in seconds; positive if the remote clock is ahead. Zero if the
    /// round trip or the resolution can explain the difference.
    fn offset(&self) -> f64 {
        let upper = seconds_between(self.sent_at, self.remote) + self.resolution.as_secs_f64();
        let lower = seconds_between(self.received_at, self.remote);
        match (upper, lower) {
            (upper, _) if upper < 0.0 => upper,
            (_, lower) if lower > 0.0 => lower,
            _ => 0.0,
        }
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// Compares the clock of this machine with that of `remote`, which is the authoritative one.
pub(crate) fn evaluate(name: &'static str, remote: &str, sample: &ClockSample) -> Check {
    let offset = sample.offset();
    let difference = Duration::try_from_secs_f64(offset.abs()).unwrap_or(Duration::MAX);
    if difference <= TOLERANCE {
        return Check::ok(name, format!("this machine and {remote} agree within {}", brief(TOLERANCE)));
    }
    let side = if offset > 0.0 { "behind" } else { "ahead of" };
    Check::warning(
        name,
        format!(
            "this machine's clock is {:.1} s {side} that of {remote}; leases, delays and schedules use the database's \
             clock and are correct, but times that programs here compute (runAt, expiresAt) or log are wrong",
            difference.as_secs_f64()
        ),
        "synchronise both machines with a time service such as chrony or systemd-timesyncd",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    fn sample(sent: f64, remote: f64, received: f64, resolution: u64) -> ClockSample {
        let at = |seconds: f64| Timestamp::from_microsecond((seconds * 1e6) as i64).unwrap();
        let resolution = Duration::from_secs(resolution);
        ClockSample { sent_at: at(sent), remote: at(remote), received_at: at(received), resolution }
    }

    #[test]
    fn a_difference_that_round_trip_or_resolution_explain_counts_as_none() {
        assert_eq!(sample(10.0, 10.2, 10.4, 0).offset(), 0.0);
        assert_eq!(sample(10.9, 10.0, 10.95, 1).offset(), 0.0);
        assert_eq!(sample(10.0, 15.0, 11.0, 0).offset(), 4.0);
        assert_eq!(sample(10.0, 5.0, 11.0, 0).offset(), -5.0);
        assert_eq!(sample(10.0, 5.0, 11.0, 1).offset(), -4.0);
    }

    #[test]
    fn a_difference_of_more_than_a_second_is_a_warning() {
        assert_eq!(evaluate("clock", "it", &sample(10.0, 11.0, 10.0, 0)).status, Status::Ok);
        let behind = evaluate("clock", "the database", &sample(10.0, 13.0, 10.0, 0));
        assert_eq!(behind.status, Status::Warning);
        assert!(behind.detail.contains("3.0 s behind that of the database"), "{}", behind.detail);
        assert!(evaluate("clock", "it", &sample(10.0, 7.0, 10.0, 0)).detail.contains("3.0 s ahead of"));
    }
}
