//! How full queues are, as the leader tells it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use metrics::{SharedString, gauge};

use super::{QUEUE_DEPTH, QUEUE_OLDEST, series};
use crate::QueueDepth;

/// What was last said of queues: whatever is not there any more stands at nothing afterwards, and whoever leads no longer says
/// nothing.
#[derive(Debug, Default)]
pub struct Depths(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    depths: BTreeSet<(SharedString, &'static str)>,
    oldest: BTreeSet<SharedString>,
}

impl Depths {
    /// Says how the queues stand; none are left once this node leads no longer.
    pub fn say(&self, queues: &[QueueDepth]) {
        // Queues without series of their own add up.
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
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (queue, state) in std::mem::take(&mut said.depths) {
            if !depths.contains_key(&(queue.clone(), state)) {
                gauge!(QUEUE_DEPTH, "queue" => queue, "state" => state).set(0.0);
            }
        }
        for queue in std::mem::take(&mut said.oldest) {
            if !oldest.contains_key(&queue) {
                gauge!(QUEUE_OLDEST, "queue" => queue).set(0.0);
            }
        }
        for ((queue, state), n) in depths {
            gauge!(QUEUE_DEPTH, "queue" => queue.clone(), "state" => state).set(n);
            said.depths.insert((queue, state));
        }
        for (queue, wait) in oldest {
            gauge!(QUEUE_OLDEST, "queue" => queue.clone()).set(wait);
            said.oldest.insert(queue);
        }
    }
}
