//! Leader, workers, queues and jobs: the same checks for every database.

use std::time::Duration;

use orchestrix_api::admin::worker::WorkerView;
use orchestrix_core::{JobState, Timestamp};
use orchestrix_store::{Directive, QueueDepth, StoreSnapshot};

use crate::check::{Check, brief, join_first};

/// A node counts as live within three of its heartbeats. Workers report their own limit.
const NODE_LIVE_WITHIN: Duration = Duration::from_secs(30);

/// The age of the oldest pending job that is worth a note, and a warning.
const LONG_WAIT: Duration = Duration::from_secs(60);
const TOO_LONG_WAIT: Duration = Duration::from_secs(15 * 60);

/// Evaluates a snapshot of the store.
pub(crate) fn evaluate(snapshot: &StoreSnapshot) -> Vec<Check> {
    vec![
        leader(snapshot),
        workers(snapshot),
        paused_queues(&snapshot.queues),
        unserved_jobs(snapshot),
        backlog(&snapshot.queues),
        dead_jobs(snapshot.dead),
    ]
}

fn since(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(earlier)).unwrap_or_default()
}

fn leader(snapshot: &StoreSnapshot) -> Check {
    const NAME: &str = "leader";
    let live = snapshot.nodes.iter().filter(|node| since(node.last_seen_at, snapshot.now) <= NODE_LIVE_WITHIN).count();
    let nodes = match live {
        1 => "1 live node".to_owned(),
        n => format!("{n} live nodes"),
    };
    match snapshot.nodes.iter().find(|node| node.leads) {
        Some(node) => {
            let uptime = brief(since(node.started_at, snapshot.now));
            Check::ok(NAME, format!("{} leads (epoch {}, up {uptime}); {nodes}", node.info.name, snapshot.epoch.0))
        }
        None if live > 0 => Check::warning(
            NAME,
            format!("no leader among {nodes}; this is normal for some seconds after a leader is gone"),
            "run the doctor again in half a minute; if there is still no leader, see the nodes' logs",
        ),
        None => Check::warning(
            NAME,
            "no leader, and no node is live: delays, retries and schedules do not run, and expired leases are not reaped",
            "start `orchestrix server`, or a worker with --database and without --no-coordinator",
        ),
    }
}

fn workers(snapshot: &StoreSnapshot) -> Check {
    const NAME: &str = "workers";
    let live: Vec<_> = snapshot.workers.iter().filter(|worker| worker.is_live()).collect();
    let silent = match snapshot.workers.len() - live.len() {
        0 => String::new(),
        n => format!("; {n} listed without a recent heartbeat"),
    };
    let slots: u64 = live.iter().map(|worker| u64::from(worker.info.concurrency)).sum();
    let free: u64 = live.iter().map(|worker| u64::from(worker.free_slots)).sum();
    let draining = live.iter().filter(|worker| worker.directive != Directive::Run).count();
    if live.is_empty() {
        let detail = format!("no live worker{silent}");
        let advice = "start a worker: `orchestrix worker`, or an application with a worker";
        let has_pending = snapshot.queues.iter().any(|queue| count(queue, JobState::Pending) > 0);
        return if has_pending { Check::warning(NAME, detail, advice) } else { Check::note(NAME, detail, advice) };
    }
    let workers = if live.len() == 1 { "worker" } else { "workers" };
    let detail = format!("{} {workers} live, {free} of {slots} slots free{silent}", live.len());
    match draining {
        0 => Check::ok(NAME, detail),
        n => Check::note(
            NAME,
            format!("{detail}; {n} draining or stopping"),
            "`orchestrix workers list` shows which workers claim no new jobs",
        ),
    }
}

fn count(queue: &QueueDepth, state: JobState) -> u64 {
    queue.counts.get(&state).copied().unwrap_or(0)
}

fn paused_queues(queues: &[QueueDepth]) -> Check {
    const NAME: &str = "paused-queues";
    let paused: Vec<&QueueDepth> = queues.iter().filter(|queue| queue.paused).collect();
    if paused.is_empty() {
        return Check::ok(NAME, "no queue is paused");
    }
    let describe = |queue: &&QueueDepth| format!("{} (holds {})", queue.queue, count(queue, JobState::Pending));
    let detail = format!("workers claim no jobs from paused queues: {}", join_first(paused.iter().map(describe)));
    let advice = format!("to resume it: orchestrix queues resume {}", paused[0].queue);
    match paused.iter().any(|queue| count(queue, JobState::Pending) > 0) {
        true => Check::warning(NAME, detail, advice),
        false => Check::note(NAME, detail, advice),
    }
}

fn unserved_jobs(snapshot: &StoreSnapshot) -> Check {
    const NAME: &str = "unserved-jobs";
    let workers: Vec<WorkerView> = snapshot.workers.iter().cloned().map(WorkerView::from).collect();
    let is_unserved = |queue, job_type| !workers.iter().any(|worker| worker.serves(queue, job_type));
    let lanes = snapshot.lanes.iter().filter(|(queue, job_type)| is_unserved(queue, job_type));
    let lanes: Vec<String> = lanes.map(|(queue, job_type)| format!("{job_type} in {queue}")).collect();
    if lanes.is_empty() {
        return Check::ok(NAME, "every pending job is served by a live worker");
    }
    Check::warning(
        NAME,
        format!("no live worker serves these pending jobs: {}", join_first(lanes)),
        "start a worker that registers these job types and serves these queues, or cancel the jobs",
    )
}

fn backlog(queues: &[QueueDepth]) -> Check {
    const NAME: &str = "backlog";
    let open = queues.iter().filter(|queue| !queue.paused);
    let oldest = open.filter_map(|queue| Some((queue.oldest?, queue))).max_by_key(|(age, _)| *age);
    let Some((age, queue)) = oldest else { return Check::ok(NAME, "no pending jobs") };
    let pending = count(queue, JobState::Pending);
    let detail =
        format!("the oldest pending job has waited {}, in queue {} with {pending} pending", brief(age), queue.queue);
    let advice = "add workers or raise --concurrency, unless unserved-jobs above explains the wait";
    match age {
        _ if age >= TOO_LONG_WAIT => Check::warning(NAME, detail, advice),
        _ if age >= LONG_WAIT => Check::note(NAME, detail, advice),
        _ => Check::ok(NAME, detail),
    }
}

fn dead_jobs(jobs: u64) -> Check {
    const NAME: &str = "dead-jobs";
    const ADVICE: &str =
        "inspect them with `orchestrix dlq list`, fix the cause, then retry them with `orchestrix dlq redrive`";
    match jobs {
        0 => Check::ok(NAME, "no jobs in the dead-letter queue"),
        1 => Check::note(NAME, "1 job in the dead-letter queue", ADVICE),
        n if n >= StoreSnapshot::MAX_DEAD => {
            Check::note(NAME, format!("{n} or more jobs in the dead-letter queue"), ADVICE)
        }
        n => Check::note(NAME, format!("{n} jobs in the dead-letter queue"), ADVICE),
    }
}

#[cfg(test)]
mod tests;
