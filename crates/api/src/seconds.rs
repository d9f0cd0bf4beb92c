//! Durations as numbers of seconds.

use std::time::Duration;

/// A duration as it is told: to the microsecond, which is as fine as stores keep times. Made of a whole number of them, since a sum of
/// seconds and their fraction is not always the number that is nearest: 2.527995 would read 2.5279949999999998.
pub fn seconds(duration: Duration) -> f64 {
    const NANOS: u128 = 1_000;
    let micros = (duration.as_nanos() + NANOS / 2) / NANOS;
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_told_to_the_microsecond_and_in_no_more_digits() {
        for (nanos, told) in [
            (0, "0.0"),
            (2_527_995_000, "2.527995"),
            (2_527_994_999, "2.527995"),
            (2_527_994_400, "2.527994"),
            (30_000_000_000, "30.0"),
            (86_400_000_001_000, "86400.000001"),
        ] {
            assert_eq!(serde_json::to_string(&seconds(Duration::from_nanos(nanos))).unwrap(), told);
        }
        assert!(seconds(Duration::MAX) > 1e19);
    }
}
