//! Durations as numbers of seconds.

use std::time::Duration;

/// Converts a duration to seconds, rounded to the microsecond, the precision of the stores.
///
/// The result is computed from whole microseconds.
/// Adding the fraction to the whole seconds would not always give the nearest number: 2.527995 would become
/// 2.5279949999999998.
pub fn seconds(duration: Duration) -> f64 {
    const NANOS_PER_MICRO: u128 = 1_000;
    let micros = (duration.as_nanos() + NANOS_PER_MICRO / 2) / NANOS_PER_MICRO;
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_to_the_microsecond_without_extra_digits() {
        for (nanos, expected) in [
            (0, "0.0"),
            (2_527_995_000, "2.527995"),
            (2_527_994_999, "2.527995"),
            (2_527_994_400, "2.527994"),
            (30_000_000_000, "30.0"),
            (86_400_000_001_000, "86400.000001"),
        ] {
            assert_eq!(serde_json::to_string(&seconds(Duration::from_nanos(nanos))).unwrap(), expected);
        }
        assert!(seconds(Duration::MAX) > 1e19);
    }
}
