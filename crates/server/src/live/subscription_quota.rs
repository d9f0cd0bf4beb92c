//! The quota of open subscriptions: a limit in total and per key. A subscription ends soon after its key is revoked or
//! expires.
//!
//! A server without keys has no limit per key: it listens on loopback, where all callers are one.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orchestrix_api::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    ServerOptions,
    api_error::ApiError,
    auth::{authenticator::Authenticator, principal::Principal},
    key_counts::KeyCounts,
};

/// The longest time between two checks of a subscriber's key.
const MAX_RECHECK_INTERVAL: Duration = Duration::from_secs(15);

pub(crate) struct SubscriptionQuota {
    authenticator: Arc<Authenticator>,
    available: Arc<Semaphore>,
    max: usize,
    max_per_key: usize,
    recheck_interval: Duration,
    per_key: Mutex<KeyCounts>,
}

/// The right to one subscription. Dropping it returns it to the quota.
pub(super) struct SubscriptionPermit {
    quota: Arc<SubscriptionQuota>,
    caller: Principal,
    _permit: OwnedSemaphorePermit,
}

impl SubscriptionQuota {
    pub(crate) fn new(authenticator: Arc<Authenticator>, options: &ServerOptions) -> Arc<Self> {
        Arc::new(Self {
            authenticator,
            available: Arc::new(Semaphore::new(options.max_subscriptions)),
            max: options.max_subscriptions,
            max_per_key: options.max_subscriptions_per_key.max(1),
            recheck_interval: options.ping_interval.min(MAX_RECHECK_INTERVAL),
            per_key: Mutex::default(),
        })
    }

    /// Takes a permit. Fails with 429 if the server's or the key's limit is reached.
    pub(super) fn acquire(self: &Arc<Self>, caller: &Principal) -> Result<SubscriptionPermit, ApiError> {
        let full = |_| ApiError::new(Code::RateLimited, "the server has too many subscriptions; try again later");
        let permit = Arc::clone(&self.available).try_acquire_owned().map_err(full)?;
        if let Some(key) = caller.key() {
            let mut per_key = self.lock();
            if per_key.get(key) >= self.max_per_key {
                return Err(ApiError::new(Code::RateLimited, "the key has too many subscriptions; try again later"));
            }
            per_key.add(key);
        }
        Ok(SubscriptionPermit { quota: Arc::clone(self), caller: caller.clone(), _permit: permit })
    }

    /// Waits until all permits are returned.
    pub(crate) async fn drain(&self) {
        let _ = self.available.acquire_many(u32::try_from(self.max).unwrap_or(u32::MAX)).await;
    }

    fn lock(&self) -> MutexGuard<'_, KeyCounts> {
        self.per_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SubscriptionPermit {
    /// How often to call [`Self::is_revoked`].
    pub(super) fn recheck_interval(&self) -> Duration {
        self.quota.recheck_interval
    }

    /// Whether the subscriber's key has been revoked or has expired. While the store is unavailable, subscriptions
    /// continue.
    pub(super) async fn is_revoked(&self) -> bool {
        self.quota.authenticator.is_revoked(&self.caller).await
    }
}

impl Drop for SubscriptionPermit {
    fn drop(&mut self) {
        if let Some(key) = self.caller.key() {
            self.quota.lock().remove(key);
        }
    }
}
