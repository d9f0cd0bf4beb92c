//! The flags for a cron expression or an interval. The error of an expression points at the invalid character.

use std::time::Duration;

use clap::Args;
use orchestrix_core::{Cadence, Cron, ZoneName};

use crate::times;

/// When a schedule fires.
#[derive(Debug, Args)]
pub(crate) struct CadenceArguments {
    /// The cron expression: minute, hour, day of month, month and day of week, with the second before them if there
    /// are six; or a name such as @daily
    #[arg(long, value_name = "EXPRESSION", value_parser = cron)]
    cron: Option<Cron>,

    /// The IANA time zone of the expression, such as Europe/Berlin [default: UTC]
    #[arg(long, visible_alias = "timezone", value_name = "ZONE", value_parser = zone, conflicts_with = "every")]
    tz: Option<ZoneName>,

    /// Fire at this interval instead, counted from 1970-01-01 UTC: 15m, 24h
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    every: Option<Duration>,
}

impl CadenceArguments {
    /// The cadence; `None` if neither an expression nor an interval was given.
    pub(crate) fn cadence(&self) -> Option<Cadence> {
        match (&self.cron, self.every) {
            (Some(cron), _) => Some(Cadence::Cron { cron: cron.clone(), zone: self.tz.clone().unwrap_or_default() }),
            (None, Some(interval)) => Some(Cadence::Every { interval }),
            (None, None) => None,
        }
    }

    /// The value of `--tz`.
    pub(crate) const fn zone(&self) -> Option<&ZoneName> {
        self.tz.as_ref()
    }
}

fn cron(text: &str) -> Result<Cron, String> {
    let cron = Cron::new(text).map_err(|error| point_at(text, error.message))?;
    if cron.ever_matches() { Ok(cron) } else { Err("never fires: no year has such a day".into()) }
}

fn zone(text: &str) -> Result<ZoneName, String> {
    ZoneName::new(text).map_err(|error| error.message)
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = times::duration(text)?;
    Cadence::every(interval).map_err(|error| format!("in seconds, it {}", error.message))?;
    Ok(interval)
}

// Adds the expression, and a caret below the character that the message names.
fn point_at(text: &str, message: String) -> String {
    let Some(before) = position(&message).and_then(|position| position.checked_sub(1)) else { return message };
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{message}\n\n  {shown}\n  {}^", " ".repeat(before))
}

// Messages start with the position: "hour (character 3): …", or "character 6: …" outside of a field.
fn position(message: &str) -> Option<usize> {
    let (prefix, _) = message.split_once(": ")?;
    prefix.trim_end_matches(')').rsplit_once("character ")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_below_the_invalid_character() {
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
    fn an_error_without_a_position_has_no_caret() {
        assert_eq!(cron("0 0 30 2 *").unwrap_err(), "never fires: no year has such a day");
    }

    #[test]
    fn intervals_out_of_range_are_rejected() {
        assert_eq!(interval("15m"), Ok(Duration::from_secs(900)));
        for text in ["999ms", "0s", "100000d", "1.0000001s"] {
            assert!(interval(text).unwrap_err().starts_with("in seconds, it m"), "{text}");
        }
        assert!(interval("often").unwrap_err().contains("30s"));
    }
}
