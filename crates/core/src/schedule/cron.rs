//! A cron expression: what it names, and how it is written.
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
//! Every field takes `*`, lists `1,15`, ranges `9-17` and steps `*/5`, `9-17/2`, `10/5` (from 10 on). A step longer than its
//! field and a range that runs backwards are refused rather than guessed at. `@yearly`, `@annually`, `@monthly`, `@weekly`,
//! `@daily`, `@midnight` and `@hourly` stand for their usual expressions; there is no `@reboot`, as a schedule is not
//! about any one machine.
//!
//! Where day of month and day of week are both restricted, either may match, as in classic cron; one that starts
//! with `*` (`*/2` too) is not restricted, and then both must match.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{face::Face, parse};
use crate::FieldError;

/// A cron expression of five or six fields (seconds first), or a name such as `@daily`.
///
/// Two are equal when they are written alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cron(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    text: String,
    face: Face,
    real_time: bool,
}

impl Cron {
    /// The longest that an expression may be, in characters.
    pub const MAX: usize = 256;

    /// Reads an expression. The error says at which character it is wrong, in which field if it is one, and what would be right.
    pub fn new(text: impl AsRef<str>) -> Result<Self, FieldError> {
        let text = text.as_ref();
        let (face, real_time) = parse::expression(text).map_err(|message| FieldError::new("cron", message))?;
        Ok(Self(Arc::new(Parsed { text: text.into(), face, real_time })))
    }

    /// The expression as it was given.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Whether a change of the clock leaves it alone: its minute or hour field starts with `*`, so it means "every so
    /// often" rather than "at this time of day".
    pub fn follows_real_time(&self) -> bool {
        self.0.real_time
    }

    /// Whether there is any day that it matches; `0 0 30 2 *` has none.
    pub fn ever_matches(&self) -> bool {
        // The calendar repeats after 400 years, and within 50 of them everything has happened that can.
        const HALF_A_CENTURY: i64 = 50 * 366 * 24 * 3600;
        self.0.face.next(0, HALF_A_CENTURY).is_some()
    }

    pub(super) fn face(&self) -> &Face {
        &self.0.face
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
