//! Coalesces concurrent loads into one query of the store.
//!
//! A load joins the batch that is being collected. At most [`MAX_IN_FLIGHT`] queries run at once; while they do, the
//! next batch grows. So batches grow with the load, and a lone load does not wait. A query starts after all loads that
//! it answers, so its result is never older than any of them.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use orchestrix_store::{Result, StoreError};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The most queries that run at once.
const MAX_IN_FLIGHT: usize = 2;

type Request<K, V> = (K, oneshot::Sender<Result<Option<V>>>);

/// Loads values by key, in batches.
pub(crate) struct BatchLoader<K, V>(mpsc::Sender<Request<K, V>>);

impl<K, V> BatchLoader<K, V>
where
    K: Copy + Eq + Hash + Ord + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// `fetch` receives at most `max_batch` distinct keys and returns the values that it found. The background task
    /// ends when the loader is dropped.
    pub(crate) fn new<F>(max_batch: usize, fetch: impl Fn(Vec<K>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<HashMap<K, V>>> + Send + 'static,
    {
        let (sender, requests) = mpsc::channel(4 * max_batch);
        tokio::spawn(run(max_batch, requests, fetch));
        Self(sender)
    }

    /// A loader whose every load fails with [`StoreError::Unavailable`].
    #[cfg(test)]
    pub(crate) fn unavailable() -> Self {
        Self(mpsc::channel(1).0)
    }

    /// Loads the value of a key; `None` if there is none.
    pub(crate) async fn load(&self, key: K) -> Result<Option<V>> {
        let shut_down = || StoreError::Unavailable("the server is shutting down".into());
        let (sender, receiver) = oneshot::channel();
        self.0.send((key, sender)).await.map_err(|_| shut_down())?;
        receiver.await.map_err(|_| shut_down())?
    }
}

async fn run<K, V, F>(max_batch: usize, mut requests: mpsc::Receiver<Request<K, V>>, fetch: impl Fn(Vec<K>) -> F)
where
    K: Copy + Eq + Hash + Ord + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = Result<HashMap<K, V>>> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
    let mut batch = Vec::with_capacity(max_batch);
    // Requests queue up in the channel while all permits are taken.
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        if requests.recv_many(&mut batch, max_batch).await == 0 {
            return;
        }
        let batch = std::mem::replace(&mut batch, Vec::with_capacity(max_batch));
        let mut keys: Vec<K> = batch.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        let fetching = fetch(keys);
        tokio::spawn(async move {
            reply(&fetching.await, batch);
            drop(permit);
        });
    }
}

// A send fails when its caller has gone away, which is fine.
fn reply<K: Eq + Hash, V: Clone>(fetched: &Result<HashMap<K, V>>, batch: Vec<Request<K, V>>) {
    for (key, sender) in batch {
        let _ = sender.send(match fetched {
            Ok(values) => Ok(values.get(&key).cloned()),
            Err(error) => Err(error.replicate()),
        });
    }
}
