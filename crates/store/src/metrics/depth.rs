//! Queue depth gauges, which the leader publishes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use metrics::{SharedString, gauge};

use super::{QUEUE_DEPTH, QUEUE_OLDEST, series};
use crate::QueueDepth;

/// The published queue depths. Series that are no longer reported are set to zero.
#[derive(Debug, Default)]
pub struct Depths(Mutex<Published>);

#[derive(Debug, Default)]
struct Published {
    depths: BTreeSet<(SharedString, &'static str)>,
    oldest: BTreeSet<SharedString>,
}

impl Depths {
    /// Publishes the depths. An empty slice clears all, as when this node stops leading.
    pub fn publish(&self, queues: &[QueueDepth]) {
        // Queues without series of their own share one and are added up.
        let (mut depths, mut oldest) = (BTreeMap::<_, f64>::new(), BTreeMap::<_, f64>::new());
        for queue in queues {
            let name = series::queue(&queue.queue);
            for (state, n) in &queue.counts {
                *depths.entry((name.clone(), state.as_str())).or_default() += *n as f64;
            }
            let wait = queue.oldest.unwrap_or_default().as_secs_f64();
            let longest = oldest.entry(name).or_default();
            *longest = longest.max(wait);
        }
        let mut published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (queue, state) in std::mem::take(&mut published.depths) {
            if !depths.contains_key(&(queue.clone(), state)) {
                gauge!(QUEUE_DEPTH, "queue" => queue, "state" => state).set(0.0);
            }
        }
        for queue in std::mem::take(&mut published.oldest) {
            if !oldest.contains_key(&queue) {
                gauge!(QUEUE_OLDEST, "queue" => queue).set(0.0);
            }
        }
        for ((queue, state), n) in depths {
            gauge!(QUEUE_DEPTH, "queue" => queue.clone(), "state" => state).set(n);
            published.depths.insert((queue, state));
        }
        for (queue, wait) in oldest {
            gauge!(QUEUE_OLDEST, "queue" => queue.clone()).set(wait);
            published.oldest.insert(queue);
        }
    }
}
