//! What was seen of keys lately, good ones and ids that are nobody's, each believed for a while.
//!
//! It is of ids, not of who showed them: a wrong secret neither makes nor unmakes anything that is remembered here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::KeyId;
use orchestrix_store::{KeyDigest, KeyRecord};

use super::{bucket::Bucket, caller::Caller, secret};
use crate::refusal::Refusal;

/// How long what was seen of a key is believed.
pub(super) const FRESH: Duration = Duration::from_millis(1_500);
/// After how long it is looked at again while it is still believed, so that whoever uses it does not wait.
pub(super) const AGAIN: Duration = Duration::from_millis(1_000);
/// How long it is remembered for requests that need nothing of the store, should that be away.
pub(super) const REMEMBERED: Duration = Duration::from_secs(3_600);
/// The most of a kind that are remembered; with more, those that matter least are forgotten.
pub(super) const MOST: usize = 10_000;

/// A key that was good when it was looked at.
pub(super) struct Known {
    pub(super) again: Instant,
    pub(super) until: Instant,
    /// Until when it is good enough while the store is away: no longer than it lasts.
    pub(super) remembered: Instant,
    digest: KeyDigest,
    caller: Caller,
    bucket: Option<Arc<Mutex<Bucket>>>,
}

impl Known {
    /// Whether this is what its secret comes to.
    pub(super) fn is(&self, digest: &KeyDigest) -> bool {
        secret::same(&self.digest, digest)
    }

    /// Its holder, if it is not used too often.
    pub(super) fn take(&self, now: Instant) -> Result<Caller, Refusal> {
        match self.bucket.as_ref().map_or(Ok(()), |bucket| lock(bucket).take(now)) {
            Ok(()) => Ok(self.caller.clone()),
            Err(wait) => Err(Refusal::wait("the key is used more often than it may be", wait)),
        }
    }
}

/// What is believed of an id.
pub(super) enum Belief {
    Good(Arc<Known>),
    /// There is no such key, or not any more.
    Nobodys,
    Unknown,
}

#[derive(Default)]
pub(super) struct Memory {
    pub(super) good: Mutex<HashMap<KeyId, Arc<Known>>>,
    // Apart from those that are good: they are not lost to whoever makes up ids.
    nobodys: Mutex<HashMap<KeyId, Instant>>,
}

impl Memory {
    /// What is believed now.
    pub(super) fn of(&self, id: &KeyId, now: Instant) -> Belief {
        let good = lock(&self.good).get(id).filter(|known| known.until > now).cloned();
        match good {
            Some(known) => Belief::Good(known),
            None if lock(&self.nobodys).get(id).is_some_and(|until| *until > now) => Belief::Nobodys,
            None => Belief::Unknown,
        }
    }

    /// A key that was good not long ago, for when the store cannot be asked.
    pub(super) fn remembered(&self, id: &KeyId, now: Instant) -> Option<Arc<Known>> {
        lock(&self.good).get(id).filter(|known| known.remembered > now).cloned()
    }

    /// Forgets a key that was just taken back. What looks show that began before is not kept either: see [`Memory::keep`].
    pub(super) fn forget(&self, id: &KeyId) {
        let mut good = lock(&self.good);
        good.remove(id);
        self.is_nobodys(id, Instant::now());
    }

    fn is_nobodys(&self, id: &KeyId, seen_at: Instant) {
        let mut nobodys = lock(&self.nobodys);
        make_room(&mut nobodys, |until| *until);
        let until = nobodys.entry(id.clone()).or_insert(seen_at + FRESH);
        *until = (*until).max(seen_at + FRESH);
    }

    /// Whether it was good when it was last looked at, however long ago.
    pub(super) fn has_met(&self, id: &KeyId) -> bool {
        lock(&self.good).contains_key(id)
    }

    /// Keeps what was seen by a look that began at `asked_at`, if it is good, and if nothing was seen since that it is not.
    pub(super) fn keep(&self, id: &KeyId, record: Option<KeyRecord>, asked_at: Instant) -> Option<Arc<Known>> {
        let mut good = lock(&self.good);
        let before = good.remove(id);
        let Some(record) = record else {
            self.is_nobodys(id, asked_at);
            return None;
        };
        if lock(&self.nobodys).get(id).is_some_and(|until| *until >= asked_at + FRESH) {
            return None;
        }
        let lasts = |long: Duration| record.expires_in.map_or(long, |left| left.min(long));
        let (believed, remembered) = (lasts(FRESH), lasts(REMEMBERED));
        let KeyRecord { key, digest, .. } = record;
        let bucket = key.rate_limit.map(|limit| match before.and_then(|before| before.bucket.clone()) {
            // It goes on from where it stood.
            Some(bucket) if lock(&bucket).limit() == limit => bucket,
            _ => Arc::new(Mutex::new(Bucket::new(limit, asked_at))),
        });
        let caller = Caller::of(key.id, key.role, key.tenant);
        let again = asked_at + AGAIN.min(believed);
        let known = Arc::new(Known {
            again,
            until: asked_at + believed,
            remembered: asked_at + remembered,
            digest,
            caller,
            bucket,
        });
        make_room(&mut good, |known| known.until);
        good.insert(id.clone(), Arc::clone(&known));
        Some(known)
    }
}

fn make_room<T>(some: &mut HashMap<KeyId, T>, until: impl Fn(&T) -> Instant) {
    if some.len() >= MOST {
        let now = Instant::now();
        some.retain(|_, one| until(one) > now);
        if some.len() >= MOST {
            some.clear();
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl Memory {
    /// As if every id that is nobody's had been seen so long ago.
    pub(super) fn age_nobodys(&self, by: Duration) {
        lock(&self.nobodys).values_mut().for_each(|until| *until -= by);
    }
}
