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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    ServerOptions,
    auth::{caller::Caller, keys::Keys},
    refusal::Refusal,
};

/// The longest between two looks at a key whose holder follows jobs.
const LONGEST: Duration = Duration::from_secs(15);

/// All places.
pub(crate) struct Places {
    looked_at_by: Arc<Keys>,
    free: Arc<Semaphore>,
    most: usize,
    share: usize,
    /// How often each key is looked at.
    every: Duration,
    /// Keys that have any, and how many.
    keys: Mutex<HashMap<KeyId, usize>>,
}

/// The right to follow jobs; held for as long as one does.
pub(super) struct Place {
    places: Arc<Places>,
    caller: Caller,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(crate) fn new(keys: Arc<Keys>, options: &ServerOptions) -> Arc<Self> {
        Arc::new(Self {
            looked_at_by: keys,
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
        if let Some(key) = caller.key() {
            let mut keys = self.lock();
            let places = keys.entry(key.clone()).or_default();
            if *places >= self.share {
                return Err(Refusal::new(
                    Code::RateLimited,
                    "more follow jobs with this key than its share of this server; try again later",
                ));
            }
            *places += 1;
        }
        Ok(Place { places: Arc::clone(self), caller: caller.clone(), _permit: permit })
    }

    /// Waits until nobody follows jobs any more.
    pub(crate) async fn cleared(&self) {
        let _ = self.free.acquire_many(u32::try_from(self.most).unwrap_or(u32::MAX)).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, usize>> {
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
        !self.places.looked_at_by.is_over(&self.caller).await
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(key) = self.caller.key() else { return };
        let mut keys = self.places.lock();
        if let Some(places) = keys.get_mut(key) {
            *places -= 1;
            if *places == 0 {
                keys.remove(key);
            }
        }
    }
}
