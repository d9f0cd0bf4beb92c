//! The identities of jobs, and of operations on many of them.

use std::{fmt, str::FromStr, time::Duration};

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

    /// The least id of the millisecond of `time`: no id that was made earlier comes after it, and none that was made later before it.
    pub fn floor(time: Timestamp) -> Self {
        Self::new(time, [0; 10])
    }

    /// Takes an id that came from a store.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The id as a plain UUID.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }

    /// A place in the order of ids that `self` is not before and `below`, a lesser one, is: what both begin with, one bit more, and
    /// nothing after that. It parts them without telling either of them.
    pub fn parted_from(self, below: Self) -> Self {
        let (own, below) = (self.0.as_u128(), below.0.as_u128());
        let alike = (own ^ below).leading_zeros();
        Self(Uuid::from_u128(own & !u128::MAX.checked_shr(alike + 1).unwrap_or(0)))
    }
}

/// Makes ids that only rise, so that jobs recorded together are claimed in the order they were given. None can be told from its neighbours:
/// there are random bits between any two.
///
/// A clock that goes back is waited for by counting on. One that goes back by more than [`JobIds::MOST_AHEAD`] was wrong before, and ids begin
/// anew: jobs are looked for by the time in their ids, and a clock that was wrong once must not make all later ids wrong.
#[derive(Debug, Default)]
pub struct JobIds {
    last: u128,
}

/// Bits of a UUID v7 beside its time, its version and its variant: 12 before the variant and 62 after it.
const FREE_BITS: u32 = 74;

impl JobIds {
    /// How far the time in an id may be ahead of the clock it was made by.
    pub const MOST_AHEAD: Duration = Duration::from_secs(60);

    /// Begins with nothing made.
    pub const fn new() -> Self {
        Self { last: 0 }
    }

    /// Makes the next id: of `now` and 80 random bits, or, if that would not be greater, up to 2^40 after the last one.
    pub fn next(&mut self, now: Timestamp, random: [u8; 10]) -> JobId {
        let fresh = JobId::new(now, random).0.as_u128();
        let [a, b, c, d, e, ..] = random;
        let ahead = (self.last >> 80).saturating_sub(fresh >> 80);
        self.last = match fresh > self.last || ahead > Self::MOST_AHEAD.as_millis() {
            true => fresh,
            false => later(self.last, 1 + u64::from_be_bytes([0, 0, 0, a, b, c, d, e])),
        };
        JobId(Uuid::from_u128(self.last))
    }
}

// Counts in the free bits alone; what they cannot hold goes on in the milliseconds.
fn later(id: u128, by: u64) -> u128 {
    let free = (id >> 64 & 0xfff) << 62 | id & (u128::MAX >> 66);
    let count = (id >> 80 << FREE_BITS | free) + u128::from(by);
    let (millis, a, b) = (count >> FREE_BITS, count >> 62 & 0xfff, count & (u128::MAX >> 66));
    millis << 80 | 0x7 << 76 | a << 64 | 0b10 << 62 | b
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

    fn plain(id: u128) -> u128 {
        let bits: String = format!("{id:0128b}")
            .char_indices()
            .filter(|(i, _)| !matches!(i, 48..52 | 64..66))
            .map(|(_, bit)| bit)
            .collect();
        u128::from_str_radix(&bits, 2).expect("bits")
    }

    #[test]
    fn neighbours_are_parted_by_the_greater_one() {
        let id = |number| JobId(Uuid::from_u128(number));
        assert_eq!(id(8).parted_from(id(7)), id(8));
        assert_eq!(id(9).parted_from(id(8)), id(9));
        assert_eq!(id(0b1011_0111).parted_from(id(0b1010_1100)), id(0b1011_0000));
        assert_eq!(id(u128::MAX).parted_from(id(0)), id(1 << 127));
    }

    #[test]
    fn a_clock_that_was_far_ahead_once_leaves_no_trace() {
        let at = |millis: u64| Timestamp::from_millisecond(1_700_000_000_000 + millis as i64).expect("a time");
        let most = u64::try_from(JobIds::MOST_AHEAD.as_millis()).expect("a minute");
        let mut ids = JobIds::new();
        let ahead = ids.next(at(most), [7; 10]);
        let waits = ids.next(at(0), [7; 10]);
        assert!(waits > ahead && waits < JobId::floor(at(most + 1)), "it counts on");
        let far = ids.next(at(2 * most + 1), [7; 10]);
        assert!(far > waits);
        assert_eq!(ids.next(at(most), [7; 10]), JobId::new(at(most), [7; 10]), "it begins anew");
    }

    proptest! {
        #[test]
        fn the_floor_of_a_time_is_between_ids_before_and_after_it(
            made in 0i64..3, floor in 0i64..3, random in any::<[u8; 10]>()
        ) {
            let at = |millis| Timestamp::from_millisecond(1_700_000_000_000 + millis).expect("a time");
            for random in [random, [0; 10], [0xff; 10]] {
                prop_assert_eq!(JobId::new(at(made), random) >= JobId::floor(at(floor)), made >= floor);
            }
        }

        #[test]
        fn ids_only_rise_whatever_the_clock_does(steps in proptest::collection::vec((0i64..3, any::<[u8; 10]>()), 1..200)) {
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
        fn ids_of_one_moment_have_random_bits_between_them(random in proptest::collection::vec(any::<[u8; 10]>(), 2..50)) {
            let now = Timestamp::from_millisecond(1_700_000_000_000).expect("a time");
            let mut ids = JobIds::new();
            // So near to the end of its millisecond that those after it go on in the next.
            let first = ids.next(now, [0xff; 10]).as_uuid().as_u128();
            let mut expected = first;
            for random in random {
                let id = ids.next(now, random).as_uuid().as_u128();
                let step = random[..5].iter().fold(0, |step, byte| step << 8 | u128::from(*byte)) + 1;
                // Both as a count of steps, without version and variant.
                prop_assert_eq!(plain(id), plain(expected) + step);
                expected = id;
            }
            prop_assert_eq!(first >> 80, 1_700_000_000_000);
            prop_assert_eq!(expected >> 80, 1_700_000_000_001);
        }

        #[test]
        fn what_parts_two_ids_is_between_them_and_tells_neither(a in any::<u128>(), b in any::<u128>()) {
            prop_assume!(a != b);
            let id = |number| JobId(Uuid::from_u128(number));
            let (above, below) = (a.max(b), a.min(b));
            let parting = id(above).parted_from(id(below));
            prop_assert!(id(below) < parting && parting <= id(above));
            // Whatever comes after the first bit in which they differ makes no difference.
            let same = u128::MAX.checked_shr((above ^ below).leading_zeros() + 1).unwrap_or(0);
            prop_assert_eq!(parting, id(above | same).parted_from(id(below & !same)));
        }
    }
}
