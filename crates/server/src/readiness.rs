//! The readiness probe: whether the store answers, a leader is elected and a worker is registered.
//!
//! `GET /readyz` is public, so its cost is bounded: a probe's result is cached for half a second, and requests that
//! come during a probe share it. A probe is a task of its own, so it completes even if the request that started it is
//! cancelled.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orchestrix_store::{PageRequest, Result, Store};
use tokio::{sync::watch, time::Instant};

const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const CACHE_TTL: Duration = Duration::from_millis(500);

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreStatus {
    Available {
        has_leader: bool,
        has_workers: bool,
    },
    /// The store returned an error.
    Unavailable,
    /// The store did not answer within [`PROBE_TIMEOUT`].
    TimedOut,
}

/// `None` while a probe runs; then its result and when it ended.
type ProbeResult = Option<(StoreStatus, Instant)>;

pub(crate) struct Readiness {
    store: Arc<dyn Store>,
    latest: Mutex<Option<watch::Receiver<ProbeResult>>>,
}

impl Readiness {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, latest: Mutex::default() }
    }

    /// The store's status, at most [`CACHE_TTL`] old.
    pub(crate) async fn status(&self) -> StoreStatus {
        let mut probe = self.latest_probe();
        // Copies the result: the guard must not be held across the next line.
        let result = probe.wait_for(Option::is_some).await.map(|result| *result);
        result.ok().flatten().map_or(StoreStatus::Unavailable, |(status, _)| status)
    }

    // The running probe or the cached one, else a new one.
    fn latest_probe(&self) -> watch::Receiver<ProbeResult> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(probe) = latest.as_ref().filter(|probe| is_usable(probe)) {
            return probe.clone();
        }
        let (sender, probe) = watch::channel(None);
        *latest = Some(probe.clone());
        tokio::spawn(run_probe(Arc::clone(&self.store), sender));
        probe
    }
}

fn is_usable(probe: &watch::Receiver<ProbeResult>) -> bool {
    match *probe.borrow() {
        Some((_, ended_at)) => ended_at.elapsed() < CACHE_TTL,
        // It still runs, unless its task panicked and dropped the sender.
        None => probe.has_changed().is_ok(),
    }
}

async fn run_probe(store: Arc<dyn Store>, sender: watch::Sender<ProbeResult>) {
    let status = match tokio::time::timeout(PROBE_TIMEOUT, query(&*store)).await {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => {
            tracing::warn!(%error, "readiness probe failed: the store is unavailable");
            StoreStatus::Unavailable
        }
        Err(_) => StoreStatus::TimedOut,
    };
    sender.send_replace(Some((status, Instant::now())));
}

async fn query(store: &dyn Store) -> Result<StoreStatus> {
    let has_leader = store.leader().await?.is_some();
    let has_workers = !store.list_workers(&PageRequest::first(1)).await?.items.is_empty();
    Ok(StoreStatus::Available { has_leader, has_workers })
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
    use crate::InProcessApi;

    /// Counts the queries of an in-memory store, which reads its clock once per query.
    #[derive(Debug, Default)]
    struct CountingClock(AtomicUsize);

    impl Clock for CountingClock {
        fn now(&self) -> Timestamp {
            self.0.fetch_add(1, Ordering::SeqCst);
            Timestamp::UNIX_EPOCH
        }
    }

    fn server() -> (Arc<dyn Store>, InProcessApi, Arc<CountingClock>) {
        let clock = Arc::<CountingClock>::default();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()));
        (Arc::clone(&store), InProcessApi::new(store, "test"), clock)
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_requests_share_one_probe_which_is_cached_for_half_a_second() {
        let (_, api, clock) = server();
        let request = async || {
            let (status, body) = api.call(Method::GET, "/readyz", None).await.unwrap();
            assert_eq!(status, StatusCode::OK, "{body:?}");
        };
        let queries = || clock.0.swap(0, Ordering::SeqCst);
        queries();
        join_all((0..100).map(|_| request())).await;
        assert_eq!(queries(), 2, "the leader and the workers");
        tokio::time::advance(CACHE_TTL - Duration::from_millis(1)).await;
        request().await;
        assert_eq!(queries(), 0, "the result is cached");
        tokio::time::advance(Duration::from_millis(2)).await;
        join_all((0..100).map(|_| request())).await;
        assert_eq!(queries(), 2, "the cache has expired");
    }

    #[tokio::test]
    async fn a_probe_outlives_the_request_that_started_it() {
        let (store, _, _) = server();
        let readiness = Readiness::new(store);
        {
            let first = readiness.status();
            tokio::pin!(first);
            assert!(futures_util::poll!(&mut first).is_pending(), "the probe is a task, which has not run yet");
        }
        let second = tokio::time::timeout(Duration::from_secs(20), readiness.status());
        assert_eq!(second.await.unwrap(), StoreStatus::Available { has_leader: false, has_workers: false });
    }

    #[tokio::test]
    async fn a_probe_that_ended_without_a_result_is_replaced() {
        let (store, _, _) = server();
        let readiness = Readiness::new(store);
        *readiness.latest.lock().unwrap() = Some(watch::channel(None).1);
        assert_eq!(readiness.status().await, StoreStatus::Available { has_leader: false, has_workers: false });
    }

    #[tokio::test]
    async fn the_leader_is_found_among_a_thousand_nodes() {
        let (store, api, _) = server();
        let name = |n: usize| NodeName::new(format!("node-{n:04}")).unwrap();
        for n in 0..=1_000 {
            store.heartbeat_node(&NodeInfo { name: name(n), address: None, roles: Vec::new() }).await.unwrap();
        }
        store.campaign_for_leadership(&name(1_000), Duration::from_secs(10), None).await.unwrap();
        let (_, ready) = api.call(Method::GET, "/readyz", None).await.unwrap();
        let ready: serde_json::Value = serde_json::from_slice(&ready).unwrap();
        assert_eq!(ready["components"]["coordinator"]["status"], "ok", "{ready}");
        let (_, stats) = api.call(Method::GET, "/admin/stats", None).await.unwrap();
        let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
        assert_eq!(stats["leader"], "node-1000", "{stats}");
    }
}
