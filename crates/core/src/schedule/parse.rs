//! Parses cron expressions, with errors that point at the character.

use super::{cron::Cron, days::Days, matcher::Matcher};

struct FieldSpec {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const SECOND: FieldSpec = FieldSpec { name: "second", min: 0, max: 59, names: &[] };
const MINUTE: FieldSpec = FieldSpec { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: FieldSpec = FieldSpec { name: "hour", min: 0, max: 23, names: &[] };
const DATE: FieldSpec = FieldSpec { name: "day of month", min: 1, max: 31, names: &[] };
const MONTH: FieldSpec = FieldSpec {
    name: "month",
    min: 1,
    max: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
const WEEKDAY: FieldSpec =
    FieldSpec { name: "day of week", min: 0, max: 7, names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] };

impl FieldSpec {
    fn values(&self) -> String {
        match self.names {
            [first, .., last] => format!("{}-{} or {first}-{last}", self.min, self.max),
            _ => format!("{}-{}", self.min, self.max),
        }
    }
}

const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Parses `text`. Returns what it matches and whether it follows real time, or what is wrong with it.
pub(super) fn expression(text: &str) -> Result<(Matcher, bool), String> {
    let length = text.chars().count();
    if length > Cron::MAX {
        return Err(error_at(Cron::MAX + 1, &format!("must have at most {} characters, has {length}", Cron::MAX)));
    }
    let fields = split(text);
    let trimmed = text.trim();
    if trimmed.starts_with('@') {
        return match MACROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(trimmed)) {
            Some((_, meaning)) => expression(meaning),
            None => {
                let names = MACROS.map(|(name, _)| name).join(", ");
                let position = fields.first().map_or(1, |field| field.position);
                Err(error_at(position, &format!("{trimmed} is not a known name; use one of {names}")))
            }
        };
    }
    let (second, rest) = match fields.as_slice() {
        rest if rest.len() == 5 => (None, rest),
        [second, rest @ ..] if rest.len() == 5 => (Some(second), rest),
        other => {
            // Points at the first field too many, or at where the next field is missing.
            let end = text.trim_end().chars().count() + 1;
            let position = other.get(6).map_or(end, |field| field.position);
            let message = format!(
                "must have 5 fields (minute, hour, day of month, month, day of week), or 6 with the second first, has {}",
                other.len()
            );
            return Err(error_at(position, &message));
        }
    };
    let seconds = second.map_or(Ok(1), |text| FieldParser::new(&SECOND, text).field(&mut Days::default()))?;
    let mut days = Days::default();
    let minutes = FieldParser::new(&MINUTE, &rest[0]).field(&mut days)?;
    let hours = FieldParser::new(&HOUR, &rest[1]).field(&mut days)?;
    let dates = FieldParser::new(&DATE, &rest[2]).field(&mut days)?;
    let months = FieldParser::new(&MONTH, &rest[3]).field(&mut days)?;
    let weekdays = FieldParser::new(&WEEKDAY, &rest[4]).field(&mut days)?;
    let starred = |field: &Field<'_>| field.text.starts_with('*');
    days.any_date = starred(&rest[2]) || rest[2].text == "?";
    days.any_weekday = starred(&rest[4]) || rest[4].text == "?";
    // Each set has at most as many bits as its field has values, so no cast truncates. Day 7 is day 0.
    days.dates = dates as u32;
    days.weekdays = (weekdays as u8 & 0x7f) | (weekdays >> 7) as u8 & 1;
    let matcher = Matcher { seconds, minutes, hours: hours as u32, days, months: months as u16 };
    Ok((matcher, starred(&rest[0]) || starred(&rest[1])))
}

// An error about the expression as a whole.
fn error_at(position: usize, message: &str) -> String {
    format!("character {position}: {message}")
}

struct Field<'a> {
    text: &'a str,
    /// The 1-based position of its first character.
    position: usize,
}

fn split(text: &str) -> Vec<Field<'_>> {
    let mut rest = text;
    let mut position = 1;
    let mut fields = Vec::new();
    loop {
        let field = rest.trim_start();
        position += rest[..rest.len() - field.len()].chars().count();
        if field.is_empty() {
            return fields;
        }
        let (word, after) = field.split_at(field.find(char::is_whitespace).unwrap_or(field.len()));
        fields.push(Field { text: word, position });
        position += word.chars().count();
        rest = after;
    }
}

/// Parses one field from left to right.
struct FieldParser<'a> {
    spec: &'static FieldSpec,
    field: &'a Field<'a>,
    rest: &'a str,
}

impl<'a> FieldParser<'a> {
    fn new(spec: &'static FieldSpec, field: &'a Field<'a>) -> Self {
        Self { spec, field, rest: field.text }
    }

    /// The values of the field as bits. Day rules other than plain values go to `days`.
    fn field(mut self, days: &mut Days) -> Result<u64, String> {
        if self.field.text == "?" && (self.is(&DATE) || self.is(&WEEKDAY)) {
            return Ok(bits(self.spec.min, self.spec.max, 1));
        }
        let mut set = 0;
        loop {
            set |= self.item(days)?;
            if self.rest.is_empty() {
                return Ok(set);
            }
            if !self.take(",") {
                return Err(self.wrong("expected a comma, a range, a step or the end of the field"));
            }
        }
    }

    fn item(&mut self, days: &mut Days) -> Result<u64, String> {
        let (min, max) = (self.spec.min, self.spec.max);
        if self.take("*") {
            return Ok(bits(min, max, self.step()?.unwrap_or(1)));
        }
        if self.is(&DATE) && self.take("L") {
            if self.take("W") {
                days.last_workday = true;
            } else if self.take("-") {
                days.from_last |= 1 << self.number("the count after L-", 1, 30)?;
            } else {
                days.from_last |= 1;
            }
            return Ok(0);
        }
        let begin = self.rest;
        let first = self.value()?;
        if self.is(&DATE) && self.take("W") {
            days.near_dates |= 1 << first;
            return Ok(0);
        }
        if self.is(&WEEKDAY) && self.take("L") {
            days.last_weekdays |= 1 << (first % 7);
            return Ok(0);
        }
        if self.is(&WEEKDAY) && self.take("#") {
            let nth = self.number("the count after #", 1, 5)?;
            days.nth_weekdays[nth as usize - 1] |= 1 << (first % 7);
            return Ok(0);
        }
        let last = if self.take("-") { Some(self.range_end(first, begin)?) } else { None };
        match (last, self.step()?) {
            (Some(last), step) => Ok(bits(first, last, step.unwrap_or(1))),
            // A step from a weekday ends on Saturday: 7 is the Sunday of the next week.
            (None, Some(step)) => Ok(bits(first, if self.is(&WEEKDAY) && first < 7 { 6 } else { max }, step)),
            (None, None) => Ok(1 << first),
        }
    }

    fn range_end(&mut self, first: u32, begin: &'a str) -> Result<u32, String> {
        let named = self.rest.starts_with(|c: char| c.is_ascii_alphabetic());
        let last = match self.value()? {
            // A range such as SAT-SUN or MON-SUN ends with the Sunday after it.
            0 if self.is(&WEEKDAY) && named && first > 0 => 7,
            last => last,
        };
        if last < first {
            let range = &begin[..begin.len() - self.rest.len()];
            let (low, high) = (self.spec.min, self.spec.max);
            self.rest = begin;
            return Err(self.wrong(&format!("{range} runs backwards; write {first}-{high},{low}-{last}")));
        }
        Ok(last)
    }

    fn step(&mut self) -> Result<Option<u32>, String> {
        if !self.take("/") {
            return Ok(None);
        }
        let max = if self.is(&WEEKDAY) { 6 } else { self.spec.max };
        self.number("a step", 1, max).map(Some)
    }

    fn value(&mut self) -> Result<u32, String> {
        let FieldSpec { min, max, names, .. } = *self.spec;
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number("a value", min, max);
        }
        if let Some(word) = self.rest.get(..3)
            && let Some(index) = names.iter().position(|name| name.eq_ignore_ascii_case(word))
        {
            self.rest = &self.rest[3..];
            return Ok(min + index as u32);
        }
        Err(self.wrong(&format!("expected {}", self.spec.values())))
    }

    fn number(&mut self, what: &str, min: u32, max: u32) -> Result<u32, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, after) = self.rest.split_at(end);
        match digits.parse::<u32>() {
            Ok(number) if (min..=max).contains(&number) => {
                self.rest = after;
                Ok(number)
            }
            _ if digits.is_empty() => Err(self.wrong(&format!("expected {what} from {min} to {max}"))),
            _ => {
                let right = if what == "a value" { self.spec.values() } else { format!("{what} is {min}-{max}") };
                Err(self.error(&format!("{digits} is out of range; {right}")))
            }
        }
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.get(..token.len()) {
            Some(next) if next.eq_ignore_ascii_case(token) => {
                self.rest = &self.rest[token.len()..];
                true
            }
            _ => false,
        }
    }

    fn is(&self, spec: &'static FieldSpec) -> bool {
        self.spec.name == spec.name
    }

    // What was found, then what is allowed.
    fn wrong(&self, expected: &str) -> String {
        match self.rest.chars().next() {
            Some(found) if expected.starts_with("expected") => self.error(&format!("found {found:?}, {expected}")),
            Some(_) => self.error(expected),
            None => self.error(&format!("ends too early, {expected}")),
        }
    }

    fn error(&self, message: &str) -> String {
        let read = self.field.text[..self.field.text.len() - self.rest.len()].chars().count();
        format!("{} (character {}): {message}", self.spec.name, self.field.position + read)
    }
}

fn bits(first: u32, last: u32, step: u32) -> u64 {
    (first..=last).step_by(step as usize).fold(0, |set, value| set | 1 << value)
}
