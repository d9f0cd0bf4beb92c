//! Parses durations such as `30s`, `1.5h` and `250ms` into whole milliseconds, without rounding.

/// The units and their milliseconds.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", HOUR), ("d", DAY)];

/// An hour in milliseconds.
pub(crate) const HOUR: u64 = 3600 * 1000;
/// A day in milliseconds.
pub(crate) const DAY: u64 = 24 * HOUR;

// No unit has more than ten factors of two or of five, so a longer fraction (without trailing zeros) is never whole.
const MAX_FRACTION: usize = 10;

/// Why a text is no duration. The message continues a sentence that starts with the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DurationError {
    #[error("is not a duration: write a number and a unit (ms, s, m, h, d), such as \"30s\"")]
    NoNumber,
    #[error("has no unit: add one of ms, s, m, h, d")]
    NoUnit,
    #[error("has the unknown unit `{0}`: use one of ms, s, m, h, d")]
    UnknownUnit(String),
    #[error("is not a whole number of milliseconds")]
    NotWhole,
    #[error("is too long")]
    TooLong,
}

/// Parses a duration into milliseconds.
pub(crate) fn millis(text: &str) -> Result<u64, DurationError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err(DurationError::NoNumber),
        Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
        None => (number, ""),
    };
    if whole.is_empty() || fraction.contains('.') {
        return Err(DurationError::NoNumber);
    }
    if unit.is_empty() {
        return Err(DurationError::NoUnit);
    }
    let Some((_, unit)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
        return Err(DurationError::UnknownUnit(unit.into()));
    };
    let whole = whole.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or(DurationError::TooLong)?;
    whole.checked_add(fraction_millis(fraction, unit)?).ok_or(DurationError::TooLong)
}

fn fraction_millis(digits: &str, unit: u64) -> Result<u64, DurationError> {
    if digits.len() > MAX_FRACTION {
        return Err(DurationError::NotWhole);
    }
    let (mut scaled, mut scale) = (0, 1);
    for digit in digits.bytes() {
        scaled = scaled * 10 + u64::from(digit - b'0') * unit;
        scale *= 10;
    }
    if scaled % scale == 0 { Ok(scaled / scale) } else { Err(DurationError::NotWhole) }
}

#[cfg(test)]
mod tests {
    use super::{DurationError::*, *};

    #[test]
    fn every_unit_converts_to_milliseconds() {
        let read = ["7ms", "7s", "7m", "7h", "7d", "0s", "007s"].map(|text| millis(text).unwrap());
        assert_eq!(read, [7, 7_000, 420_000, 25_200_000, 604_800_000, 0, 7_000]);
    }

    #[test]
    fn fractions_are_exact() {
        let read = ["1.5s", "0.001s", "0.25m", "1.0ms", "1.50000000000000000000s", "0.1s", "0.0000000125d"];
        let read = read.map(millis);
        assert_eq!(
            read,
            [1500, 1, 15_000, 1, 1500, 100].map(Ok).into_iter().chain([Err(NotWhole)]).collect::<Vec<_>>()[..]
        );
        // 1/1024 of a day has ten decimal digits, the longest fraction that is whole.
        assert_eq!(millis("0.0009765625d"), Ok(84_375));
        assert_eq!(millis("0.9990234375d"), Ok(DAY - 84_375));
    }

    #[test]
    fn fractions_of_a_millisecond_are_errors_and_not_rounded() {
        for text in ["0.5ms", "1.0005s", "0.00000000001d", "0.3333333333h", "1.99999999999999999999999999s"] {
            assert_eq!(millis(text), Err(NotWhole), "{text}");
        }
    }

    #[test]
    fn invalid_durations_report_the_reason() {
        for text in ["", "s", ".5s", "1.s", "1..5s", "1.2.3s", "-1s", "+1s", " 1s", ".", "abc"] {
            assert_eq!(millis(text), Err(NoNumber), "{text:?}");
        }
        for text in ["30", "1.5"] {
            assert_eq!(millis(text), Err(NoUnit), "{text:?}");
        }
        for (text, unit) in [
            ("30 s", " s"),
            ("30sec", "sec"),
            ("1h30m", "h30m"),
            ("5S", "S"),
            ("1s ", "s "),
            ("1_0s", "_0s"),
            ("1µs", "µs"),
        ] {
            assert_eq!(millis(text), Err(UnknownUnit(unit.into())), "{text:?}");
        }
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        assert_eq!(millis("18446744073709551615ms"), Ok(u64::MAX));
        for text in ["18446744073709551616ms", "18446744073709551615s", "99999999999999999999999d"] {
            assert_eq!(millis(text), Err(TooLong), "{text}");
        }
        // The whole part fits and the fraction overflows.
        assert_eq!(millis("18446744073709551.615s"), Ok(u64::MAX));
        assert_eq!(millis("18446744073709551.616s"), Err(TooLong));
    }
}
