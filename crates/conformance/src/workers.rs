//! Workers: registration, heartbeats, directives, and removal of silent ones.

use std::time::Duration;

use orchestrix_core::{Instance, WorkerName};

use super::{Harness, fixture::*};
use orchestrix_store::{Directive, Fence, Outcome, PageRequest, Presence, Queues, WorkerInfo, WorkerStatus};

fn info(name: &str) -> WorkerInfo {
    WorkerInfo {
        name: worker(name),
        queues: Queues::Named(vec![queue("a"), queue("b")]),
        job_types: Some(vec![job_type("t:1")]),
        concurrency: 8,
        instance: Some(Instance::trusted("first")),
        dead_after: Some(secs(30)),
    }
}

async fn register_info(h: &Harness, info: &WorkerInfo) -> Directive {
    h.store.register_worker(info).await.expect("a store that answers")
}

async fn register(h: &Harness, name: &str) {
    assert_eq!(register_info(h, &info(name)).await, Directive::Run);
}

async fn heartbeat(h: &Harness, name: &str, presence: Presence) -> Option<Directive> {
    h.store.heartbeat_worker(&worker(name), presence).await.expect("a store that answers")
}

async fn direct(h: &Harness, name: &str, directive: Directive) -> bool {
    h.store.direct_worker(&worker(name), directive).await.expect("a store that answers")
}

async fn workers(h: &Harness) -> Vec<WorkerStatus> {
    h.store.list_workers(&PageRequest::first(1_000)).await.expect("a valid page").items
}

async fn names(h: &Harness) -> Vec<WorkerName> {
    workers(h).await.into_iter().map(|worker| worker.info.name).collect()
}

pub(super) async fn a_worker_is_listed_as_it_registered(h: &Harness) {
    register(h, "ann").await;
    let any = WorkerInfo::any(worker("bob"));
    register_info(h, &any).await;
    let now = h.now().await;
    let status = |info: WorkerInfo| WorkerStatus {
        free_slots: info.concurrency,
        info,
        directive: Directive::Run,
        started_at: now,
        last_seen_at: now,
        seen_ago: secs(0),
    };
    let usual = WorkerInfo { dead_after: Some(WorkerInfo::DEAD_AFTER), ..any };
    assert_eq!(workers(h).await, [status(info("ann")), status(usual)]);
}

pub(super) async fn a_heartbeat_updates_a_worker(h: &Harness) {
    register(h, "ann").await;
    let started_at = h.now().await;
    h.advance(secs(10)).await;
    assert_eq!(heartbeat(h, "ann", Presence::free(3)).await, Some(Directive::Run));
    let status = workers(h).await.remove(0);
    assert_eq!((status.free_slots, status.started_at), (3, started_at));
    assert_eq!(status.last_seen_at, h.now().await);
    assert_eq!(heartbeat(h, "ann", Presence::default()).await, Some(Directive::Run));
    assert_eq!(workers(h).await[0].free_slots, 3, "a value that is not sent is kept");
}

pub(super) async fn a_heartbeat_does_not_register_a_worker(h: &Harness) {
    assert_eq!(heartbeat(h, "ann", Presence::free(3)).await, None);
    assert_eq!(workers(h).await, []);
}

pub(super) async fn a_new_instance_of_a_worker_starts_over(h: &Harness) {
    register(h, "ann").await;
    heartbeat(h, "ann", Presence::free(0)).await;
    assert!(direct(h, "ann", Directive::Drain).await);
    h.advance(secs(10)).await;
    let now = h.now().await;
    let again = WorkerInfo {
        queues: Queues::All,
        concurrency: 2,
        instance: Some(Instance::trusted("second")),
        dead_after: Some(secs(90)),
        ..info("ann")
    };
    assert_eq!(register_info(h, &again).await, Directive::Run);
    let status = WorkerStatus {
        info: again,
        directive: Directive::Run,
        free_slots: 2,
        started_at: now,
        last_seen_at: now,
        seen_ago: secs(0),
    };
    assert_eq!(workers(h).await, [status]);
}

pub(super) async fn registering_again_keeps_the_directive(h: &Harness) {
    let nameless = WorkerInfo { instance: None, dead_after: None, ..info("bob") };
    register(h, "ann").await;
    register_info(h, &nameless).await;
    let started_at = h.now().await;
    for (info, name) in [(info("ann"), "ann"), (nameless, "bob")] {
        heartbeat(h, name, Presence::free(1)).await;
        assert!(direct(h, name, Directive::Drain).await);
        h.advance(secs(10)).await;
        let other = WorkerInfo { queues: Queues::All, concurrency: 2, ..info };
        assert_eq!(register_info(h, &other).await, Directive::Drain, "{name}");
        let found = workers(h).await;
        let status = found.iter().find(|status| status.info.name.as_str() == name).expect("a listed worker");
        assert_eq!((status.directive, status.free_slots, status.started_at), (Directive::Drain, 1, started_at));
        assert_eq!(
            (&status.info.queues, status.info.concurrency),
            (&Queues::All, 2),
            "queues and concurrency are updated"
        );
        assert_eq!(status.last_seen_at, h.now().await);
        assert_eq!(status.info.dead_after, Some(secs(30)));
    }
    // A heartbeat without an instance id is accepted.
    assert_eq!(register_info(h, &WorkerInfo::any(worker("ann"))).await, Directive::Drain);
    assert_eq!(workers(h).await[0].info.instance, info("ann").instance);
}

pub(super) async fn a_worker_that_counts_as_dead_registers_anew(h: &Harness) {
    let nameless = WorkerInfo { instance: None, ..info("bob") };
    register(h, "ann").await;
    register_info(h, &nameless).await;
    for name in ["ann", "bob"] {
        assert!(direct(h, name, Directive::Drain).await);
    }
    h.advance(secs(30)).await;
    assert!(workers(h).await.iter().all(WorkerStatus::is_live));
    h.advance(Duration::from_millis(1)).await;
    assert!(!workers(h).await.iter().any(WorkerStatus::is_live));
    assert_eq!(heartbeat(h, "ann", Presence::free(1)).await, None);
    assert_eq!(heartbeat(h, "bob", Presence::free(1)).await, None);
    // The same instance was cut off and still drains. Without an instance id the worker may be a new process.
    assert_eq!(register_info(h, &info("ann")).await, Directive::Drain);
    assert_eq!(register_info(h, &nameless).await, Directive::Run);
    assert_eq!(heartbeat(h, "bob", Presence::free(1)).await, Some(Directive::Run));
}

pub(super) async fn a_worker_counts_as_dead_after_its_own_interval_by_the_clock_of_the_store(h: &Harness) {
    let patient = WorkerInfo { dead_after: Some(secs(180)), ..info("slow") };
    register_info(h, &patient).await;
    register(h, "usual").await;
    h.advance(secs(31)).await;
    let found = workers(h).await;
    let live: Vec<(&str, bool, Duration)> =
        found.iter().map(|status| (status.info.name.as_str(), status.is_live(), status.seen_ago)).collect();
    assert_eq!(live, [("slow", true, secs(31)), ("usual", false, secs(31))]);
    let forget = || async { h.store.forget_workers(Fence::NONE, secs(30), 10).await.expect("a valid limit") };
    assert_eq!(forget().await, 1);
    assert_eq!(names(h).await, [worker("slow")]);
    assert_eq!(heartbeat(h, "slow", Presence::free(1)).await, Some(Directive::Run));
    h.advance(secs(180)).await;
    assert_eq!(h.store.forget_workers(Fence::NONE, secs(181), 10).await.expect("a valid limit"), 0);
    assert_eq!(forget().await, 1);
    // However long its interval, it is forgotten some day.
    register_info(h, &WorkerInfo { dead_after: Some(Duration::MAX), ..info("eternal") }).await;
    assert_eq!(workers(h).await[0].info.dead_after, Some(WorkerInfo::MAX_DEAD_AFTER));
}

pub(super) async fn a_worker_that_drains_on_its_own_is_listed_as_draining(h: &Harness) {
    register(h, "ann").await;
    let drains = || Presence { draining: true, ..Presence::free(0) };
    assert_eq!(heartbeat(h, "ann", drains()).await, Some(Directive::Drain));
    assert_eq!(workers(h).await[0].directive, Directive::Drain);
    assert_eq!(heartbeat(h, "ann", Presence::free(0)).await, Some(Directive::Drain), "draining cannot be undone");
    // A stop directive takes precedence.
    assert!(direct(h, "ann", Directive::Stop).await);
    assert_eq!(heartbeat(h, "ann", drains()).await, Some(Directive::Stop));
}

pub(super) async fn an_instance_whose_name_was_taken_cannot_change_the_new_one(h: &Harness) {
    let (first, second) = (Some(Instance::trusted("first")), Some(Instance::trusted("second")));
    register(h, "ann").await;
    register_info(h, &WorkerInfo { instance: second.clone(), ..info("ann") }).await;
    heartbeat(h, "ann", Presence { instance: second.clone(), ..Presence::free(3) }).await;
    let before = workers(h).await;
    h.advance(secs(1)).await;
    let drains = Presence { draining: true, instance: first.clone(), ..Presence::free(0) };
    assert_eq!(heartbeat(h, "ann", drains).await, Some(Directive::Run), "the old instance may continue");
    assert!(!h.store.remove_worker(&worker("ann"), first.as_ref()).await.expect("a store that answers"));
    let after = workers(h).await;
    assert_eq!((after[0].directive, after[0].free_slots), (Directive::Run, 3), "{after:?}");
    assert_eq!(after[0].last_seen_at, before[0].last_seen_at);
    assert!(h.store.remove_worker(&worker("ann"), second.as_ref()).await.expect("a store that answers"));
}

pub(super) async fn an_update_without_an_instance_changes_nothing_of_a_named_instance(h: &Harness) {
    register(h, "ann").await;
    let before = workers(h).await;
    h.advance(secs(1)).await;
    let nameless = WorkerInfo { concurrency: 77, ..WorkerInfo::any(worker("ann")) };
    register_info(h, &nameless).await;
    let after = workers(h).await;
    assert_eq!(after[0].info, before[0].info);
    assert_eq!(after[0].last_seen_at, before[0].last_seen_at + secs(1), "it is live");
}

pub(super) async fn the_store_has_its_own_time(h: &Harness) {
    let before = h.store.now().await.expect("a store that answers");
    assert_eq!(before, h.now().await);
    h.advance(secs(5)).await;
    assert_eq!(h.store.now().await.expect("a store that answers"), before + secs(5));
}

pub(super) async fn a_removed_worker_keeps_its_leases(h: &Harness) {
    register(h, "ann").await;
    let claimed = h.start(job("t")).await;
    assert!(h.store.remove_worker(&worker("ann"), None).await.expect("a store that answers"));
    assert!(!h.store.remove_worker(&worker("ann"), None).await.expect("a store that answers"));
    assert_eq!(workers(h).await, []);
    h.end(&claimed, Outcome::DONE).await;
}

pub(super) async fn silent_workers_are_forgotten_longest_silent_first(h: &Harness) {
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
    heartbeat(h, "a", Presence::free(0)).await;
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
        let part = h.store.list_workers(&page).await.expect("a valid page");
        assert!(part.items.len() <= 2);
        listed.extend(part.items.into_iter().map(|worker| worker.info.name.to_string()));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 2);
    }
    assert_eq!(listed, ["a", "b", "c", "d", "e"]);
    for limit in [0, 1_001] {
        assert_eq!(bad_fields(h.store.list_workers(&PageRequest::first(limit)).await), ["limit"]);
    }
}

pub(super) async fn a_heartbeat_returns_the_directive(h: &Harness) {
    register(h, "ann").await;
    register(h, "bob").await;
    let directive_of =
        |name: &'static str| async move { heartbeat(h, name, Presence::free(1)).await.expect("a registered worker") };
    for directive in [Directive::Drain, Directive::Stop, Directive::Run, Directive::Drain] {
        assert!(direct(h, "ann", directive).await);
        assert_eq!(directive_of("ann").await, directive);
        assert_eq!(directive_of("ann").await, directive, "every time");
    }
    assert_eq!(directive_of("bob").await, Directive::Run);
    assert_eq!(workers(h).await[0].directive, Directive::Drain);
    assert!(!direct(h, "unknown", Directive::Drain).await);
}
