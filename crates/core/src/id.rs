//! The identities of jobs, and of operations on many of them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{FieldError, Timestamp};

/// A job's identity: a UUID v7, so ids sort by the time they were made.
///
/// The time inside is the maker's and is only good for placing history rows near each other; every decision about
/// time uses the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(Uuid);

impl JobId {
    /// Makes an id for `now` from 80 random bits.
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Takes an id that came from a store.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The id as a plain UUID.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

/// Makes ids that only rise, so that jobs recorded together are claimed in the order they were given.
#[derive(Debug, Default)]
pub struct JobIds {
    last: u128,
}

impl JobIds {
    /// Begins with nothing made.
    pub const fn new() -> Self {
        Self { last: 0 }
    }

    /// Makes the next id: of `now` and 80 random bits, or right after the last one if that would not be greater.
    pub fn next(&mut self, now: Timestamp, random: [u8; 10]) -> JobId {
        self.last = JobId::new(now, random).0.as_u128().max(self.last + 1);
        JobId(Uuid::from_u128(self.last))
    }
}

/// The identity of an operation: a UUID v7 like a [`JobId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationId(Uuid);

impl OperationId {
    /// Makes an id for `now` from 80 random bits; greater than `last`, so that ids sort as they were made.
    pub fn after(last: Option<Self>, now: Timestamp, random: [u8; 10]) -> Self {
        let floor = last.map_or(0, |last| last.0.as_u128().saturating_add(1));
        Self(Uuid::from_u128(JobId::new(now, random).0.as_u128().max(floor)))
    }

    /// Takes an id that came from a store.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The id as a plain UUID.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for OperationId {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        match Uuid::try_parse(text) {
            Ok(uuid) => Ok(Self(uuid)),
            Err(_) => Err(FieldError::new("operationId", "must be a UUID")),
        }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        match Uuid::try_parse(text) {
            Ok(uuid) => Ok(Self(uuid)),
            Err(_) => Err(FieldError::new("jobId", "must be a UUID")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_operation_comes_after_the_last_even_in_the_same_moment() {
        let now = Timestamp::from_millisecond(1_700_000_000_000).expect("a time");
        let first = OperationId::after(None, now, [0xff; 10]);
        let second = OperationId::after(Some(first), now, [0; 10]);
        assert!(second > first);
        assert_eq!(second.to_string().parse(), Ok(second));
    }

    proptest! {
        #[test]
        fn ids_only_rise_whatever_the_clock_does(steps in proptest::collection::vec((0i64..3, any::<[u8; 10]>()), 1..200)) {
            let mut ids = JobIds::new();
            let mut last = None;
            for (millis, random) in steps {
                let now = Timestamp::from_millisecond(1_700_000_000_000 + millis).expect("a time");
                let id = ids.next(now, random);
                prop_assert!(last.is_none_or(|last| id > last));
                prop_assert_eq!(id.as_uuid().get_version_num(), 7);
                last = Some(id);
            }
        }
    }
}
