//! Workers make themselves known, show that they live, and are forgotten when they do not.

use std::time::Duration;

use orchestrix_core::WorkerName;

use super::{Harness, fixture::*};
use crate::{Directive, Fence, PageRequest, Queues, Verdict, WorkerInfo, WorkerStatus};

fn info(name: &str) -> WorkerInfo {
    WorkerInfo {
        name: worker(name),
        queues: Queues::Named(vec![queue("a"), queue("b")]),
        job_types: Some(vec![job_type("t:1")]),
        concurrency: 8,
    }
}

async fn register(h: &Harness, name: &str) {
    h.store.register_worker(&info(name)).await.expect("a store that answers");
}

async fn workers(h: &Harness) -> Vec<WorkerStatus> {
    h.store.workers(&PageRequest::first(1_000)).await.expect("a valid page").items
}

async fn names(h: &Harness) -> Vec<WorkerName> {
    workers(h).await.into_iter().map(|worker| worker.info.name).collect()
}

pub(super) async fn a_worker_is_known_as_it_said(h: &Harness) {
    register(h, "ann").await;
    let any = WorkerInfo { name: worker("bob"), queues: Queues::All, job_types: None, concurrency: 1 };
    h.store.register_worker(&any).await.expect("a store that answers");
    let now = h.now().await;
    let status = |info: WorkerInfo| WorkerStatus {
        free_slots: info.concurrency,
        info,
        directive: Directive::Run,
        started_at: now,
        last_seen_at: now,
    };
    assert_eq!(workers(h).await, [status(info("ann")), status(any)]);
}

pub(super) async fn a_heartbeat_shows_that_a_worker_lives(h: &Harness) {
    register(h, "ann").await;
    let started_at = h.now().await;
    h.advance(secs(10)).await;
    let directive = h.store.heartbeat_worker(&worker("ann"), 3).await.expect("a store that answers");
    assert_eq!(directive, Some(Directive::Run));
    let status = workers(h).await.remove(0);
    assert_eq!((status.free_slots, status.started_at), (3, started_at));
    assert_eq!(status.last_seen_at, h.now().await);
}

pub(super) async fn a_heartbeat_of_a_stranger_makes_it_no_worker(h: &Harness) {
    assert_eq!(h.store.heartbeat_worker(&worker("ann"), 3).await.expect("a store that answers"), None);
    assert_eq!(workers(h).await, []);
}

pub(super) async fn a_worker_that_registers_again_begins_anew(h: &Harness) {
    register(h, "ann").await;
    h.store.heartbeat_worker(&worker("ann"), 0).await.expect("a store that answers");
    h.advance(secs(10)).await;
    let now = h.now().await;
    let again = WorkerInfo { queues: Queues::All, concurrency: 2, ..info("ann") };
    h.store.register_worker(&again).await.expect("a store that answers");
    let status =
        WorkerStatus { info: again, directive: Directive::Run, free_slots: 2, started_at: now, last_seen_at: now };
    assert_eq!(workers(h).await, [status]);
}

pub(super) async fn a_removed_worker_keeps_its_leases(h: &Harness) {
    register(h, "ann").await;
    let claimed = h.start(job("t")).await;
    assert!(h.store.remove_worker(&worker("ann")).await.expect("a store that answers"));
    assert!(!h.store.remove_worker(&worker("ann")).await.expect("a store that answers"));
    assert_eq!(workers(h).await, []);
    h.end(&claimed, Verdict::DONE).await;
}

pub(super) async fn the_longest_silent_are_forgotten_first(h: &Harness) {
    for name in ["c", "b", "a"] {
        register(h, name).await;
        h.advance(secs(1)).await;
    }
    h.advance(secs(28)).await;
    let forget =
        |limit| async move { h.store.forget_workers(Fence::NONE, secs(30), limit).await.expect("a valid limit") };
    assert_eq!(forget(1).await, 1);
    assert_eq!(names(h).await, [worker("a"), worker("b")]);
    assert_eq!(forget(10).await, 1);
    assert_eq!(names(h).await, [worker("a")]);
    h.store.heartbeat_worker(&worker("a"), 0).await.expect("a store that answers");
    h.advance(secs(29)).await;
    assert_eq!(forget(10).await, 0);
    h.advance(secs(1)).await;
    assert_eq!(h.store.forget_workers(Fence::NONE, Duration::MAX, 10).await.expect("a valid limit"), 0);
    assert_eq!(forget(10).await, 1);
}

pub(super) async fn workers_are_listed_by_name_page_by_page(h: &Harness) {
    for name in ["d", "b", "a", "e", "c"] {
        register(h, name).await;
    }
    let mut listed = Vec::new();
    let mut page = PageRequest::first(2);
    loop {
        let part = h.store.workers(&page).await.expect("a valid page");
        assert!(part.items.len() <= 2);
        listed.extend(part.items.into_iter().map(|worker| worker.info.name.to_string()));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 2);
    }
    assert_eq!(listed, ["a", "b", "c", "d", "e"]);
    for limit in [0, 1_001] {
        assert_eq!(bad_fields(h.store.workers(&PageRequest::first(limit)).await), ["limit"]);
    }
}

pub(super) async fn what_a_worker_should_do_is_told_with_its_next_heartbeat(h: &Harness) {
    register(h, "ann").await;
    register(h, "bob").await;
    let direct = |name: &'static str, directive| async move {
        h.store.direct_worker(&worker(name), directive).await.expect("a store that answers")
    };
    let told = |name: &'static str| async move {
        h.store.heartbeat_worker(&worker(name), 1).await.expect("a store that answers").expect("a worker that is known")
    };
    for directive in [Directive::Drain, Directive::Stop, Directive::Run, Directive::Drain] {
        assert!(direct("ann", directive).await);
        assert_eq!(told("ann").await, directive);
        assert_eq!(told("ann").await, directive, "and again");
    }
    assert_eq!(told("bob").await, Directive::Run);
    assert_eq!(workers(h).await[0].directive, Directive::Drain);
    register(h, "ann").await;
    assert_eq!(told("ann").await, Directive::Run, "whoever begins anew begins to work");
    assert!(!direct("stranger", Directive::Drain).await);
}
