//! Workers, and the lanes that no worker serves.

use std::time::Duration;

use orchestrix_core::{JobType, Queue, Timestamp, WorkerName};
use orchestrix_store::WorkerStatus;
use serde::{Deserialize, Serialize};

use crate::{seconds::seconds, worker::queue_names};

/// A worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerView {
    /// The worker's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub worker_id: WorkerName,
    /// `live`, or `silent` if the last heartbeat is older than the worker's own limit.
    pub state: String,
    /// The queues the worker claims from. `["*"]` means all queues.
    pub queues: Vec<String>,
    /// The job types the worker handles. `null` means all types.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>, required))]
    pub job_types: Option<Vec<JobType>>,
    /// The number of jobs the worker runs concurrently.
    pub concurrency: u32,
    /// The number of free slots in the last heartbeat.
    pub free_slots: u32,
    /// The directive: `run`, `drain` or `stop`. Also `drain` if the worker drains on its own.
    pub directive: String,
    /// When the worker registered.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    /// When the worker last sent a heartbeat.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last_seen_at: Timestamp,
    /// The age of the last heartbeat in seconds, by the clock of the database.
    #[serde(default)]
    pub silent_seconds: f64,
}

impl From<WorkerStatus> for WorkerView {
    fn from(worker: WorkerStatus) -> Self {
        Self {
            state: if worker.is_live() { "live" } else { "silent" }.into(),
            worker_id: worker.info.name,
            queues: queue_names(&worker.info.queues),
            job_types: worker.info.job_types,
            concurrency: worker.info.concurrency,
            free_slots: worker.free_slots,
            directive: worker.directive.as_str().into(),
            started_at: worker.started_at,
            last_seen_at: worker.last_seen_at,
            silent_seconds: seconds(worker.seen_ago),
        }
    }
}

impl WorkerView {
    /// When this view was taken, by the clock of the database.
    pub fn observed_at(&self) -> Timestamp {
        let silent = Duration::try_from_secs_f64(self.silent_seconds).unwrap_or_default();
        self.last_seen_at.checked_add(silent).unwrap_or(self.last_seen_at)
    }

    /// Whether the worker is live and claims jobs of this lane.
    pub fn serves(&self, queue: &Queue, job_type: &JobType) -> bool {
        self.state == "live"
            && self.directive == "run"
            && self.queues.iter().any(|name| name == "*" || name == queue.as_str())
            && self.job_types.as_ref().is_none_or(|types| types.contains(job_type))
    }
}

/// The directive to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DrainResponse {
    /// The worker's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub worker_id: WorkerName,
    /// The directive: `run`, `drain` or `stop`. The worker receives it with its next heartbeat.
    pub directive: String,
}

/// A lane: a queue and a job type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneView {
    /// The queue.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub queue: Queue,
    /// The job type.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
}

/// A page of the list of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkersResponse {
    /// The workers, ordered by name.
    pub items: Vec<WorkerView>,
    /// Pass this as `cursor` to get the next page. `null` on the last page.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub next_cursor: Option<String>,
    /// Lanes with claimable jobs that no live worker serves. On the first page only.
    #[serde(default)]
    pub unserved: Vec<LaneView>,
}

#[cfg(test)]
mod tests {
    use orchestrix_store::{Directive, Queues, WorkerInfo};

    use super::*;

    #[test]
    fn a_worker_serves_its_lanes_while_it_is_live_and_not_draining() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let (queue, job_type) = (Queue::trusted("q"), JobType::trusted("t"));
        let status = WorkerStatus {
            info: WorkerInfo {
                queues: Queues::Named(vec![queue.clone()]),
                job_types: Some(vec![job_type.clone()]),
                dead_after: Some(Duration::from_secs(90)),
                ..WorkerInfo::any(WorkerName::trusted("w"))
            },
            directive: Directive::Run,
            free_slots: 0,
            started_at: now,
            last_seen_at: now,
            seen_ago: Duration::from_secs(90),
        };
        let view = |change: &dyn Fn(&mut WorkerStatus)| {
            let mut status = status.clone();
            change(&mut status);
            WorkerView::from(status)
        };
        assert!(view(&|_| {}).serves(&queue, &job_type));
        assert_eq!(view(&|_| {}).observed_at(), now + Duration::from_secs(90));
        assert!(!view(&|_| {}).serves(&Queue::trusted("other"), &job_type));
        assert!(!view(&|_| {}).serves(&queue, &JobType::trusted("other")));
        assert!(!view(&|worker| worker.seen_ago = Duration::from_secs(91)).serves(&queue, &job_type));
        assert!(!view(&|worker| worker.directive = Directive::Drain).serves(&queue, &job_type));
        let any = view(&|worker| (worker.info.queues, worker.info.job_types) = (Queues::All, None));
        assert!(any.serves(&Queue::trusted("other"), &JobType::trusted("other")));
    }
}
