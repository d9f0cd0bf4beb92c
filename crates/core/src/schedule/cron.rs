//! Cron expressions: syntax and meaning.
//!
//! | field | values | also |
//! |---|---|---|
//! | second (only with six fields) | 0-59 | |
//! | minute | 0-59 | |
//! | hour | 0-23 | |
//! | day of month | 1-31 | `?`, `L` last day, `L-2` two before it, `15W` the workday nearest to the 15th, `LW` |
//! | month | 1-12 | `JAN`-`DEC` |
//! | day of week | 0-7, both 0 and 7 are Sunday | `SUN`-`SAT`, `?`, `FRI#2` the second Friday, `FRIL` the last |
//!
//! Every field takes `*`, lists `1,15`, ranges `9-17` and steps `*/5`, `9-17/2`, `10/5` (from 10 on).
//! A step longer than its field and a range that runs backwards are refused.
//! `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` and `@hourly` have their usual meaning.
//! There is no `@reboot`: a schedule is not tied to one machine.
//!
//! If day of month and day of week are both restricted, a day that matches either is matched, as in classic cron.
//! A field that starts with `*` (also `*/2`) does not count as restricted; then both must match.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{matcher::Matcher, parse};
use crate::FieldError;

/// A cron expression of five or six fields (seconds first), or a name such as `@daily`.
///
/// Two expressions are equal if their texts are equal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cron(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    text: String,
    matcher: Matcher,
    real_time: bool,
}

impl Cron {
    /// The greatest length of an expression, in characters.
    pub const MAX: usize = 256;

    /// Parses an expression. The error names the character, the field, and what is allowed there.
    pub fn new(text: impl AsRef<str>) -> Result<Self, FieldError> {
        let text = text.as_ref();
        let (matcher, real_time) = parse::expression(text).map_err(|message| FieldError::new("cron", message))?;
        Ok(Self(Arc::new(Parsed { text: text.into(), matcher, real_time })))
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Whether it follows real time through clock changes: its minute or hour field starts with `*`, so it means an
    /// interval rather than a time of day.
    pub fn follows_real_time(&self) -> bool {
        self.0.real_time
    }

    /// Whether it matches any day; `0 0 30 2 *` matches none.
    pub fn ever_matches(&self) -> bool {
        // The rarest match, 29 February on a given weekday, comes at least once in 50 years.
        const HALF_A_CENTURY: i64 = 50 * 366 * 24 * 3600;
        self.0.matcher.next(0, HALF_A_CENTURY).is_some()
    }

    pub(super) fn matcher(&self) -> &Matcher {
        &self.0.matcher
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Cron {}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.text)
    }
}

impl FromStr for Cron {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Cron {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl From<Cron> for String {
    fn from(cron: Cron) -> Self {
        cron.0.text.clone()
    }
}
