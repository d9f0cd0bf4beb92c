//! Jitter that every node computes the same way.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::ScheduleName;
use crate::Timestamp;

/// How long after its nominal time an occurrence is due: uniform over `[0, max)`, in whole microseconds.
///
/// It is a hash of the schedule's name and the nominal time, so a new leader delays an occurrence exactly as the
/// previous one did.
pub fn jitter(schedule: &ScheduleName, nominal: Timestamp, max: Duration) -> Duration {
    let mut hash = Sha256::new();
    hash.update(nominal.as_nanosecond().to_be_bytes());
    hash.update(schedule.as_str().as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&hash.finalize()[..8]);
    // The upper half of a 64-bit product is uniform, without the bias of a remainder.
    let max = u64::try_from(max.as_micros()).unwrap_or(u64::MAX);
    let share = (u128::from(u64::from_be_bytes(head)) * u128::from(max)) >> 64;
    Duration::from_micros(u64::try_from(share).unwrap_or(max))
}
