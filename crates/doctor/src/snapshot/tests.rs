use std::collections::BTreeMap;

use orchestrix_core::{JobType, NodeName, Queue, Timestamp, WorkerName};
use orchestrix_store::{Epoch, NodeInfo, NodeStatus, Queues, WorkerInfo, WorkerStatus};

use super::*;
use crate::check::Status;

fn now() -> Timestamp {
    "2026-01-31T09:00:00Z".parse().unwrap()
}

fn ago(seconds: u64) -> Timestamp {
    now().checked_sub(Duration::from_secs(seconds)).unwrap()
}

fn empty() -> StoreSnapshot {
    StoreSnapshot {
        now: now(),
        epoch: Epoch(7),
        nodes: Vec::new(),
        workers: Vec::new(),
        queues: Vec::new(),
        lanes: Vec::new(),
        dead: 0,
    }
}

fn node(leads: bool, seen: u64) -> NodeStatus {
    let info = NodeInfo { name: NodeName::trusted("n1"), address: None, roles: Vec::new() };
    NodeStatus { info, leads, started_at: ago(7_200), last_seen_at: ago(seen) }
}

fn worker(seen: u64, directive: Directive) -> WorkerStatus {
    let info = WorkerInfo {
        queues: Queues::Named(vec![Queue::trusted("email")]),
        job_types: Some(vec![JobType::trusted("SEND")]),
        concurrency: 10,
        ..WorkerInfo::any(WorkerName::trusted("w1"))
    };
    let seen_ago = Duration::from_secs(seen);
    WorkerStatus { info, directive, free_slots: 4, started_at: ago(60), last_seen_at: ago(seen), seen_ago }
}

fn queue(pending: u64, paused: bool, oldest: Option<u64>) -> QueueDepth {
    QueueDepth {
        queue: Queue::trusted("email"),
        paused,
        counts: BTreeMap::from([(JobState::Pending, pending)]),
        oldest: oldest.map(Duration::from_secs),
    }
}

fn assert_is(check: &Check, status: Status, words: &str) {
    assert!(check.status == status && check.detail.contains(words), "not {status} with {words:?}: {check:?}");
    assert_eq!(check.advice.is_none(), status == Status::Ok, "{check:?}");
}

#[test]
fn the_leader_is_named_and_a_missing_leader_is_a_warning() {
    let with = |nodes: Vec<NodeStatus>| leader(&StoreSnapshot { nodes, ..empty() });
    assert_is(&with(vec![node(true, 1)]), Status::Ok, "n1 leads (epoch 7, up 2h); 1 live node");
    assert_is(&with(vec![node(false, 1), node(false, 2)]), Status::Warning, "no leader among 2 live nodes");
    assert_is(&with(vec![node(false, 31)]), Status::Warning, "no node is live");
    assert_is(&with(Vec::new()), Status::Warning, "schedules do not run");
}

#[test]
fn live_silent_and_draining_workers_are_counted() {
    let run = Directive::Run;
    let with = |statuses: Vec<WorkerStatus>, pending: u64| {
        workers(&StoreSnapshot { workers: statuses, queues: vec![queue(pending, false, None)], ..empty() })
    };
    assert_is(&with(vec![worker(1, run)], 5), Status::Ok, "1 worker live, 4 of 10 slots free");
    let one_silent = with(vec![worker(1, run), worker(31, run)], 5);
    assert_is(&one_silent, Status::Ok, "1 listed without a recent heartbeat");
    assert_is(&with(vec![worker(1, Directive::Drain)], 5), Status::Note, "1 draining or stopping");
    assert_is(&with(vec![worker(31, run)], 0), Status::Note, "no live worker; 1 listed without a recent heartbeat");
    assert_is(&with(Vec::new(), 1), Status::Warning, "no live worker");
}

#[test]
fn a_paused_queue_is_named_with_its_pending_jobs() {
    assert_is(&paused_queues(&[queue(3, false, None)]), Status::Ok, "no queue is paused");
    assert_is(&paused_queues(&[queue(0, true, None)]), Status::Note, "email (holds 0)");
    let check = paused_queues(&[queue(3, true, None)]);
    assert_is(&check, Status::Warning, "email (holds 3)");
    assert_eq!(check.advice.as_deref(), Some("to resume it: orchestrix queues resume email"));
}

#[test]
fn lanes_without_a_live_worker_are_named() {
    let lanes =
        vec![(Queue::trusted("email"), JobType::trusted("SEND")), (Queue::trusted("email"), JobType::trusted("OTHER"))];
    let with = |workers| unserved_jobs(&StoreSnapshot { workers, lanes: lanes.clone(), ..empty() });
    assert_is(&with(vec![worker(1, Directive::Run)]), Status::Warning, "pending jobs: OTHER in email");
    for unavailable in [worker(31, Directive::Run), worker(1, Directive::Drain)] {
        assert_is(&with(vec![unavailable]), Status::Warning, "pending jobs: SEND in email, OTHER in email");
    }
    let served = StoreSnapshot { workers: vec![worker(1, Directive::Run)], lanes: lanes[..1].to_vec(), ..empty() };
    assert_is(&unserved_jobs(&served), Status::Ok, "served by a live worker");
}

#[test]
fn an_old_backlog_is_reported_unless_its_queue_is_paused() {
    assert_is(&backlog(&[]), Status::Ok, "no pending jobs");
    assert_is(&backlog(&[queue(3, true, Some(9_000))]), Status::Ok, "no pending jobs");
    assert_is(&backlog(&[queue(3, false, Some(59))]), Status::Ok, "has waited 59s, in queue email with 3 pending");
    assert_is(&backlog(&[queue(3, false, Some(60))]), Status::Note, "has waited 1m");
    assert_is(&backlog(&[queue(3, false, Some(900)), queue(1, false, Some(1))]), Status::Warning, "has waited 15m");
}

#[test]
fn dead_jobs_are_counted() {
    assert_is(&dead_jobs(0), Status::Ok, "no jobs in the dead-letter queue");
    assert_is(&dead_jobs(1), Status::Note, "1 job in");
    assert_is(&dead_jobs(12), Status::Note, "12 jobs in");
    assert_is(&dead_jobs(StoreSnapshot::MAX_DEAD), Status::Note, "100000 or more jobs");
}

#[test]
fn every_check_runs_once() {
    let names: Vec<&str> = evaluate(&empty()).iter().map(|check| check.name).collect();
    assert_eq!(names, ["leader", "workers", "paused-queues", "unserved-jobs", "backlog", "dead-jobs"]);
}
