//! Durations and times in arguments (`30s`, `5m`, `24h`, `500ms`, `7d`, `1h30m`) and in output (`3s ago`).

use std::time::Duration;

use orchestrix_core::Timestamp;

/// Parses a duration.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let invalid = || "must be a duration such as 30s, 5m, 24h or 500ms".to_owned();
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(invalid()),
        };
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| invalid())?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = tail;
    }
    Ok(total)
}

/// Parses a time.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "must be a time such as 2026-01-31T09:00:00Z".to_owned())
}

/// Parses a time, or a duration before now.
pub(crate) fn past_time(text: &str) -> Result<Timestamp, String> {
    let invalid = "must be a time such as 2026-01-31T09:00:00Z, or a duration before now such as 2h";
    if let Ok(time) = time(text) {
        return Ok(time);
    }
    let ago = duration(text).map_err(|_| invalid)?;
    Timestamp::now().checked_sub(ago).map_err(|_| invalid.to_owned())
}

/// The time from `earlier` to `now`; zero if `earlier` is later.
pub(crate) fn since(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(earlier)).unwrap_or_default()
}

/// A duration in its largest unit, rounded down.
pub(crate) fn brief(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A time relative to now: `3s ago`, `in 5m`.
pub(crate) fn relative(time: Timestamp, now: Timestamp) -> String {
    if time > now { format!("in {}", brief(since(now, time))) } else { format!("{} ago", brief(since(time, now))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_their_units() {
        for (text, millis) in [
            ("30s", 30_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("500ms", 500),
            ("0s", 0),
            ("1.5s", 1_500),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "s", "5x", "-5s", "5 s", "1..5s", "1e3s", "99999999999999999999d", "NaNs"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_shown_relative_to_now() {
        let now: Timestamp = "2026-01-31T09:00:00Z".parse().unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(relative(at("2026-01-31T08:59:57Z"), now), "3s ago");
        assert_eq!(relative(at("2026-01-29T09:00:00Z"), now), "2d ago");
        assert_eq!(relative(at("2026-01-31T09:05:00Z"), now), "in 5m");
        assert_eq!(since(at("2026-01-31T09:05:00Z"), now), Duration::ZERO);
    }

    #[test]
    fn a_past_time_is_a_time_or_a_duration_before_now() {
        assert_eq!(past_time("2026-01-31T09:00:00Z").unwrap().to_string(), "2026-01-31T09:00:00Z");
        let ago = since(past_time("2h").unwrap(), Timestamp::now());
        assert!((7_200..7_260).contains(&ago.as_secs()), "{ago:?}");
        assert!(past_time("yesterday").is_err());
    }
}
