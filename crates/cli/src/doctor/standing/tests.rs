use std::collections::BTreeMap;

use orchestrix_core::{JobType, NodeName, Queue, Timestamp, WorkerName};
use orchestrix_store::{Epoch, NodeInfo, NodeStatus, Queues, WorkerInfo, WorkerStatus};

use super::{super::check::Status, *};

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
fn it_is_told_who_leads_and_whether_anybody_could() {
    let with = |nodes: Vec<NodeStatus>| leader(&StoreSnapshot { nodes, ..empty() });
    assert_is(&with(vec![node(true, 1)]), Status::Ok, "n1 leads, in term 7; it started 2h ago; 1 node is there");
    assert_is(&with(vec![node(false, 1), node(false, 2)]), Status::Warning, "nobody leads, though 2 nodes are there");
    assert_is(&with(vec![node(false, 31)]), Status::Warning, "no node is there");
    assert_is(&with(Vec::new()), Status::Warning, "schedules stand still");
}

#[test]
fn workers_are_counted_by_whether_they_live() {
    let run = Directive::Run;
    let with = |workers: Vec<WorkerStatus>, pending: u64| {
        workers_of(&StoreSnapshot { workers, queues: vec![queue(pending, false, None)], ..empty() })
    };
    assert_is(&with(vec![worker(1, run)], 5), Status::Ok, "1 worker is there, 4 of 10 slots free");
    let one_silent = with(vec![worker(1, run), worker(31, run)], 5);
    assert_is(&one_silent, Status::Ok, "listed but silent for longer than they should be: 1");
    assert_is(&with(vec![worker(1, Directive::Drain)], 5), Status::Note, "1 of them take nothing new");
    assert_is(
        &with(vec![worker(31, run)], 0),
        Status::Note,
        "no worker is there; listed but silent for longer than they should be: 1",
    );
    assert_is(&with(Vec::new(), 1), Status::Warning, "no worker is there");
}

fn workers_of(standing: &StoreSnapshot) -> Check {
    workers(standing)
}

#[test]
fn a_paused_queue_is_named_with_what_it_holds() {
    assert_is(&paused(&[queue(3, false, None)]), Status::Ok, "no queue is paused");
    assert_is(&paused(&[queue(0, true, None)]), Status::Note, "email (holds 0)");
    let check = paused(&[queue(3, true, None)]);
    assert_is(&check, Status::Warning, "email (holds 3)");
    assert_eq!(check.advice.as_deref(), Some("if that is no longer meant: orchestrix queues resume email"));
}

#[test]
fn what_nobody_takes_is_named() {
    let lanes =
        vec![(Queue::trusted("email"), JobType::trusted("SEND")), (Queue::trusted("email"), JobType::trusted("OTHER"))];
    let with = |workers| unserved(&StoreSnapshot { workers, lanes: lanes.clone(), ..empty() });
    assert_is(&with(vec![worker(1, Directive::Run)]), Status::Warning, "takes: OTHER in email");
    for nobody in [worker(31, Directive::Run), worker(1, Directive::Drain)] {
        assert_is(&with(vec![nobody]), Status::Warning, "takes: SEND in email, OTHER in email");
    }
    let served = StoreSnapshot { workers: vec![worker(1, Directive::Run)], lanes: lanes[..1].to_vec(), ..empty() };
    assert_is(&unserved(&served), Status::Ok, "taken by some worker");
}

#[test]
fn a_backlog_counts_by_its_age_and_not_where_it_is_meant() {
    assert_is(&backlog(&[]), Status::Ok, "no job waits");
    assert_is(&backlog(&[queue(3, true, Some(9_000))]), Status::Ok, "no job waits");
    assert_is(&backlog(&[queue(3, false, Some(59))]), Status::Ok, "for 59s, in email, which holds 3");
    assert_is(&backlog(&[queue(3, false, Some(60))]), Status::Note, "for 1m");
    assert_is(&backlog(&[queue(3, false, Some(900)), queue(1, false, Some(1))]), Status::Warning, "for 15m");
}

#[test]
fn dead_jobs_are_counted() {
    assert_is(&dead(0), Status::Ok, "no job");
    assert_is(&dead(1), Status::Note, "1 job has failed");
    assert_is(&dead(12), Status::Note, "12 jobs have failed");
    assert_is(&dead(StoreSnapshot::MAX_DEAD), Status::Note, "100000 jobs or more");
}

#[test]
fn every_question_is_answered_once() {
    let names: Vec<&str> = judge(&empty()).iter().map(|check| check.name).collect();
    assert_eq!(names, ["leader", "workers", "paused-queues", "unserved-jobs", "backlog", "dead-jobs"]);
}
