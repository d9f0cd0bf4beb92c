//! Schedules as text.

use std::time::Duration;

use orchestrix_api::schedule::{ScheduleRequest, ScheduleView};

/// The expression and its time zone, or the interval.
pub(crate) fn cadence(schedule: &ScheduleRequest) -> String {
    let zone = schedule.timezone.as_deref().unwrap_or("UTC");
    match (&schedule.cron, schedule.every_seconds) {
        (Some(cron), _) => format!("{cron} {zone}"),
        (None, Some(seconds)) => format!("every {}", self::seconds(seconds)),
        (None, None) => "-".into(),
    }
}

/// `active`, `paused` or `ended`.
pub(crate) fn state(schedule: &ScheduleView) -> &'static str {
    match (is_paused(schedule), schedule.status.next_time) {
        (true, _) => "paused",
        (false, Some(_)) => "active",
        (false, None) => "ended",
    }
}

pub(crate) fn is_paused(schedule: &ScheduleView) -> bool {
    schedule.request.paused.unwrap_or_default()
}

/// Seconds as a duration in the syntax of the command line.
pub(crate) fn seconds(value: f64) -> String {
    Duration::try_from_secs_f64(value).map_or_else(|_| format!("{value}s"), duration)
}

fn duration(duration: Duration) -> String {
    let (mut text, mut left) = (String::new(), duration.as_secs());
    for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60)] {
        if left >= seconds {
            text += &format!("{}{unit}", left / seconds);
            left %= seconds;
        }
    }
    let rest = Duration::new(left, duration.subsec_nanos());
    if text.is_empty() || !rest.is_zero() {
        text += &format!("{}s", rest.as_secs_f64());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times;

    #[test]
    fn a_duration_is_formatted_as_it_is_parsed() {
        for text in ["15m", "1d", "1h30m", "1m30s", "1.5s", "1d1s", "0s", "366d"] {
            assert_eq!(duration(times::duration(text).unwrap()), text);
        }
        assert_eq!(duration(Duration::from_secs(90_061)), "1d1h1m1s");
    }
}
