//! What is counted: every metric with its name, its labels and its buckets, in one place.
//!
//! This is part of `store` because everybody who counts knows the store already, and because most of it is counted in the stores
//! themselves: what was recorded, how jobs ended and what schedules did is counted by whoever commits it, after the commit
//! ([`CommitEffects`](crate::CommitEffects)). Only there is it known what a call has done besides what it was asked for, such as the dependents of a job that died, and only
//! there is a repeat known as one. Claims, rejected writes and the time that handlers take are counted by whoever claims, writes and
//! runs; depths, workers and leadership by the leader.
//!
//! Nothing here keeps a figure: they go to the recorder of the `metrics` facade that the program has installed, and nowhere if it has
//! none. Counts are gathered for a whole commit or batch before the recorder is asked, so that a job costs next to nothing either way.
//!
//! Clients choose the names of queues, types and schedules. So that they cannot choose how much memory this takes, the first
//! thousand have series of their own in a process, and all others are counted together as [`OTHER`].
//!
//! What a program records or completes in a transaction of its own is not seen here, since its commit is not; a worker counts what
//! its handlers completed so.

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

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It stands somewhere.
    Gauge,
    /// Seconds, in these buckets.
    Histogram(&'static [f64]),
}

/// A metric as it is described.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
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

/// From a millisecond to an hour: what jobs wait, and what they take.
const JOBS: Kind = Kind::Histogram(&[
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0,
]);
/// From half a millisecond to what a database is waited for.
const CLAIMS: Kind =
    Kind::Histogram(&[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
/// To the longest that a long poll waits.
const REQUESTS: Kind =
    Kind::Histogram(&[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);

const fn metric(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind, labels, help }
}

/// Every metric there is.
pub const ALL: [Metric; 15] = [
    metric(JOBS_ENQUEUED, Kind::Counter, &["queue", "type"], "Jobs recorded; repeats of a request are not."),
    metric(JOBS_FINISHED, Kind::Counter, &["queue", "type", "outcome"], "Jobs that ended, by how."),
    metric(JOB_WAIT, JOBS, &["queue"], "How long jobs were eligible before they were claimed."),
    metric(JOB_RUN, JOBS, &["queue", "type"], "How long attempts took that ran in this process."),
    metric(QUEUE_DEPTH, Kind::Gauge, &["queue", "state"], "Unfinished jobs by state; told by the leader alone."),
    metric(QUEUE_OLDEST, Kind::Gauge, &["queue"], "How long the oldest claimable job has waited; told by the leader."),
    metric(LEASES_LOST, Kind::Counter, &[], "Leases that ran out and were taken back; counted by the leader."),
    metric(STALE_WRITES, Kind::Counter, &[], "Outcomes, progress and lines that were refused: their lease was lost."),
    metric(CLAIM, CLAIMS, &[], "How long it took to claim jobs, those claims included that found none."),
    metric(LEADER, Kind::Gauge, &["node"], "Whether this node leads."),
    metric(LEADER_CHANGES, Kind::Counter, &[], "How often the leader changed, as far as this node saw."),
    metric(WORKERS, Kind::Gauge, &["state"], "Workers that are known, by how they are; told by the leader alone."),
    metric(
        SCHEDULE_FIRES,
        Kind::Counter,
        &["schedule", "outcome"],
        "Nominal times of schedules, by what became of them.",
    ),
    metric(HTTP_REQUESTS, Kind::Counter, &["route", "method", "status"], "Requests that were answered."),
    metric(HTTP_REQUEST, REQUESTS, &[], "How long requests took; long polls wait."),
];

/// Tells the recorder what there is. Counters without labels stand at nothing from here on, rather than nowhere.
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

/// A claim that took this long has given these jobs.
pub fn claimed(took: Duration, jobs: &[ClaimedJob]) {
    histogram!(CLAIM).record(took);
    // The jobs of a claim are mostly of one queue.
    let mut last: Option<(&Queue, metrics::Histogram)> = None;
    for job in jobs {
        let waits = match &last {
            Some((queue, waits)) if *queue == &job.queue => waits,
            _ => &last.insert((&job.queue, histogram!(JOB_WAIT, "queue" => series::queue(&job.queue)))).1,
        };
        // Both times are the store's.
        let since = job.lease_expires_at.duration_since(job.eligible_at).as_secs_f64();
        waits.record((since - job.lease.as_secs_f64()).max(0.0));
    }
}

/// So many writes were refused because their lease was lost.
pub fn stale_writes(n: usize) {
    if n > 0 {
        counter!(STALE_WRITES).increment(n as u64);
    }
}

/// So many leases ran out and were taken back.
pub fn leases_lost(n: usize) {
    if n > 0 {
        counter!(LEASES_LOST).increment(n as u64);
    }
}

/// Whether this node leads. To be said again and again: what is not said for a while may be forgotten.
pub fn leads(node: &NodeName, leads: bool) {
    gauge!(LEADER, "node" => node.to_string()).set(if leads { 1.0 } else { 0.0 });
}

/// Another leads than before.
pub fn leader_changed() {
    counter!(LEADER_CHANGES).increment(1);
}

/// How many workers are in this state.
pub fn workers(state: &'static str, n: usize) {
    gauge!(WORKERS, "state" => state).set(n as f64);
}

/// A request was answered. `route` is what it was matched by, never what stood in it.
pub fn answered(route: &str, method: &'static str, status: u16, took: Duration) {
    let (route, status) = (route.to_owned(), status.to_string());
    counter!(HTTP_REQUESTS, "route" => route, "method" => method, "status" => status).increment(1);
    histogram!(HTTP_REQUEST).record(took);
}

pub(crate) fn lane(queue: &Queue, job_type: &JobType) -> [metrics::Label; 2] {
    let (queue, job_type) = series::lane(queue, job_type);
    [metrics::Label::new("queue", queue), metrics::Label::new("type", job_type)]
}
