//! Questions that come at the same time share one look at the store.
//!
//! A question joins whatever look is gathering. While looks are under way the next one gathers, so that they grow with the load and a
//! lone question waits for nobody. Each look begins after the questions that it answers were asked: what it shows is never older
//! than they are.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use orchestrix_store::{Result, StoreError};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Looks under way at once.
const UNDER_WAY: usize = 2;

type Asked<K, V> = (K, oneshot::Sender<Result<Option<V>>>);

/// Gathers questions, which are told apart by their keys.
pub(crate) struct Gather<K, V>(mpsc::Sender<Asked<K, V>>);

impl<K, V> Gather<K, V>
where
    K: Copy + Eq + Hash + Ord + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Ends when it is dropped. `look` is asked of so many keys at most, each once, and answers those of which there is something to say.
    pub(crate) fn new<F>(most: usize, look: impl Fn(Vec<K>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<HashMap<K, V>>> + Send + 'static,
    {
        let (sender, asked) = mpsc::channel(4 * most);
        tokio::spawn(gather(most, asked, look));
        Self(sender)
    }

    /// One that nobody answers.
    #[cfg(test)]
    pub(crate) fn away() -> Self {
        Self(mpsc::channel(1).0)
    }

    /// What there is to say of a key.
    pub(crate) async fn ask(&self, key: K) -> Result<Option<V>> {
        let ended = || StoreError::Unavailable("the server ends".into());
        let (answer, answered) = oneshot::channel();
        self.0.send((key, answer)).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }
}

async fn gather<K, V, F>(most: usize, mut asked: mpsc::Receiver<Asked<K, V>>, look: impl Fn(Vec<K>) -> F)
where
    K: Copy + Eq + Hash + Ord + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = Result<HashMap<K, V>>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(UNDER_WAY));
    let mut some = Vec::with_capacity(most);
    // Whoever asks while all places are taken joins the next look.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        if asked.recv_many(&mut some, most).await == 0 {
            return;
        }
        let some = std::mem::replace(&mut some, Vec::with_capacity(most));
        let mut keys: Vec<K> = some.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        let looked = look(keys);
        tokio::spawn(async move {
            tell(&looked.await, some);
            drop(place);
        });
    }
}

// Whoever is gone needs no answer.
fn tell<K: Eq + Hash, V: Clone>(looked: &Result<HashMap<K, V>>, asked: Vec<Asked<K, V>>) {
    for (key, answer) in asked {
        let _ = answer.send(match looked {
            Ok(found) => Ok(found.get(&key).cloned()),
            Err(error) => Err(error.replicate()),
        });
    }
}
