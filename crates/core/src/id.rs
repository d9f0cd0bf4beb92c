//! Ids of jobs and of bulk operations.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{FieldError, Timestamp};

/// The id of a job: a UUID v7, so ids sort by the time they were made.
///
/// The time in an id comes from the clock of the process that made it. It only keeps rows of one time near each other
/// and bounds searches by time. Every decision about time uses the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(Uuid);

impl JobId {
    /// Makes an id for `now` from 80 random bits.
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// The smallest id of the millisecond of `time`: ids made earlier are less, ids made then or later are not.
    pub fn floor(time: Timestamp) -> Self {
        Self::new(time, [0; 10])
    }

    /// Wraps an id that came from a store.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The id as a plain UUID.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }

    /// A page cursor between two ids: greater than `below` and not greater than `self`.
    ///
    /// It is the common prefix of both ids and one bit more, so it reveals neither id to the client that receives it.
    pub fn cursor_above(self, below: Self) -> Self {
        let (own, below) = (self.0.as_u128(), below.0.as_u128());
        let common_bits = (own ^ below).leading_zeros();
        Self(Uuid::from_u128(own & !u128::MAX.checked_shr(common_bits + 1).unwrap_or(0)))
    }
}

/// Generates increasing ids, so that jobs of one call are claimed in the order in which they were given.
///
/// Consecutive ids are a random distance apart, so no id can be guessed from its neighbours.
///
/// If the clock goes back, ids count on from the last one until the clock catches up.
/// If it goes back by more than [`JobIds::MAX_AHEAD`], the earlier time was wrong and ids follow the clock again:
/// searches by time rely on the time in ids, and one wrong reading must not spoil all later ids.
#[derive(Debug, Default)]
pub struct JobIds {
    last: u128,
}

/// The bits of a UUID v7 besides its time, version and variant: 12 before the variant and 62 after it.
const FREE_BITS: u32 = 74;

impl JobIds {
    /// How far the time in an id may be ahead of the clock.
    pub const MAX_AHEAD: Duration = Duration::from_secs(60);

    /// A generator without a last id.
    pub const fn new() -> Self {
        Self { last: 0 }
    }

    /// Makes the next id from `now` and 80 random bits. If that id would not be greater than the last, the next id is
    /// the last plus a random step of up to 2^40.
    pub fn next(&mut self, now: Timestamp, random: [u8; 10]) -> JobId {
        let fresh = JobId::new(now, random).0.as_u128();
        let [a, b, c, d, e, ..] = random;
        let ahead = (self.last >> 80).saturating_sub(fresh >> 80);
        self.last = match fresh > self.last || ahead > Self::MAX_AHEAD.as_millis() {
            true => fresh,
            false => later(self.last, 1 + u64::from_be_bytes([0, 0, 0, a, b, c, d, e])),
        };
        JobId(Uuid::from_u128(self.last))
    }
}

// Adds to the free bits; a carry goes into the milliseconds.
fn later(id: u128, by: u64) -> u128 {
    let free = (id >> 64 & 0xfff) << 62 | id & (u128::MAX >> 66);
    let count = (id >> 80 << FREE_BITS | free) + u128::from(by);
    let (millis, a, b) = (count >> FREE_BITS, count >> 62 & 0xfff, count & (u128::MAX >> 66));
    millis << 80 | 0x7 << 76 | a << 64 | 0b10 << 62 | b
}

/// The id of a bulk operation: a UUID v7 like a [`JobId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationId(Uuid);

impl OperationId {
    /// Makes an id for `now` from 80 random bits, greater than `last`, so that ids sort in the order they were made.
    pub fn after(last: Option<Self>, now: Timestamp, random: [u8; 10]) -> Self {
        let floor = last.map_or(0, |last| last.0.as_u128().saturating_add(1));
        Self(Uuid::from_u128(JobId::new(now, random).0.as_u128().max(floor)))
    }

    /// Wraps an id that came from a store.
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
    fn an_operation_id_is_greater_than_the_last_even_within_a_millisecond() {
        let now = Timestamp::from_millisecond(1_700_000_000_000).expect("a time");
        let first = OperationId::after(None, now, [0xff; 10]);
        let second = OperationId::after(Some(first), now, [0; 10]);
        assert!(second > first);
        assert_eq!(second.to_string().parse(), Ok(second));
    }

    fn free_bits(id: u128) -> u128 {
        let bits: String = format!("{id:0128b}")
            .char_indices()
            .filter(|(i, _)| !matches!(i, 48..52 | 64..66))
            .map(|(_, bit)| bit)
            .collect();
        u128::from_str_radix(&bits, 2).expect("bits")
    }

    #[test]
    fn the_cursor_between_neighbouring_ids_is_the_greater_one() {
        let id = |number| JobId(Uuid::from_u128(number));
        assert_eq!(id(8).cursor_above(id(7)), id(8));
        assert_eq!(id(9).cursor_above(id(8)), id(9));
        assert_eq!(id(0b1011_0111).cursor_above(id(0b1010_1100)), id(0b1011_0000));
        assert_eq!(id(u128::MAX).cursor_above(id(0)), id(1 << 127));
    }

    #[test]
    fn ids_follow_the_clock_again_after_it_was_far_ahead() {
        let at = |millis: u64| Timestamp::from_millisecond(1_700_000_000_000 + millis as i64).expect("a time");
        let most = u64::try_from(JobIds::MAX_AHEAD.as_millis()).expect("a minute");
        let mut ids = JobIds::new();
        let ahead = ids.next(at(most), [7; 10]);
        let waits = ids.next(at(0), [7; 10]);
        assert!(waits > ahead && waits < JobId::floor(at(most + 1)), "ids count on");
        let far = ids.next(at(2 * most + 1), [7; 10]);
        assert!(far > waits);
        assert_eq!(ids.next(at(most), [7; 10]), JobId::new(at(most), [7; 10]), "ids follow the clock again");
    }

    proptest! {
        #[test]
        fn the_floor_of_a_time_separates_earlier_ids_from_later_ones(
            made in 0i64..3, floor in 0i64..3, random in any::<[u8; 10]>()
        ) {
            let at = |millis| Timestamp::from_millisecond(1_700_000_000_000 + millis).expect("a time");
            for random in [random, [0; 10], [0xff; 10]] {
                prop_assert_eq!(JobId::new(at(made), random) >= JobId::floor(at(floor)), made >= floor);
            }
        }

        #[test]
        fn ids_increase_whatever_the_clock_does(steps in proptest::collection::vec((0i64..3, any::<[u8; 10]>()), 1..200)) {
            let mut ids = JobIds::new();
            let mut last = None;
            for (millis, random) in steps {
                let now = Timestamp::from_millisecond(1_700_000_000_000 + millis).expect("a time");
                let id = ids.next(now, random);
                prop_assert!(last.is_none_or(|last| id > last));
                prop_assert_eq!(id.as_uuid().get_version_num(), 7);
                prop_assert_eq!(id.as_uuid().get_variant(), uuid::Variant::RFC4122);
                last = Some(id);
            }
        }

        #[test]
        fn ids_of_one_millisecond_are_a_random_distance_apart(random in proptest::collection::vec(any::<[u8; 10]>(), 2..50)) {
            let now = Timestamp::from_millisecond(1_700_000_000_000).expect("a time");
            let mut ids = JobIds::new();
            // The last id of its millisecond, so that later ones carry into the next.
            let first = ids.next(now, [0xff; 10]).as_uuid().as_u128();
            let mut expected = first;
            for random in random {
                let id = ids.next(now, random).as_uuid().as_u128();
                let step = random[..5].iter().fold(0, |step, byte| step << 8 | u128::from(*byte)) + 1;
                // Compared without version and variant.
                prop_assert_eq!(free_bits(id), free_bits(expected) + step);
                expected = id;
            }
            prop_assert_eq!(first >> 80, 1_700_000_000_000);
            prop_assert_eq!(expected >> 80, 1_700_000_000_001);
        }

        #[test]
        fn a_cursor_between_two_ids_reveals_neither(a in any::<u128>(), b in any::<u128>()) {
            prop_assume!(a != b);
            let id = |number| JobId(Uuid::from_u128(number));
            let (above, below) = (a.max(b), a.min(b));
            let cursor = id(above).cursor_above(id(below));
            prop_assert!(id(below) < cursor && cursor <= id(above));
            // No bit after the first one that differs has any influence.
            let same = u128::MAX.checked_shr((above ^ below).leading_zeros() + 1).unwrap_or(0);
            prop_assert_eq!(cursor, id(above | same).cursor_above(id(below & !same)));
        }
    }
}
