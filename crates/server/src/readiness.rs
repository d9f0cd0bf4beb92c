//! Whether the store answers, somebody leads and anybody works: one look at the store for all who ask.
//!
//! Anybody may ask, as often as they like, so what was seen is believed for half a second, and while a look is under way all wait for it. A
//! look is a task of its own: whoever asked first may go away.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orchestrix_store::{PageRequest, Result, Store};
use tokio::{sync::watch, time::Instant};

/// How long the store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long what was seen is believed.
const BELIEVED: Duration = Duration::from_millis(500);

/// What a look has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The store answered.
    There {
        /// Somebody leads.
        led: bool,
        /// Somebody works.
        worked: bool,
    },
    /// It could not be asked.
    Away,
    /// It did not answer in time.
    Late,
}

/// Nothing while a look is under way; then what it has shown, and when.
type Shown = Option<(Sight, Instant)>;

pub(crate) struct Readiness {
    store: Arc<dyn Store>,
    latest: Mutex<Option<watch::Receiver<Shown>>>,
}

impl Readiness {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, latest: Mutex::default() }
    }

    /// How it stands, as of half a second ago at most.
    pub(crate) async fn see(&self) -> Sight {
        let mut shown = self.latest();
        // The lock of what was shown must not outlive this line.
        let seen = shown.wait_for(Option::is_some).await.map(|seen| *seen);
        seen.ok().flatten().map_or(Sight::Away, |(sight, _)| sight)
    }

    // A look that is believed or under way, or else a new one.
    fn latest(&self) -> watch::Receiver<Shown> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = latest.as_ref().filter(|shown| is_good(shown)) {
            return shown.clone();
        }
        let (tell, shown) = watch::channel(None);
        *latest = Some(shown.clone());
        tokio::spawn(look(Arc::clone(&self.store), tell));
        shown
    }
}

fn is_good(shown: &watch::Receiver<Shown>) -> bool {
    match *shown.borrow() {
        Some((_, at)) => at.elapsed() < BELIEVED,
        // Unless it ended without a word.
        None => shown.has_changed().is_ok(),
    }
}

async fn look(store: Arc<dyn Store>, tell: watch::Sender<Shown>) {
    let sight = match tokio::time::timeout(PATIENCE, ask(&*store)).await {
        Ok(Ok(sight)) => sight,
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store is away");
            Sight::Away
        }
        Err(_) => Sight::Late,
    };
    tell.send_replace(Some((sight, Instant::now())));
}

async fn ask(store: &dyn Store) -> Result<Sight> {
    let led = store.leader().await?.is_some();
    let worked = !store.list_workers(&PageRequest::first(1)).await?.items.is_empty();
    Ok(Sight::There { led, worked })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::http::{Method, StatusCode};
    use futures_util::future::join_all;
    use orchestrix_core::{NodeName, Timestamp};
    use orchestrix_memory::MemoryStore;
    use orchestrix_store::{Clock, NodeInfo};

    use super::*;
    use crate::Local;

    /// A store in memory looks at its clock once for whatever it is asked.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl Clock for Counting {
        fn now(&self) -> Timestamp {
            self.0.fetch_add(1, Ordering::SeqCst);
            Timestamp::UNIX_EPOCH
        }
    }

    /// A server, and how often its store was asked.
    fn place() -> (Arc<dyn Store>, Local, Arc<Counting>) {
        let clock = Arc::<Counting>::default();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()));
        (Arc::clone(&store), Local::new(store, "test"), clock)
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_share_one_look_that_is_believed_for_half_a_second() {
        let (_, local, clock) = place();
        let ask = async || {
            let (status, body) = local.call(Method::GET, "/readyz", None).await.unwrap();
            assert_eq!(status, StatusCode::OK, "{body:?}");
        };
        let asked = || clock.0.swap(0, Ordering::SeqCst);
        asked();
        join_all((0..100).map(|_| ask())).await;
        assert_eq!(asked(), 2, "who leads, and who works");
        tokio::time::advance(BELIEVED - Duration::from_millis(1)).await;
        ask().await;
        assert_eq!(asked(), 0, "it is still believed");
        tokio::time::advance(Duration::from_millis(2)).await;
        join_all((0..100).map(|_| ask())).await;
        assert_eq!(asked(), 2, "it is looked at again");
    }

    #[tokio::test]
    async fn whoever_asked_first_may_go_away() {
        let (store, _, _) = place();
        let readiness = Readiness::new(store);
        {
            let first = readiness.see();
            tokio::pin!(first);
            assert!(futures_util::poll!(&mut first).is_pending(), "the look is a task, which has not run yet");
        }
        let second = tokio::time::timeout(Duration::from_secs(20), readiness.see());
        assert_eq!(second.await.unwrap(), Sight::There { led: false, worked: false });
    }

    #[tokio::test]
    async fn a_look_that_ended_without_a_word_is_not_waited_for() {
        let (store, _, _) = place();
        let readiness = Readiness::new(store);
        *readiness.latest.lock().unwrap() = Some(watch::channel(None).1);
        assert_eq!(readiness.see().await, Sight::There { led: false, worked: false });
    }

    #[tokio::test]
    async fn a_leader_is_seen_however_many_nodes_there_are() {
        let (store, local, _) = place();
        let name = |n: usize| NodeName::new(format!("node-{n:04}")).unwrap();
        for n in 0..=1_000 {
            store.heartbeat_node(&NodeInfo { name: name(n), address: None, roles: Vec::new() }).await.unwrap();
        }
        store.campaign_for_leadership(&name(1_000), Duration::from_secs(10), None).await.unwrap();
        let (_, ready) = local.call(Method::GET, "/readyz", None).await.unwrap();
        let ready: serde_json::Value = serde_json::from_slice(&ready).unwrap();
        assert_eq!(ready["components"]["coordinator"]["status"], "ok", "{ready}");
        let (_, stats) = local.call(Method::GET, "/admin/stats", None).await.unwrap();
        let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
        assert_eq!(stats["leader"], "node-1000", "{stats}");
    }
}
