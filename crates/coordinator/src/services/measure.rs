//! How full queues are and how many workers there are, told to whoever keeps metrics.
//!
//! By the leader alone: every node would say the same.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_core::Queue;
use orchestrix_store::{
    Directive, PageRequest, Result, Store, WorkerStatus,
    metrics::{self, Depths},
};

use crate::{
    pace::jittered,
    service::{Leader, Service, Step, When},
};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// The most workers that are looked at; more are not told apart.
const PAGES: usize = 10;

/// What a worker may be: taking jobs, told to take none or to stop, or not heard of for longer than it may be silent.
const STATES: [&str; 4] = ["live", "draining", "stopping", "silent"];

#[derive(Default)]
pub(super) struct Measure {
    depths: Depths,
}

#[async_trait]
impl Service for Measure {
    fn name(&self) -> &'static str {
        "measure"
    }

    fn when(&self) -> When {
        When::Period
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        // As many queues as have series of their own.
        self.depths
            .publish(&leader.store.queue_depths(&PageRequest::first(PageRequest::<Queue>::MAX_LIMIT)).await?.items);
        let workers = workers(leader.store).await?;
        for state in STATES {
            let n = workers.iter().filter(|worker| state_of(worker) == state).count();
            metrics::workers(state, n);
        }
        Ok(Step { moved: 0, next: Some(jittered(EVERY)) })
    }

    fn rest(&self) {
        self.depths.publish(&[]);
        for state in STATES {
            metrics::workers(state, 0);
        }
    }
}

async fn workers(store: &dyn Store) -> Result<Vec<WorkerStatus>> {
    let mut workers = Vec::new();
    let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    for _ in 0..PAGES {
        let found = store.list_workers(&page).await?;
        workers.extend(found.items);
        match found.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => break,
        }
    }
    Ok(workers)
}

fn state_of(worker: &WorkerStatus) -> &'static str {
    match worker.directive {
        _ if !worker.is_live() => "silent",
        Directive::Run => "live",
        Directive::Drain => "draining",
        Directive::Stop => "stopping",
    }
}
