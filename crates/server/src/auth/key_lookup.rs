//! Lookups of keys in the store. Concurrent requests with one id share one lookup, and the number of concurrent
//! lookups is bounded.
//!
//! Each class of lookups has its own bounded queue. However many ids clients make up, they use a few connections of
//! the store at most, and lookups of the other classes do not wait for them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use orchestrix_api::Code;
use orchestrix_core::KeyId;
use orchestrix_store::{KeyRecord, Result, Store, StoreError};
use tokio::sync::watch;

use super::key_cache::{CachedKey, KeyCache, TTL, lock};
use crate::{
    api_error::ApiError,
    bounded_queue::{BoundedQueue, Slot},
};

/// The longest lookup, including its wait in the queue.
pub(super) const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The queue that a lookup waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LookupClass {
    /// The key was valid at its last lookup.
    Known,
    /// The id was never seen here.
    New,
    /// As `New`, from an address that sent too many invalid keys.
    Suspicious,
}

impl LookupClass {
    const ALL: [Self; 3] = [Self::Known, Self::New, Self::Suspicious];

    /// The most lookups that run at once, and the most that wait.
    pub(super) const fn limits(self) -> (usize, usize) {
        match self {
            Self::Known | Self::New => (4, 1_000),
            Self::Suspicious => (2, 100),
        }
    }
}

/// `None` while the lookup runs; then the key if it is valid, or the error.
type LookupResult = Option<Result<Option<Arc<CachedKey>>>>;

pub(super) struct KeyLookup {
    store: Arc<dyn Store>,
    cache: Arc<KeyCache>,
    in_flight: Mutex<HashMap<(KeyId, LookupClass), InFlight>>,
    queues: [BoundedQueue; 3],
}

struct InFlight {
    started_at: Instant,
    result: watch::Receiver<LookupResult>,
}

impl KeyLookup {
    pub(super) fn new(store: Arc<dyn Store>, cache: Arc<KeyCache>) -> Arc<Self> {
        let queues = LookupClass::ALL.map(|class| {
            let (concurrency, backlog) = class.limits();
            BoundedQueue::new(concurrency, backlog)
        });
        Arc::new(Self { store, cache, in_flight: Mutex::default(), queues })
    }

    /// Looks a key up and waits for the result: the key if it is valid.
    pub(super) async fn lookup(
        self: &Arc<Self>,
        id: &KeyId,
        class: LookupClass,
    ) -> std::result::Result<Option<Arc<CachedKey>>, ApiError> {
        let shut_down = || ApiError::new(Code::Unavailable, "the server is shutting down; try again later");
        let mut result = self.start(id, class)?;
        // This needs no timeout of its own: a lookup ends within LOOKUP_TIMEOUT.
        let result = result.wait_for(Option::is_some).await.map_err(|_| shut_down())?;
        match result.as_ref().ok_or_else(shut_down)? {
            Ok(key) => Ok(key.clone()),
            Err(error) => Err(error.replicate().into()),
        }
    }

    /// Starts a lookup, or joins the one that runs. Fails with 429 if the queue is full.
    pub(super) fn start(
        self: &Arc<Self>,
        id: &KeyId,
        class: LookupClass,
    ) -> std::result::Result<watch::Receiver<LookupResult>, ApiError> {
        let mut in_flight = lock(&self.in_flight);
        // An older lookup may show a key that was revoked more than a TTL ago.
        if let Some(lookup) = in_flight.get(&(id.clone(), class)).filter(|lookup| lookup.started_at.elapsed() < TTL) {
            return Ok(lookup.result.clone());
        }
        let slot = self.queues[class as usize].try_enter().ok_or_else(|| {
            ApiError::rate_limited("too many unknown keys are being looked up; try again", Duration::from_secs(1))
        })?;
        let (sender, result) = watch::channel(None);
        in_flight.insert((id.clone(), class), InFlight { started_at: Instant::now(), result: result.clone() });
        tokio::spawn(Arc::clone(self).run(id.clone(), class, slot, sender));
        Ok(result)
    }

    // A task of its own, so that it completes even if the request that started it is cancelled.
    async fn run(self: Arc<Self>, id: KeyId, class: LookupClass, slot: Slot, sender: watch::Sender<LookupResult>) {
        let guard = InFlightGuard { lookup: &self, key: (id, class), result: sender.subscribe() };
        let fetched = tokio::time::timeout(LOOKUP_TIMEOUT, self.fetch(&guard.key.0, slot)).await;
        let fetched = fetched.unwrap_or_else(|_| Err(StoreError::Unavailable("the key lookup timed out".into())));
        let result = fetched.map(|(record, started_at)| self.cache.insert(&guard.key.0, record, started_at));
        drop(guard);
        sender.send_replace(Some(result));
    }

    async fn fetch(&self, id: &KeyId, slot: Slot) -> Result<(Option<KeyRecord>, Instant)> {
        let shut_down = |_| StoreError::Unavailable("the server is shutting down".into());
        let _permit = slot.acquire().await.map_err(shut_down)?;
        let started_at = Instant::now();
        Ok((self.store.key(id).await?.filter(KeyRecord::valid), started_at))
    }
}

/// Removes a lookup from the ones in flight, however it ends, unless a newer lookup has replaced it.
struct InFlightGuard<'a> {
    lookup: &'a KeyLookup,
    key: (KeyId, LookupClass),
    result: watch::Receiver<LookupResult>,
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.lookup.in_flight);
        if in_flight.get(&self.key).is_some_and(|lookup| lookup.result.same_channel(&self.result)) {
            in_flight.remove(&self.key);
        }
    }
}

#[cfg(test)]
impl KeyLookup {
    /// Blocks all lookups of a class until the returned value is dropped.
    pub(super) async fn block(&self, class: LookupClass) -> tokio::sync::SemaphorePermit<'_> {
        let (concurrency, _) = class.limits();
        self.queues[class as usize].block(concurrency).await
    }

    /// Makes a running lookup older.
    pub(super) fn age(&self, id: &KeyId, class: LookupClass, by: Duration) {
        lock(&self.in_flight).get_mut(&(id.clone(), class)).unwrap().started_at -= by;
    }

    /// The number of lookups that run or wait.
    pub(super) fn count(&self) -> usize {
        self.queues.iter().map(BoundedQueue::len).sum()
    }
}
