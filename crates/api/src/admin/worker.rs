//! Workers, and which jobs none of them takes.

use std::time::Duration;

use orchestrix_core::{JobType, Queue, Timestamp, WorkerName};
use orchestrix_store::{Queues, WorkerStatus};
use serde::{Deserialize, Serialize};

use crate::seconds::seconds;

/// A worker as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerView {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub worker_id: WorkerName,
    /// `live`, or `silent` if it was not heard of for longer than it may be silent by its own word.
    pub state: String,
    /// From which queues it takes jobs; `["*"]` is all of them.
    pub queues: Vec<String>,
    /// The types it knows; null takes any.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>, required))]
    pub job_types: Option<Vec<JobType>>,
    /// How many jobs it runs at once.
    pub concurrency: u32,
    /// How many more it could run, as it last said.
    pub free_slots: u32,
    /// What it is told to do: `run`, `drain` or `stop`. `drain` also if it takes nothing new of its own accord, because it ends.
    pub directive: String,
    /// When it made itself known.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    /// When it last showed that it lives.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last_seen_at: Timestamp,
    /// How long ago that was, by the clock of the database.
    #[serde(default)]
    pub silent_seconds: f64,
}

impl From<WorkerStatus> for WorkerView {
    fn from(worker: WorkerStatus) -> Self {
        Self {
            state: if worker.is_live() { "live" } else { "silent" }.into(),
            worker_id: worker.info.name,
            queues: match worker.info.queues {
                Queues::All => vec!["*".into()],
                Queues::Named(names) => names.iter().map(ToString::to_string).collect(),
            },
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
    /// When this was told, by the clock of the database.
    pub fn told_at(&self) -> Timestamp {
        let silent = Duration::try_from_secs_f64(self.silent_seconds).unwrap_or_default();
        self.last_seen_at.checked_add(silent).unwrap_or(self.last_seen_at)
    }

    /// Whether it lives and takes new jobs of this kind.
    pub fn takes(&self, queue: &Queue, job_type: &JobType) -> bool {
        self.state == "live"
            && self.directive == "run"
            && self.queues.iter().any(|name| name == "*" || name == queue.as_str())
            && self.job_types.as_ref().is_none_or(|types| types.contains(job_type))
    }
}

/// What a worker is told to do from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Directed {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub worker_id: WorkerName,
    /// `run`, `drain` or `stop`; it hears of it with its next heartbeat.
    pub directive: String,
}

/// A kind of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneView {
    /// Where they wait.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub queue: Queue,
    /// Of which type they are.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
}

/// A part of the list of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Workers {
    /// Workers by name.
    pub items: Vec<WorkerView>,
    /// Where the next part begins; null when nothing more follows.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub next_cursor: Option<String>,
    /// Kinds of jobs that could be claimed and that no living worker takes. Told with the first part alone.
    #[serde(default)]
    pub unserved: Vec<LaneView>,
}

#[cfg(test)]
mod tests {
    use orchestrix_store::{Directive, WorkerInfo};

    use super::*;

    #[test]
    fn a_worker_takes_what_it_serves_while_it_lives_and_is_not_told_to_end() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let (queue, kind) = (Queue::trusted("q"), JobType::trusted("t"));
        let status = WorkerStatus {
            info: WorkerInfo {
                queues: Queues::Named(vec![queue.clone()]),
                job_types: Some(vec![kind.clone()]),
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
        assert!(view(&|_| {}).takes(&queue, &kind));
        assert_eq!(view(&|_| {}).told_at(), now + Duration::from_secs(90));
        assert!(!view(&|_| {}).takes(&Queue::trusted("other"), &kind));
        assert!(!view(&|_| {}).takes(&queue, &JobType::trusted("other")));
        assert!(!view(&|worker| worker.seen_ago = Duration::from_secs(91)).takes(&queue, &kind));
        assert!(!view(&|worker| worker.directive = Directive::Drain).takes(&queue, &kind));
        let any = view(&|worker| (worker.info.queues, worker.info.job_types) = (Queues::All, None));
        assert!(any.takes(&Queue::trusted("other"), &JobType::trusted("other")));
    }
}
