//! API keys without their secret: id, role, rate limit.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::FieldError;

/// The id of an API key: 12 characters of `a-z 0-9`. It is the public part of the key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// The number of characters.
    pub const LENGTH: usize = 12;

    /// Validates an id.
    pub fn new(text: impl AsRef<str>) -> Result<Self, FieldError> {
        let text = text.as_ref();
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        if text.len() == Self::LENGTH && text.bytes().all(plain) {
            return Ok(Self(text.into()));
        }
        Err(FieldError::new("keyId", format!("must have {} characters of a-z 0-9", Self::LENGTH)))
    }

    /// Wraps an id that is known to be valid, such as one from a store.
    pub fn trusted(text: &str) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for KeyId {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl TryFrom<String> for KeyId {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> Self {
        id.0.as_ref().into()
    }
}

impl AsRef<str> for KeyId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for KeyId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What a key permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Enqueue and follow jobs; read schedules.
    Client,
    /// Claim and run jobs.
    Worker,
    /// Everything except managing keys.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    /// All roles, least powerful first.
    pub const ALL: [Self; 4] = [Self::Client, Self::Worker, Self::Operator, Self::Admin];

    /// The name that APIs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Worker => "worker",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| FieldError::new("role", "must be client, worker, operator or admin"))
    }
}

/// A rate limit: in any period at most `burst`, plus `count` for every `per` of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateLimit {
    count: u32,
    per: Duration,
    burst: u32,
}

impl RateLimit {
    /// The largest count and burst.
    pub const MAX_COUNT: u32 = 1_000_000_000;
    /// The longest period.
    pub const MAX_PER: Duration = Duration::from_secs(24 * 3600);

    /// Validates a rate limit. The period is truncated to whole milliseconds.
    pub fn new(count: u32, per: Duration, burst: u32) -> Result<Self, FieldError> {
        for (field, n) in [("rateLimit.count", count), ("rateLimit.burst", burst)] {
            if !(1..=Self::MAX_COUNT).contains(&n) {
                return Err(FieldError::new(field, format!("must be from 1 to {}, not {n}", Self::MAX_COUNT)));
            }
        }
        let millis = u64::try_from(per.as_millis()).unwrap_or(u64::MAX);
        let per = Duration::from_millis(millis);
        if per.is_zero() || per > Self::MAX_PER {
            return Err(FieldError::new("rateLimit.perSeconds", "must be from 0.001 to 86400"));
        }
        Ok(Self { count, per, burst })
    }

    /// How many are allowed per [`per`](Self::per).
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The period.
    pub const fn per(self) -> Duration {
        self.per
    }

    /// How many are allowed at once.
    pub const fn burst(self) -> u32 {
        self.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_twelve_lower_case_letters_and_digits() {
        assert_eq!(KeyId::new("abc123def456").unwrap().as_str(), "abc123def456");
        for bad in ["", "abc123def45", "abc123def4567", "ABC123def456", "abc123def45é", "abc123def45-"] {
            assert_eq!(KeyId::new(bad).unwrap_err().field, "keyId", "{bad:?}");
        }
    }

    #[test]
    fn roles_parse_from_their_names() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert_eq!("root".parse::<Role>().unwrap_err().field, "role");
    }

    #[test]
    fn a_rate_limit_needs_a_count_a_burst_and_a_period_in_range() {
        let second = Duration::from_secs(1);
        let limit = RateLimit::new(10, Duration::from_micros(1_500_900), 20).unwrap();
        assert_eq!((limit.count(), limit.per(), limit.burst()), (10, Duration::from_millis(1_500), 20));
        for (count, per, burst, field) in [
            (0, second, 1, "rateLimit.count"),
            (1, second, 0, "rateLimit.burst"),
            (1, second, u32::MAX, "rateLimit.burst"),
            (1, Duration::from_micros(999), 1, "rateLimit.perSeconds"),
            (1, RateLimit::MAX_PER + second, 1, "rateLimit.perSeconds"),
        ] {
            assert_eq!(RateLimit::new(count, per, burst).unwrap_err().field, field);
        }
    }
}
