//! Publishes gauges: queue depths, and workers by state. Only the leader does, because every node would publish the
//! same.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_core::Queue;
use orchestrix_store::{
    Directive, PageRequest, Result, Store, WorkerStatus,
    metrics::{self, Depths},
};

use crate::{
    jitter::jittered,
    service::{LeaderContext, Service, StepResult, Trigger},
};

/// The pause between two steps.
const INTERVAL: Duration = Duration::from_secs(5);
/// The maximum number of pages of workers to read. Further workers are not counted.
const MAX_PAGES: usize = 10;

/// The states of a worker: it claims jobs, drains, stops, or has missed its heartbeats.
const STATES: [&str; 4] = ["live", "draining", "stopping", "silent"];

#[derive(Default)]
pub(super) struct PublishGauges {
    depths: Depths,
}

#[async_trait]
impl Service for PublishGauges {
    fn name(&self) -> &'static str {
        "publish_gauges"
    }

    fn trigger(&self) -> Trigger {
        Trigger::Periodic
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        // One page holds as many queues as get their own time series.
        self.depths
            .publish(&leader.store.queue_depths(&PageRequest::first(PageRequest::<Queue>::MAX_LIMIT)).await?.items);
        let workers = list_workers(leader.store).await?;
        for state in STATES {
            let n = workers.iter().filter(|worker| state_of(worker) == state).count();
            metrics::workers(state, n);
        }
        Ok(StepResult { affected: 0, next_in: Some(jittered(INTERVAL)) })
    }

    fn stopped_leading(&self) {
        self.depths.publish(&[]);
        for state in STATES {
            metrics::workers(state, 0);
        }
    }
}

async fn list_workers(store: &dyn Store) -> Result<Vec<WorkerStatus>> {
    let mut workers = Vec::new();
    let mut request = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    for _ in 0..MAX_PAGES {
        let page = store.list_workers(&request).await?;
        workers.extend(page.items);
        match page.next {
            Some(cursor) => request.cursor = Some(cursor),
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
