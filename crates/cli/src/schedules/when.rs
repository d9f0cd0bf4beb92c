//! When: the flags for a cron expression or an interval. What is wrong with an expression is pointed at.

use std::time::Duration;

use clap::Args;
use orchestrix_core::{Cadence, Cron, ZoneName};

use crate::times;

/// When a schedule is due.
#[derive(Debug, Args)]
pub(crate) struct When {
    /// When it is due: minute, hour, day of month, month and day of week, with the second before them if there are six; or
    /// a name such as @daily
    #[arg(long, value_name = "EXPRESSION", value_parser = cron)]
    cron: Option<Cron>,

    /// Whose clocks the expression is about, by an IANA name such as Europe/Berlin [default: UTC]
    #[arg(long, visible_alias = "timezone", value_name = "ZONE", value_parser = zone, conflicts_with = "every")]
    tz: Option<ZoneName>,

    /// How often it is due instead, counted from the start of 1970 in UTC: 15m, 24h
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    every: Option<Duration>,
}

impl When {
    /// What was asked for; `None` if neither an expression nor an interval was given.
    pub(crate) fn cadence(&self) -> Option<Cadence> {
        match (&self.cron, self.every) {
            (Some(cron), _) => Some(Cadence::Cron { cron: cron.clone(), zone: self.tz.clone().unwrap_or_default() }),
            (None, Some(interval)) => Some(Cadence::Every { interval }),
            (None, None) => None,
        }
    }

    /// The zone that was named.
    pub(crate) const fn zone(&self) -> Option<&ZoneName> {
        self.tz.as_ref()
    }
}

fn cron(text: &str) -> Result<Cron, String> {
    let cron = Cron::new(text).map_err(|error| pointed(text, error.message))?;
    if cron.ever_matches() { Ok(cron) } else { Err("never matches: no year has such a day".into()) }
}

fn zone(text: &str) -> Result<ZoneName, String> {
    ZoneName::new(text).map_err(|error| error.message)
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = times::duration(text)?;
    Cadence::every(interval).map_err(|error| format!("in seconds, it {}", error.message))?;
    Ok(interval)
}

// With the expression below, and a caret under the character that the message speaks of.
fn pointed(text: &str, message: String) -> String {
    let Some(before) = position(&message).and_then(|position| position.checked_sub(1)) else { return message };
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{message}\n\n  {shown}\n  {}^", " ".repeat(before))
}

// Messages begin with where: "hour (character 3): …", or "character 6: …" if no field is to blame.
fn position(message: &str) -> Option<usize> {
    let (place, _) = message.split_once(": ")?;
    place.trim_end_matches(')').rsplit_once("character ")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_what_is_wrong() {
        for (text, caret) in [
            ("61 9 * * *", "  ^"),
            ("0 9 * * MOO", "          ^"),
            ("  0 9 * * 1-9", "              ^"),
            ("0\t25 * * *", "    ^"),
            ("0 9,é * * *", "      ^"),
            ("0 9 *", "       ^"),
            (" @never", "   ^"),
        ] {
            let error = cron(text).unwrap_err();
            let lines: Vec<&str> = error.lines().collect();
            let shown = format!("  {}", text.replace('\t', " "));
            assert_eq!(lines[1..], ["", shown.as_str(), caret], "{error}");
        }
    }

    #[test]
    fn what_is_nowhere_in_it_is_not_pointed_at() {
        assert_eq!(cron("0 0 30 2 *").unwrap_err(), "never matches: no year has such a day");
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(interval("15m"), Ok(Duration::from_secs(900)));
        for text in ["999ms", "0s", "100000d", "1.0000001s"] {
            assert!(interval(text).unwrap_err().starts_with("in seconds, it m"), "{text}");
        }
        assert!(interval("often").unwrap_err().contains("30s"));
    }
}
