//! Leadership, fences, nodes, and sweep times.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{JobState, NewJob, NodeName, Start};

use super::{Harness, fixture::*};
use orchestrix_store::{
    ClaimRequest, Epoch, Fence, Leadership, NodeInfo, Outcome, PageRequest, Result, Retention, StoreError, SweepTimes,
    WorkerInfo,
};

const TERM: Duration = secs(10);
const PATIENCE: Duration = secs(2);

fn node(name: &str) -> NodeName {
    NodeName::trusted(name)
}

async fn campaign(h: &Harness, name: &str, held: Option<Epoch>) -> Leadership {
    h.store.campaign_for_leadership(&node(name), TERM, held).await.expect("a valid term")
}

async fn lead(h: &Harness, name: &str, held: Option<Epoch>) -> Epoch {
    match campaign(h, name, held).await {
        Leadership::Leading(epoch) => epoch,
        following => panic!("{name} should lead: {following:?}"),
    }
}

fn following(leader: &str, epoch: Epoch, ends_in: Duration) -> Leadership {
    Leadership::Following { leader: Some(node(leader)), epoch, ends_in }
}

pub(super) async fn the_only_candidate_leads_at_once(h: &Harness) {
    let epoch = lead(h, "a", None).await;
    assert!(epoch > Epoch(0));
}

pub(super) async fn a_leader_that_renews_keeps_its_epoch(h: &Harness) {
    let epoch = lead(h, "a", None).await;
    for _ in 0..5 {
        h.advance(TERM - secs(1)).await;
        assert_eq!(lead(h, "a", Some(epoch)).await, epoch);
    }
    assert_eq!(campaign(h, "b", None).await, following("a", epoch, TERM));
}

pub(super) async fn no_other_node_leads_during_a_term(h: &Harness) {
    let epoch = lead(h, "a", None).await;
    h.advance(TERM - Duration::from_millis(1)).await;
    assert_eq!(campaign(h, "b", None).await, following("a", epoch, Duration::from_millis(1)));
    // Neither the right epoch nor the leader's name is enough alone.
    assert_eq!(campaign(h, "b", Some(epoch)).await, following("a", epoch, Duration::from_millis(1)));
    assert_eq!(campaign(h, "a", None).await, following("a", epoch, Duration::from_millis(1)));
    h.advance(Duration::from_millis(1)).await;
    assert!(lead(h, "b", None).await > epoch);
}

pub(super) async fn renewing_an_ended_term_begins_a_new_epoch(h: &Harness) {
    let epoch = lead(h, "a", None).await;
    h.advance(TERM).await;
    let next = lead(h, "a", Some(epoch)).await;
    assert!(next > epoch);
    assert_eq!(lead(h, "a", Some(next)).await, next);
}

pub(super) async fn a_deposed_leader_follows(h: &Harness) {
    let first = lead(h, "a", None).await;
    h.advance(TERM).await;
    let second = lead(h, "b", None).await;
    assert!(second > first);
    assert_eq!(campaign(h, "a", Some(first)).await, following("b", second, TERM));
}

pub(super) async fn a_resignation_lets_another_node_lead_at_once(h: &Harness) {
    let first = lead(h, "a", None).await;
    for (name, epoch) in [("b", first), ("a", Epoch(first.0 + 1)), ("a", Epoch(first.0 - 1))] {
        assert!(
            !h.store.resign_leadership(&node(name), epoch).await.expect("a store that answers"),
            "a node can only end its own term"
        );
    }
    assert_eq!(campaign(h, "b", None).await, following("a", first, TERM));
    assert!(h.store.resign_leadership(&node("a"), first).await.expect("a store that answers"));
    let second = lead(h, "b", None).await;
    assert!(second > first);
    assert!(!h.store.resign_leadership(&node("a"), first).await.expect("a store that answers"));
    assert_eq!(campaign(h, "a", Some(first)).await, following("b", second, TERM));
}

pub(super) async fn the_leader_is_known_during_its_term(h: &Harness) {
    let leader = || async { h.store.leader().await.expect("a store that answers") };
    assert_eq!(leader().await, None, "no node ever led");
    // The leader need not be registered as a node.
    lead(h, "a", None).await;
    h.advance(TERM - Duration::from_millis(1)).await;
    assert_eq!(leader().await, Some(node("a")));
    h.advance(Duration::from_millis(1)).await;
    assert_eq!(leader().await, None, "its term has ended");
    let epoch = lead(h, "b", None).await;
    assert_eq!(leader().await, Some(node("b")));
    assert!(h.store.resign_leadership(&node("b"), epoch).await.expect("a store that answers"));
    assert_eq!(leader().await, None, "it resigned");
}

pub(super) async fn of_many_concurrent_candidates_one_leads(h: &Harness) {
    for round in 0..5 {
        let tasks = (0..16).map(|n| {
            let store = Arc::clone(&h.store);
            tokio::spawn(async move { store.campaign_for_leadership(&node(&format!("n{n}")), TERM, None).await })
        });
        let mut leaders = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            if let Leadership::Leading(epoch) = task.await.expect("no panic").expect("a valid term") {
                leaders.push(epoch);
            }
        }
        assert_eq!(leaders.len(), 1, "round {round}: {leaders:?}");
        h.advance(TERM).await;
    }
}

pub(super) async fn terms_out_of_range_are_refused(h: &Harness) {
    for term in [Duration::ZERO, Duration::from_millis(99), secs(3601)] {
        assert_eq!(bad_fields(h.store.campaign_for_leadership(&node("a"), term, None).await), ["leaderTerm"]);
    }
    lead(h, "a", None).await;
}

/// Runs every sweep under `fence`. Returns how many rows each changed.
async fn sweep_all(h: &Harness, fence: Fence) -> Vec<Result<usize>> {
    let [completed, cancelled, dead, logs, occurrences, audit, operations] = [secs(1); 7];
    let retention = Retention { completed, cancelled, dead, logs, occurrences, audit, operations };
    vec![
        h.store.promote_jobs(fence, 10).await.map(|swept| swept.count),
        h.store.expire_jobs(fence, 10).await.map(|swept| swept.count),
        h.store.reap_leases(fence, 10, 3).await.map(|swept| swept.count),
        h.store.time_out_attempts(fence, 10).await.map(|swept| swept.count),
        h.store.unblock_jobs(fence, 10).await.map(|swept| swept.count),
        h.store.forget_workers(fence, secs(1), 10).await,
        h.store.forget_nodes(fence, secs(1), 10).await,
        h.store.prune_history(fence, &retention, 10).await.map(|pruned| pruned.count),
        h.store.fire_schedules(fence, 10).await.map(|swept| swept.count),
    ]
}

/// Creates work for each sweep.
async fn work_for_all(h: &Harness) {
    let done = h.start(job("done")).await;
    h.end(&done, Outcome::DONE).await;
    h.start(job("silent")).await;
    h.start(NewJob { timeout: Some(secs(5)), lease: secs(3600), ..job("slow") }).await;
    h.enqueue(NewJob { start: Start::After(secs(5)), ..job("later") }).await;
    let expires_at = Some(h.now().await + secs(5));
    h.enqueue(NewJob { expires_at, start: Start::After(secs(900)), ..job("late") }).await;
    h.store.register_worker(&WorkerInfo::any(worker("w"))).await.expect("a valid worker");
    h.store.heartbeat_node(&info("n")).await.expect("a valid node");
    h.advance(secs(60)).await;
}

pub(super) async fn sweeps_of_a_deposed_leader_are_refused_and_change_nothing(h: &Harness) {
    let first = lead(h, "a", None).await;
    work_for_all(h).await;
    let second = lead(h, "b", None).await;
    let everything = || async {
        let jobs = h.list(&orchestrix_store::JobFilter::default()).await;
        let workers = h.store.list_workers(&PageRequest::first(10)).await.expect("a valid page");
        let nodes = h.store.list_nodes(&PageRequest::first(10)).await.expect("a valid page");
        (jobs, workers, nodes, h.depths().await)
    };
    let before = everything().await;
    for answer in sweep_all(h, Fence::of(first, PATIENCE)).await {
        match answer {
            Err(StoreError::Deposed { epoch, current }) => assert_eq!((epoch, current), (first, second)),
            other => panic!("a deposed leader was not refused: {other:?}"),
        }
    }
    assert_eq!(everything().await, before);
    let future = Epoch(second.0 + 1);
    for answer in sweep_all(h, Fence::of(future, PATIENCE)).await {
        assert!(matches!(answer, Err(StoreError::Deposed { .. })), "an epoch that has not begun is refused too");
    }
}

pub(super) async fn sweeps_after_the_end_of_a_term_succeed_until_another_node_leads(h: &Harness) {
    let epoch = lead(h, "a", None).await;
    work_for_all(h).await;
    let fence = Fence::of(epoch, PATIENCE);
    let moved: Vec<usize> =
        sweep_all(h, fence).await.into_iter().map(|answer| answer.expect("the leader's sweep")).collect();
    assert_eq!(&moved[..7], [1, 1, 1, 1, 0, 1, 1]);
    assert_eq!(h.store.promote_jobs(Fence::NONE, 10).await.expect("no fence").count, 0);
}

fn info(name: &str) -> NodeInfo {
    NodeInfo { name: node(name), address: Some(format!("http://{name}:7600")), roles: vec!["coordinator".into()] }
}

pub(super) async fn nodes_are_listed_as_they_registered_and_with_the_leader(h: &Harness) {
    let start = h.now().await;
    for name in ["b", "a", "c"] {
        h.store.heartbeat_node(&info(name)).await.expect("a valid node");
    }
    lead(h, "b", None).await;
    h.advance(secs(3)).await;
    let changed = NodeInfo { address: None, ..info("b") };
    h.store.heartbeat_node(&changed).await.expect("a valid node");
    let first = h.store.list_nodes(&PageRequest::first(2)).await.expect("a valid page");
    let rest = h.store.list_nodes(&PageRequest::after(node("b"), 2)).await.expect("a valid page");
    assert_eq!((first.next, rest.next), (Some(node("b")), None));
    let nodes: Vec<_> = first.items.into_iter().chain(rest.items).collect();
    assert_eq!(nodes.iter().map(|one| one.info.clone()).collect::<Vec<_>>(), [info("a"), changed, info("c")]);
    assert_eq!(nodes.iter().map(|one| one.leads).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!((nodes[1].started_at, nodes[1].last_seen_at), (start, start + secs(3)));
    h.advance(TERM).await;
    let after = h.store.list_nodes(&PageRequest::first(10)).await.expect("a valid page");
    assert!(after.items.iter().all(|one| !one.leads), "after its term no node leads");
    assert!(h.store.remove_node(&node("b")).await.expect("a store that answers"));
    assert!(!h.store.remove_node(&node("b")).await.expect("a store that answers"));
}

pub(super) async fn an_invalid_node_is_refused(h: &Harness) {
    let long = NodeInfo { address: Some("x".repeat(256)), ..info("a") };
    assert_eq!(bad_fields(h.store.heartbeat_node(&long).await), ["address"]);
    let many = NodeInfo { roles: vec!["r".into(); 17], ..info("a") };
    assert_eq!(bad_fields(h.store.heartbeat_node(&many).await), ["roles"]);
    assert_eq!(h.store.list_nodes(&PageRequest::first(10)).await.expect("a valid page").items, []);
}

pub(super) async fn silent_nodes_are_forgotten_longest_silent_first(h: &Harness) {
    for name in ["a", "b", "c"] {
        h.store.heartbeat_node(&info(name)).await.expect("a valid node");
        h.advance(secs(10)).await;
    }
    let names = || async {
        let page = h.store.list_nodes(&PageRequest::first(10)).await.expect("a valid page");
        page.items.into_iter().map(|one| one.info.name.to_string()).collect::<Vec<_>>()
    };
    let forget =
        |limit| async move { h.store.forget_nodes(Fence::NONE, secs(20), limit).await.expect("a valid limit") };
    assert_eq!(forget(1).await, 1);
    assert_eq!(names().await, ["b", "c"]);
    assert_eq!(forget(10).await, 1);
    assert_eq!(names().await, ["c"]);
    assert_eq!(bad_fields(h.store.forget_nodes(Fence::NONE, secs(1), 0).await), ["limit"]);
}

pub(super) async fn next_sweep_times_report_when_each_sweep_has_work(h: &Harness) {
    let next_times =
        || async { SweepTimes { up: None, ..h.store.next_sweep_times().await.expect("a store that answers") } };
    assert_eq!(next_times().await, SweepTimes::default());
    let expires_at = Some(h.now().await + secs(40));
    h.start(NewJob { timeout: Some(secs(30)), lease: secs(20), ..job("running") }).await;
    h.enqueue(NewJob { expires_at, start: Start::After(secs(10)), ..job("later") }).await;
    let expected = SweepTimes {
        promote: Some(secs(10)),
        reap: Some(secs(20)),
        time_out: Some(secs(30)),
        expire: Some(secs(40)),
        ..SweepTimes::default()
    };
    assert_eq!(next_times().await, expected);
    h.advance(secs(25)).await;
    let late = next_times().await;
    assert_eq!((late.promote, late.reap, late.time_out), (Some(Duration::ZERO), Some(Duration::ZERO), Some(secs(5))));
    h.reap().await;
    assert_eq!(next_times().await.reap, None);
}

pub(super) async fn a_job_that_waits_for_a_time_wakes_the_timers(h: &Harness) {
    let soon = Duration::from_millis(300);
    let mut timers = h.store.timer_wakeups();
    h.enqueue(NewJob { start: Start::After(soon), ..job("later") }).await;
    woken(&mut timers).await;
    let claimed = h.start(job("fails")).await;
    timers.drain();
    let outcome = Outcome::Fail { error: "not yet".into(), retryable: true, retry_after: Some(soon) };
    h.end(&claimed, outcome).await;
    woken(&mut timers).await;
    let claimed = h.start(job("snoozes")).await;
    timers.drain();
    h.end(&claimed, Outcome::Snooze(soon)).await;
    woken(&mut timers).await;
    assert_eq!(h.state(claimed.id()).await, JobState::Scheduled);
    assert_eq!(h.claim(&ClaimRequest::any(worker("w"), 10)).await.len(), 0);
}

async fn woken(timers: &mut orchestrix_store::Wakeups) {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, timers.next()).await.expect("a wake-up");
}

pub(super) async fn depths_can_be_folded_without_a_fence(h: &Harness) {
    h.enqueue(job("t")).await;
    let depths = h.depths().await;
    h.store.fold_depths(10).await.expect("a valid limit");
    assert_eq!(h.depths().await, depths);
    assert_eq!(bad_fields(h.store.fold_depths(0).await), ["limit"]);
}

pub(super) async fn tables_can_be_vacuumed_without_a_fence(h: &Harness) {
    let done = h.start(job("t")).await;
    h.end(&done, Outcome::DONE).await;
    let waiting = h.enqueue(job("t")).await;
    let depths = h.depths().await;
    h.store.vacuum_tables().await.expect("any process may ask for a vacuum");
    assert_eq!(h.depths().await, depths);
    assert_eq!(h.state(done.id()).await, JobState::Completed);
    assert_eq!(h.claim(&ClaimRequest::any(worker("w"), 10)).await[0].id(), waiting);
}
