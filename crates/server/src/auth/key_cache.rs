//! The cache of looked-up keys: valid keys, and ids without a valid key.
//!
//! Entries are keyed by the id, and are written only by lookups and revocations. A request with a wrong secret changes
//! nothing here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::KeyId;
use orchestrix_store::{KeyDigest, KeyRecord};

use super::{bearer_key::digests_match, principal::Principal, token_bucket::TokenBucket};
use crate::api_error::ApiError;

/// How long an entry is valid.
pub(super) const TTL: Duration = Duration::from_millis(1_500);
/// The age from which a valid entry is refreshed in the background, so that a key in use never waits for the store.
pub(super) const REFRESH_AFTER: Duration = Duration::from_millis(1_000);
/// How long a valid key is kept for requests that do not use the store, while the store is unavailable.
pub(super) const OUTAGE_TTL: Duration = Duration::from_secs(3_600);
/// The most entries of a kind.
pub(super) const CAPACITY: usize = 10_000;

/// A key that was valid when it was looked up.
pub(super) struct CachedKey {
    pub(super) refresh_at: Instant,
    pub(super) expires_at: Instant,
    /// Until when the key is accepted during an outage: never beyond its own expiry.
    pub(super) outage_expires_at: Instant,
    digest: KeyDigest,
    principal: Principal,
    rate_limiter: Option<Arc<Mutex<TokenBucket>>>,
}

impl CachedKey {
    /// Whether the digest is that of the key's secret.
    pub(super) fn matches(&self, digest: &KeyDigest) -> bool {
        digests_match(&self.digest, digest)
    }

    /// The key's holder. Fails with 429 if the key exceeds its rate limit.
    pub(super) fn admit(&self, now: Instant) -> Result<Principal, ApiError> {
        match self.rate_limiter.as_ref().map_or(Ok(()), |limiter| lock(limiter).take(now)) {
            Ok(()) => Ok(self.principal.clone()),
            Err(wait) => Err(ApiError::rate_limited("the key exceeds its rate limit", wait)),
        }
    }
}

/// What the cache knows about an id.
pub(super) enum CacheEntry {
    Valid(Arc<CachedKey>),
    /// There is no valid key with this id.
    Invalid,
    Missing,
}

#[derive(Default)]
pub(super) struct KeyCache {
    pub(super) valid: Mutex<HashMap<KeyId, Arc<CachedKey>>>,
    // Separate, so that made-up ids cannot evict valid keys.
    invalid: Mutex<HashMap<KeyId, Instant>>,
}

impl KeyCache {
    /// The unexpired entry of an id.
    pub(super) fn get(&self, id: &KeyId, now: Instant) -> CacheEntry {
        let valid = lock(&self.valid).get(id).filter(|key| key.expires_at > now).cloned();
        match valid {
            Some(key) => CacheEntry::Valid(key),
            None if lock(&self.invalid).get(id).is_some_and(|expires_at| *expires_at > now) => CacheEntry::Invalid,
            None => CacheEntry::Missing,
        }
    }

    /// A key that was valid not long ago, for use while the store is unavailable.
    pub(super) fn get_for_outage(&self, id: &KeyId, now: Instant) -> Option<Arc<CachedKey>> {
        lock(&self.valid).get(id).filter(|key| key.outage_expires_at > now).cloned()
    }

    /// Marks a key as revoked. Results of lookups that began before do not restore it: see [`KeyCache::insert`].
    pub(super) fn revoke(&self, id: &KeyId) {
        let mut valid = lock(&self.valid);
        valid.remove(id);
        self.insert_invalid(id, Instant::now());
    }

    fn insert_invalid(&self, id: &KeyId, looked_up_at: Instant) {
        let mut invalid = lock(&self.invalid);
        make_room(&mut invalid, |expires_at| *expires_at);
        let expires_at = invalid.entry(id.clone()).or_insert(looked_up_at + TTL);
        *expires_at = (*expires_at).max(looked_up_at + TTL);
    }

    /// Whether the key was valid at its last lookup, however long ago.
    pub(super) fn was_valid(&self, id: &KeyId) -> bool {
        lock(&self.valid).contains_key(id)
    }

    /// Stores the result of a lookup that began at `started_at`. Returns the key if it is valid and was not found
    /// invalid since then.
    pub(super) fn insert(&self, id: &KeyId, record: Option<KeyRecord>, started_at: Instant) -> Option<Arc<CachedKey>> {
        let mut valid = lock(&self.valid);
        let previous = valid.remove(id);
        let Some(record) = record else {
            self.insert_invalid(id, started_at);
            return None;
        };
        if lock(&self.invalid).get(id).is_some_and(|expires_at| *expires_at >= started_at + TTL) {
            return None;
        }
        let until_expiry = |ttl: Duration| record.expires_in.map_or(ttl, |left| left.min(ttl));
        let (ttl, outage_ttl) = (until_expiry(TTL), until_expiry(OUTAGE_TTL));
        let KeyRecord { key, digest, .. } = record;
        let rate_limiter = key.rate_limit.map(|limit| match previous.and_then(|key| key.rate_limiter.clone()) {
            // A refresh must not refill the bucket.
            Some(limiter) if lock(&limiter).limit() == limit => limiter,
            _ => Arc::new(Mutex::new(TokenBucket::new(limit, started_at))),
        });
        let cached = Arc::new(CachedKey {
            refresh_at: started_at + REFRESH_AFTER.min(ttl),
            expires_at: started_at + ttl,
            outage_expires_at: started_at + outage_ttl,
            digest,
            principal: Principal::from_key(key.id, key.role, key.tenant),
            rate_limiter,
        });
        make_room(&mut valid, |key| key.expires_at);
        valid.insert(id.clone(), Arc::clone(&cached));
        Some(cached)
    }
}

// At capacity, evicts expired entries, and all of them if none is expired.
fn make_room<T>(entries: &mut HashMap<KeyId, T>, expires_at: impl Fn(&T) -> Instant) {
    if entries.len() >= CAPACITY {
        let now = Instant::now();
        entries.retain(|_, entry| expires_at(entry) > now);
        if entries.len() >= CAPACITY {
            entries.clear();
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl KeyCache {
    /// Makes all invalid ids older.
    pub(super) fn age_invalid(&self, by: Duration) {
        lock(&self.invalid).values_mut().for_each(|expires_at| *expires_at -= by);
    }
}
