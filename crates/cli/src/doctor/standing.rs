//! Who leads, who works, and what waits: the same questions to every database.

use std::time::Duration;

use orchestrix_api::admin::worker::WorkerView;
use orchestrix_core::JobState;
use orchestrix_store::{Directive, QueueDepth, StoreSnapshot};

use super::check::{Check, listed};
use crate::times;

/// How long a node may be silent: three of its heartbeats. Workers say themselves.
const LIVE_WITHIN: Duration = Duration::from_secs(30);

/// A job that has waited so long is worth a word, or a warning.
const LONG: Duration = Duration::from_secs(60);
const TOO_LONG: Duration = Duration::from_secs(15 * 60);

/// Judges all of it.
pub(super) fn judge(standing: &StoreSnapshot) -> Vec<Check> {
    vec![
        leader(standing),
        workers(standing),
        paused(&standing.queues),
        unserved(standing),
        backlog(&standing.queues),
        dead(standing.dead),
    ]
}

fn leader(standing: &StoreSnapshot) -> Check {
    const NAME: &str = "leader";
    let live =
        standing.nodes.iter().filter(|node| times::since(node.last_seen_at, standing.now) <= LIVE_WITHIN).count();
    let nodes = match live {
        1 => "1 node is there".to_owned(),
        n => format!("{n} nodes are there"),
    };
    match standing.nodes.iter().find(|node| node.leads) {
        Some(node) => {
            let since = times::relative(node.started_at, standing.now);
            Check::ok(
                NAME,
                format!("{} leads, in term {}; it started {since}; {nodes}", node.info.name, standing.epoch.0),
            )
        }
        None if live > 0 => Check::warning(
            NAME,
            format!("nobody leads, though {nodes}; for some seconds after a leader has gone that is as it should be"),
            "ask again in half a minute; if nobody leads then, the nodes' logs say why",
        ),
        None => Check::warning(
            NAME,
            "nobody leads and no node is there: delays, retries and schedules stand still, and jobs of dead workers stay theirs",
            "start `orchestrix server`, or a worker on the database without --no-coordinator",
        ),
    }
}

fn workers(standing: &StoreSnapshot) -> Check {
    const NAME: &str = "workers";
    let live: Vec<_> = standing.workers.iter().filter(|worker| worker.is_live()).collect();
    let silent = standing.workers.len() - live.len();
    let silence = match silent {
        0 => String::new(),
        n => format!("; listed but silent for longer than they should be: {n}"),
    };
    let slots: u64 = live.iter().map(|worker| u64::from(worker.info.concurrency)).sum();
    let free: u64 = live.iter().map(|worker| u64::from(worker.free_slots)).sum();
    let leaving = live.iter().filter(|worker| worker.directive != Directive::Run).count();
    if live.is_empty() {
        let detail = format!("no worker is there{silence}");
        let advice = "start one: `orchestrix worker`, or a program with a worker in it";
        let waits = standing.queues.iter().any(|queue| count(queue, JobState::Pending) > 0);
        return if waits { Check::warning(NAME, detail, advice) } else { Check::note(NAME, detail, advice) };
    }
    let detail = format!("{} there, {free} of {slots} slots free{silence}", people(live.len(), "worker"));
    match leaving {
        0 => Check::ok(NAME, detail),
        n => Check::note(
            NAME,
            format!("{detail}; {n} of them take nothing new"),
            "`orchestrix workers list` shows which",
        ),
    }
}

fn count(queue: &QueueDepth, state: JobState) -> u64 {
    queue.counts.get(&state).copied().unwrap_or(0)
}

fn people(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word} is") } else { format!("{n} {word}s are") }
}

fn paused(queues: &[QueueDepth]) -> Check {
    const NAME: &str = "paused-queues";
    let paused: Vec<&QueueDepth> = queues.iter().filter(|queue| queue.paused).collect();
    if paused.is_empty() {
        return Check::ok(NAME, "no queue is paused");
    }
    let shown = |queue: &&QueueDepth| format!("{} (holds {})", queue.queue, count(queue, JobState::Pending));
    let detail = format!("paused, so nobody is given their jobs: {}", listed(paused.iter().map(shown)));
    let advice = format!("if that is no longer meant: orchestrix queues resume {}", paused[0].queue);
    match paused.iter().any(|queue| count(queue, JobState::Pending) > 0) {
        true => Check::warning(NAME, detail, advice),
        false => Check::note(NAME, detail, advice),
    }
}

fn unserved(standing: &StoreSnapshot) -> Check {
    const NAME: &str = "unserved-jobs";
    let workers: Vec<WorkerView> = standing.workers.iter().cloned().map(WorkerView::from).collect();
    let nobody_takes = |queue, job_type| !workers.iter().any(|worker| worker.serves(queue, job_type));
    let lanes = standing.lanes.iter().filter(|(queue, job_type)| nobody_takes(queue, job_type));
    let lanes: Vec<String> = lanes.map(|(queue, job_type)| format!("{job_type} in {queue}")).collect();
    if lanes.is_empty() {
        return Check::ok(NAME, "whatever waits is taken by some worker");
    }
    Check::warning(
        NAME,
        format!("jobs wait that no live worker takes: {}", listed(lanes)),
        "start a worker that knows these types and serves these queues, or cancel the jobs",
    )
}

fn backlog(queues: &[QueueDepth]) -> Check {
    const NAME: &str = "backlog";
    let open = queues.iter().filter(|queue| !queue.paused);
    let oldest = open.filter_map(|queue| Some((queue.oldest?, queue))).max_by_key(|(age, _)| *age);
    let Some((age, queue)) = oldest else { return Check::ok(NAME, "no job waits to be taken") };
    let pending = count(queue, JobState::Pending);
    let detail = format!(
        "the job that waits longest waits for {}, in {}, which holds {pending}",
        times::brief(age),
        queue.queue
    );
    let advice = "more workers or a higher --concurrency, unless unserved-jobs above says why it waits";
    match age {
        _ if age >= TOO_LONG => Check::warning(NAME, detail, advice),
        _ if age >= LONG => Check::note(NAME, detail, advice),
        _ => Check::ok(NAME, detail),
    }
}

fn dead(jobs: u64) -> Check {
    const NAME: &str = "dead-jobs";
    const ADVICE: &str =
        "look at them: `orchestrix dlq list`; once the cause is mended, `orchestrix dlq redrive` tries them again";
    let many = match jobs {
        0 => return Check::ok(NAME, "no job has failed for good"),
        1 => return Check::note(NAME, "1 job has failed for good and waits for a person", ADVICE),
        n if n >= StoreSnapshot::MAX_DEAD => format!("{n} jobs or more have"),
        n => format!("{n} jobs have"),
    };
    Check::note(NAME, format!("{many} failed for good and wait for a person"), ADVICE)
}

#[cfg(test)]
mod tests;
