//! Authenticates requests by API key. The module docs of `auth` explain the steps and the limits.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header};
use orchestrix_api::Code;
use orchestrix_core::KeyId;
use orchestrix_store::Store;

use super::{
    bearer_key::BearerKey,
    failed_attempts::FailedAttempts,
    key_cache::{CacheEntry, KeyCache},
    key_lookup::{KeyLookup, LookupClass},
    principal::Principal,
};
use crate::api_error::ApiError;

/// How often the key of a waiting request is checked again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

const MISSING_KEY: &str = "send a key as Authorization: Bearer KEY";
const INVALID_KEY: &str = "the key is unknown, expired or revoked";

/// Whether a request uses the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreUse {
    Required,
    /// The request can be served while the store is unavailable.
    None,
}

pub(crate) struct Authenticator {
    cache: Arc<KeyCache>,
    lookup: Arc<KeyLookup>,
    failed_attempts: FailedAttempts,
}

impl Authenticator {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let cache = Arc::<KeyCache>::default();
        let lookup = KeyLookup::new(store, Arc::clone(&cache));
        Self { lookup, cache, failed_attempts: FailedAttempts::default() }
    }

    /// The holder of the request's key. While the store is unavailable, a request that does not use it is
    /// authenticated by a key that was valid within the last hour.
    pub(crate) async fn authenticate(
        &self,
        headers: &HeaderMap,
        client: Option<IpAddr>,
        store_use: StoreUse,
    ) -> Result<Principal, ApiError> {
        if !headers.contains_key(header::AUTHORIZATION) {
            // A request without a key is no failed attempt.
            return Err(ApiError::new(Code::Unauthenticated, MISSING_KEY));
        }
        let Some(token) = bearer_token(headers) else { return Err(self.reject(client, MISSING_KEY)) };
        let Some(key) = BearerKey::parse(token) else { return Err(self.reject(client, INVALID_KEY)) };
        let digest = key.digest();
        let cached = match self.cached(&key.id) {
            CacheEntry::Valid(cached) => Some(cached),
            CacheEntry::Invalid => None,
            CacheEntry::Missing => match self.lookup.lookup(&key.id, self.lookup_class(&key.id, client)).await {
                Err(error) if store_use == StoreUse::None && error.problem.code == Code::Unavailable => {
                    let cached = self.cache.get_for_outage(&key.id, Instant::now());
                    Some(cached.filter(|cached| cached.matches(&digest)).ok_or(error)?)
                }
                result => result?,
            },
        };
        match cached.filter(|cached| cached.matches(&digest)) {
            Some(cached) => cached.admit(Instant::now()),
            None => Err(self.reject(client, INVALID_KEY)),
        }
    }

    /// Checks that the caller's key is still valid, as of 1.5 s ago at most. A caller without a key passes.
    pub(crate) async fn recheck(&self, caller: &Principal) -> Result<(), ApiError> {
        let Some(id) = caller.key() else { return Ok(()) };
        let valid = match self.cached(id) {
            CacheEntry::Valid(_) => true,
            CacheEntry::Invalid => false,
            CacheEntry::Missing => self.lookup.lookup(id, LookupClass::Known).await?.is_some(),
        };
        match valid {
            true => Ok(()),
            false => Err(invalid_key()),
        }
    }

    /// Whether the caller's key has been found revoked or expired. Returns `false` while the store is unavailable.
    pub(crate) async fn is_revoked(&self, caller: &Principal) -> bool {
        match self.recheck(caller).await {
            Err(error) if error.problem.code == Code::Unauthenticated => true,
            Err(error) => {
                tracing::debug!(problem = ?error.problem, "could not recheck the key of a waiting request");
                false
            }
            Ok(()) => false,
        }
    }

    /// Waits until the caller's key is revoked or expires, and returns the 401. Never completes for a caller without a
    /// key.
    pub(crate) async fn revoked(&self, caller: &Principal) -> ApiError {
        if caller.key().is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(RECHECK_INTERVAL).await;
            if self.is_revoked(caller).await {
                return invalid_key();
            }
        }
    }

    /// Removes a key from the cache that was just revoked on this server.
    pub(crate) fn forget(&self, id: &KeyId) {
        self.cache.revoke(id);
    }

    // The cache entry of an id. Starts a refresh in the background if the entry is about to expire.
    fn cached(&self, id: &KeyId) -> CacheEntry {
        let now = Instant::now();
        let entry = self.cache.get(id, now);
        if let CacheEntry::Valid(cached) = &entry
            && cached.refresh_at <= now
        {
            // If the refresh fails, the entry expires and the next request reports the error.
            let _ = self.lookup.start(id, LookupClass::Known);
        }
        entry
    }

    fn lookup_class(&self, id: &KeyId, client: Option<IpAddr>) -> LookupClass {
        match self.cache.was_valid(id) {
            true => LookupClass::Known,
            false if client.is_some_and(|client| self.failed_attempts.is_over_limit(client, Instant::now())) => {
                LookupClass::Suspicious
            }
            false => LookupClass::New,
        }
    }

    // Counts a failed attempt, and answers 401, or 429 above the limit.
    fn reject(&self, client: Option<IpAddr>, detail: &str) -> ApiError {
        match client.map_or(Ok(()), |client| self.failed_attempts.record(client, Instant::now())) {
            Ok(()) => ApiError::new(Code::Unauthenticated, detail),
            Err(wait) => ApiError::rate_limited("too many invalid keys from this address; try again later", wait),
        }
    }
}

fn invalid_key() -> ApiError {
    ApiError::new(Code::Unauthenticated, INVALID_KEY)
}

// The token of the one Authorization header. Two headers would leave open which one counts.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let text = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests;
