//! Fair shares: tenants of one priority take turns.
//!
//! Every tenant has a fixed position on a ring. Within a priority, a claim goes around the ring: each tenant with
//! claimable jobs gets up to its [`allowance`] of jobs in one turn, its oldest first, and then the next tenant gets its
//! turn. So a tenant's first job waits at most one round of the others, however many jobs they have, and a tenant that
//! splits its jobs over queues, types or keys gains nothing. A tenant without jobs costs nothing and saves nothing up.
//!
//! [`Turns`] remembers between claims whose turn it is. It lives in the memory of a process: claims of each process are
//! fair, so their sum is. Losing it costs a tenant at most one turn.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest, Sha256};

use crate::{FieldError, Tenant};

/// The part of a claim that a tenant of weight 1 gets in one turn.
const TURNS_PER_CLAIM: usize = 16;
/// The most (scope, rank) pairs that a process remembers a turn for.
const MAX_REMEMBERED: usize = 10_000;

/// How large a tenant's share is, compared with the shares of the other tenants of the same priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u16);

impl Weight {
    /// The greatest weight.
    pub const MAX: i64 = 1_000;

    /// Validates a weight.
    pub fn new(weight: i64) -> Result<Self, FieldError> {
        match u16::try_from(weight) {
            Ok(number) if (1..=Self::MAX).contains(&weight) => Ok(Self(number)),
            _ => Err(FieldError::new("weight", format!("must be from 1 to {}, not {weight}", Self::MAX))),
        }
    }

    /// The weight as a number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self(1)
    }
}

/// The position of a tenant on the ring: a hash of its name, so that a process which starts anywhere on the ring favours
/// no names.
pub fn ring_position(tenant: &Tenant) -> i64 {
    let hash = Sha256::digest(tenant.as_str().as_bytes());
    i64::from_be_bytes(*hash.first_chunk().expect("the hash has 32 bytes"))
}

/// How many jobs a tenant of weight 1 gets in one turn of a claim of up to `limit` jobs.
///
/// A claim hands out its jobs at once, so a larger claim can have longer turns without delaying a tenant more.
pub const fn quantum(limit: usize) -> usize {
    limit.div_ceil(TURNS_PER_CLAIM)
}

/// How many jobs a tenant gets in one turn of a claim of up to `limit` jobs.
pub fn allowance(weight: Weight, limit: usize) -> usize {
    quantum(limit).saturating_mul(weight.get().into())
}

/// Whose turn it is within one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// The first ring position whose turn it may be.
    pub position: i64,
    /// How many jobs the tenant at exactly this position has had in its turn.
    pub taken: usize,
}

impl Turn {
    /// The turn after the tenant at `position` got `jobs` jobs without interruption, up to `allowance` in a turn.
    pub const fn after(self, position: i64, jobs: usize, allowance: usize) -> Self {
        let continues = position == self.position && self.taken < allowance;
        let before = if continues { self.taken } else { 0 };
        // A tenant without competitors has one turn after the other.
        match (before + jobs) % allowance {
            // The ring has no end: the greatest position is followed by the least.
            0 => Self { position: position.wrapping_add(1), taken: 0 },
            taken => Self { position, taken },
        }
    }
}

/// Whose turn it is, for each scope and priority. A scope is a hash of the names that claims ask for: claims of the same
/// names share their turns.
#[derive(Debug, Default)]
pub struct Turns {
    turns: HashMap<(u64, i16), Turn>,
    /// The remembered pairs, the oldest first.
    order: VecDeque<(u64, i16)>,
    /// Where a scope starts that is not remembered.
    start: i64,
}

impl Turns {
    /// Scopes start at this position. Each process starts at another one, so that processes which claim once and end
    /// favour no tenant.
    pub fn starting_at(start: i64) -> Self {
        Self { start, ..Self::default() }
    }

    /// Whose turn it is within a priority. `rank` is the negated priority.
    pub fn get(&self, scope: u64, rank: i16) -> Turn {
        self.turns.get(&(scope, rank)).copied().unwrap_or(Turn { position: self.start, taken: 0 })
    }

    /// Remembers whose turn it is. Forgets the pair that was remembered first if there are too many.
    pub fn set(&mut self, scope: u64, rank: i16, turn: Turn) {
        if self.turns.insert((scope, rank), turn).is_none() {
            self.order.push_back((scope, rank));
            if self.order.len() > MAX_REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.turns.remove(&oldest);
            }
        }
    }

    /// Notes the jobs of a claim, in order: the rank and the ring position of each, and the allowance of its tenant.
    pub fn note_claimed(&mut self, scope: u64, jobs: impl IntoIterator<Item = (i16, i64, usize)>) {
        let mut jobs = jobs.into_iter().peekable();
        while let Some((rank, position, allowance)) = jobs.next() {
            let mut run = 1;
            while jobs.next_if(|next| (next.0, next.1) == (rank, position)).is_some() {
                run += 1;
            }
            self.set(scope, rank, self.get(scope, rank).after(position, run, allowance));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_from_1_to_1000() {
        assert_eq!(Weight::new(1).unwrap(), Weight::default());
        assert_eq!(Weight::new(1_000).unwrap().get(), 1_000);
        for bad in [0, -1, 1_001, i64::MAX, i64::MIN] {
            assert_eq!(Weight::new(bad).unwrap_err().field, "weight");
        }
    }

    #[test]
    fn a_turn_lasts_for_the_allowance_and_a_large_claim_has_longer_turns() {
        assert_eq!([1, 16, 17, 1_000].map(quantum), [1, 1, 2, 63]);
        assert_eq!(allowance(Weight::new(3).unwrap(), 17), 6);
    }

    #[test]
    fn a_turn_goes_on_until_the_allowance_is_used_up() {
        let turn = Turn::default().after(7, 1, 3);
        assert_eq!(turn, Turn { position: 7, taken: 1 });
        assert_eq!(turn.after(7, 1, 3), Turn { position: 7, taken: 2 });
        assert_eq!(turn.after(7, 2, 3), Turn { position: 8, taken: 0 });
        assert_eq!(turn.after(7, 6, 3), Turn { position: 7, taken: 1 }, "a lone tenant is in its third turn");
        assert_eq!(turn.after(7, 1, 1), Turn { position: 8, taken: 0 }, "its weight was lowered");
        assert_eq!(turn.after(9, 2, 3), Turn { position: 9, taken: 2 }, "another tenant begins its own turn");
        assert_eq!(turn.after(i64::MAX, 3, 3), Turn { position: i64::MIN, taken: 0 });
    }

    #[test]
    fn the_ring_position_never_changes() {
        // Stored with every ready batch, and computed in SQL, too.
        assert_eq!(ring_position(&Tenant::trusted("default")), 0x37a8_eec1_ce19_687d);
    }

    #[test]
    fn remembered_turns_are_bounded() {
        let mut turns = Turns::starting_at(5);
        for scope in 0..=MAX_REMEMBERED as u64 {
            turns.set(scope, 0, Turn { position: 1, taken: 0 });
        }
        assert_eq!(turns.turns.len(), MAX_REMEMBERED);
        assert_eq!(turns.get(0, 0), Turn { position: 5, taken: 0 }, "the oldest is forgotten");
        assert_eq!(turns.get(1, 0), Turn { position: 1, taken: 0 });
    }
}
