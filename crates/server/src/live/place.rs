//! Who may follow jobs, and for how long: there are so many places, a key has no more than its share of them, and loses them soon after
//! it was taken back or has ended.
//!
//! A server without keys listens on loopback alone, where all are one: there is nobody to share with.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use orchestrix_api::Code;
use orchestrix_core::KeyId;
use orchestrix_store::{KeyRecord, Store};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use crate::{ServerOptions, auth::caller::Caller, refusal::Refusal};

/// The longest between two looks at a key whose holder follows jobs.
const LONGEST: Duration = Duration::from_secs(15);
/// How long what was seen of a key is believed by all who came with it, and how long a look at it may take.
const FRESH: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);

/// All places.
pub(crate) struct Places {
    store: Arc<dyn Store>,
    free: Arc<Semaphore>,
    most: usize,
    share: usize,
    /// How often each key is looked at.
    every: Duration,
    /// Keys that have any.
    keys: Mutex<HashMap<KeyId, Held>>,
}

#[derive(Default)]
struct Held {
    places: usize,
    /// Whether it was good when it was last looked at.
    seen: Option<(Instant, bool)>,
}

/// The right to follow jobs; held for as long as one does.
pub(super) struct Place {
    places: Arc<Places>,
    key: Option<KeyId>,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(crate) fn new(store: Arc<dyn Store>, options: &ServerOptions) -> Arc<Self> {
        Arc::new(Self {
            store,
            free: Arc::new(Semaphore::new(options.live)),
            most: options.live,
            share: options.live_share.max(1),
            every: options.live_ping.min(LONGEST),
            keys: Mutex::default(),
        })
    }

    /// Takes a place, if there is one for this caller.
    pub(super) fn take(self: &Arc<Self>, caller: &Caller) -> Result<Place, Refusal> {
        let too_many = |_| Refusal::new(Code::RateLimited, "more follow jobs than this server allows; try again later");
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(too_many)?;
        let key = key_of(caller);
        if let Some(key) = &key {
            let mut keys = self.lock();
            let held = keys.entry(key.clone()).or_default();
            if held.places >= self.share {
                return Err(Refusal::new(
                    Code::RateLimited,
                    "more follow jobs with this key than its share of this server; try again later",
                ));
            }
            held.places += 1;
        }
        Ok(Place { places: Arc::clone(self), key, _permit: permit })
    }

    /// Waits until nobody follows jobs any more.
    pub(crate) async fn cleared(&self) {
        let _ = self.free.acquire_many(u32::try_from(self.most).unwrap_or(u32::MAX)).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, Held>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// How often to ask whether the place is still good.
    pub(super) fn every(&self) -> Duration {
        self.places.every
    }

    /// Whether whoever has it may still follow. While the store is away he keeps it: there is nothing to be told either.
    pub(super) async fn is_good(&self) -> bool {
        let Some(key) = &self.key else { return true };
        let seen = self.places.lock().get(key).and_then(|held| held.seen);
        if let Some((at, good)) = seen
            && at.elapsed() < FRESH
        {
            return good;
        }
        let asked_at = Instant::now();
        match timeout(PATIENCE, self.places.store.key(key)).await {
            Ok(Ok(record)) => {
                let good = record.as_ref().is_some_and(KeyRecord::valid);
                if let Some(held) = self.places.lock().get_mut(key) {
                    held.seen = Some((asked_at, good));
                }
                good
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "the key of one who follows jobs could not be looked at");
                true
            }
            Err(_) => true,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(key) = &self.key else { return };
        let mut keys = self.places.lock();
        if let Some(held) = keys.get_mut(key) {
            held.places -= 1;
            if held.places == 0 {
                keys.remove(key);
            }
        }
    }
}

// Whoever shows a key is called by it.
fn key_of(caller: &Caller) -> Option<KeyId> {
    KeyId::new(caller.name().strip_prefix("key:")?).ok()
}
