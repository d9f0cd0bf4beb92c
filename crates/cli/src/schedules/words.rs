//! What a schedule is in words.

use std::time::Duration;

use orchestrix_api::schedule::{ScheduleRequest, ScheduleView};

/// When it is due.
pub(crate) fn when(schedule: &ScheduleRequest) -> String {
    let zone = schedule.timezone.as_deref().unwrap_or("UTC");
    match (&schedule.cron, schedule.every_seconds) {
        (Some(cron), _) => format!("{cron} {zone}"),
        (None, Some(seconds)) => format!("every {}", seconds_exact(seconds)),
        (None, None) => "-".into(),
    }
}

/// Whether it may fire, in one word.
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

/// Seconds as they would be given on the command line.
pub(crate) fn seconds_exact(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| format!("{seconds}s"), exact)
}

fn exact(duration: Duration) -> String {
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
    fn a_duration_is_shown_as_it_is_given() {
        for text in ["15m", "1d", "1h30m", "1m30s", "1.5s", "1d1s", "0s", "366d"] {
            assert_eq!(exact(times::duration(text).unwrap()), text);
        }
        assert_eq!(exact(Duration::from_secs(90_061)), "1d1h1m1s");
    }
}
