//! Metrics: the name, labels and buckets of each, in one place.
//!
//! Metrics are part of this crate because most of them are counted by stores, after a commit
//! ([`CommitEffects`](crate::CommitEffects)): enqueued and finished jobs, and occurrences of schedules. Only the
//! committing code knows the side effects of a call, such as cancelled dependents, and recognises a repeated request.
//! Claims, rejected writes and run times are counted by the process that claims, writes or runs.
//! Depths, workers and leadership are counted by the leader.
//!
//! Nothing is kept here. Values go to the recorder of the `metrics` facade that the program has installed, if any.
//! Counts are summed over a commit or a batch before the recorder is called, so that the cost per job is small.
//!
//! Clients choose the names of queues, types and schedules. To bound memory, the first thousand names in a process get
//! series of their own, and all others are counted together as [`OTHER`].
//!
//! Jobs that a program enqueues or completes in a transaction of its own are not counted here, since that commit is
//! not visible. A worker counts what its handlers completed that way.

mod depth;
mod run_times;
pub(crate) mod series;

use std::time::Duration;

use metrics::{Unit, counter, gauge, histogram};
use orchestrix_core::{JobType, NodeName, Queue};

pub use depth::Depths;
pub use run_times::RunTimes;
pub use series::OTHER;

use crate::ClaimedJob;

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A value that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Durations in seconds, in these buckets.
    Histogram(&'static [f64]),
}

/// The description of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The name.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// The label names.
    pub labels: &'static [&'static str],
    /// The help text.
    pub help: &'static str,
}

pub(crate) const JOBS_ENQUEUED: &str = "orchestrix_jobs_enqueued_total";
pub(crate) const JOBS_FINISHED: &str = "orchestrix_jobs_finished_total";
const JOB_WAIT: &str = "orchestrix_job_wait_seconds";
const JOB_RUN: &str = "orchestrix_job_run_seconds";
const QUEUE_DEPTH: &str = "orchestrix_queue_depth";
const QUEUE_OLDEST: &str = "orchestrix_queue_oldest_seconds";
const LEASES_LOST: &str = "orchestrix_leases_lost_total";
const STALE_WRITES: &str = "orchestrix_stale_writes_rejected_total";
const CLAIM: &str = "orchestrix_claim_seconds";
const LEADER: &str = "orchestrix_leader";
const LEADER_CHANGES: &str = "orchestrix_leader_changes_total";
const WORKERS: &str = "orchestrix_workers";
pub(crate) const SCHEDULE_FIRES: &str = "orchestrix_schedule_fires_total";
const HTTP_REQUESTS: &str = "orchestrix_http_requests_total";
const HTTP_REQUEST: &str = "orchestrix_http_request_seconds";

/// From a millisecond to an hour: wait and run times of jobs.
const JOBS: Kind = Kind::Histogram(&[
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0,
]);
/// From half a millisecond to the timeout of database calls.
const CLAIMS: Kind =
    Kind::Histogram(&[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
/// Up to the longest long poll.
const REQUESTS: Kind =
    Kind::Histogram(&[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);

const fn metric(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind, labels, help }
}

/// All metrics.
pub const ALL: [Metric; 15] = [
    metric(
        JOBS_ENQUEUED,
        Kind::Counter,
        &["queue", "type"],
        "Jobs enqueued, without duplicates of an idempotent request.",
    ),
    metric(JOBS_FINISHED, Kind::Counter, &["queue", "type", "outcome"], "Jobs finished, by terminal state."),
    metric(JOB_WAIT, JOBS, &["queue"], "Time from when a job became eligible to its claim."),
    metric(JOB_RUN, JOBS, &["queue", "type"], "Run time of attempts in this process."),
    metric(QUEUE_DEPTH, Kind::Gauge, &["queue", "state"], "Unfinished jobs by state. Reported by the leader only."),
    metric(QUEUE_OLDEST, Kind::Gauge, &["queue"], "Age of the oldest claimable job. Reported by the leader only."),
    metric(LEASES_LOST, Kind::Counter, &[], "Expired leases that were reaped. Counted by the leader."),
    metric(STALE_WRITES, Kind::Counter, &[], "Outcomes, progress and log lines rejected because their lease was lost."),
    metric(CLAIM, CLAIMS, &[], "Time to claim jobs, including claims that found none."),
    metric(LEADER, Kind::Gauge, &["node"], "1 if this node leads, otherwise 0."),
    metric(LEADER_CHANGES, Kind::Counter, &[], "Changes of leader that this node observed."),
    metric(WORKERS, Kind::Gauge, &["state"], "Registered workers by state. Reported by the leader only."),
    metric(
        SCHEDULE_FIRES,
        Kind::Counter,
        &["schedule", "outcome"],
        "Nominal times of schedules, by outcome of their occurrence.",
    ),
    metric(HTTP_REQUESTS, Kind::Counter, &["route", "method", "status"], "HTTP requests answered."),
    metric(HTTP_REQUEST, REQUESTS, &[], "Time to answer HTTP requests, including long polls."),
];

/// Describes all metrics to the recorder. Counters without labels are exported as zero from then on.
pub fn describe() {
    for Metric { name, kind, labels, help } in ALL {
        match kind {
            Kind::Counter => metrics::describe_counter!(name, Unit::Count, help),
            Kind::Gauge if name == QUEUE_OLDEST => metrics::describe_gauge!(name, Unit::Seconds, help),
            Kind::Gauge => metrics::describe_gauge!(name, Unit::Count, help),
            Kind::Histogram(_) => metrics::describe_histogram!(name, Unit::Seconds, help),
        }
        if kind == Kind::Counter && labels.is_empty() {
            counter!(name).increment(0);
        }
    }
}

/// Records a claim that took this long and returned these jobs.
pub fn claimed(took: Duration, jobs: &[ClaimedJob]) {
    histogram!(CLAIM).record(took);
    // Most jobs of a claim are of one queue, so the last histogram is cached.
    let mut last: Option<(&Queue, metrics::Histogram)> = None;
    for job in jobs {
        let waits = match &last {
            Some((queue, waits)) if *queue == &job.queue => waits,
            _ => &last.insert((&job.queue, histogram!(JOB_WAIT, "queue" => series::queue(&job.queue)))).1,
        };
        // Both times are by the store's clock.
        let since = job.lease_expires_at.duration_since(job.eligible_at).as_secs_f64();
        waits.record((since - job.lease.as_secs_f64()).max(0.0));
    }
}

/// Counts writes that were rejected because their lease was lost.
pub fn stale_writes(n: usize) {
    if n > 0 {
        counter!(STALE_WRITES).increment(n as u64);
    }
}

/// Counts reaped leases.
pub fn leases_lost(n: usize) {
    if n > 0 {
        counter!(LEASES_LOST).increment(n as u64);
    }
}

/// Sets whether this node leads. Call it repeatedly: a recorder may drop a gauge that is not updated for a while.
pub fn leads(node: &NodeName, leads: bool) {
    gauge!(LEADER, "node" => node.to_string()).set(if leads { 1.0 } else { 0.0 });
}

/// Counts a change of leader.
pub fn leader_changed() {
    counter!(LEADER_CHANGES).increment(1);
}

/// Sets the number of workers in a state.
pub fn workers(state: &'static str, n: usize) {
    gauge!(WORKERS, "state" => state).set(n as f64);
}

/// Records an answered HTTP request. `route` is the route pattern, never the concrete path.
pub fn answered(route: &str, method: &'static str, status: u16, took: Duration) {
    let (route, status) = (route.to_owned(), status.to_string());
    counter!(HTTP_REQUESTS, "route" => route, "method" => method, "status" => status).increment(1);
    histogram!(HTTP_REQUEST).record(took);
}

pub(crate) fn lane(queue: &Queue, job_type: &JobType) -> [metrics::Label; 2] {
    let (queue, job_type) = series::lane(queue, job_type);
    [metrics::Label::new("queue", queue), metrics::Label::new("type", job_type)]
}
