//! Several nodes on one store: one leads, and another takes over when it stops.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::{JobState, NewJob, NodeName, Start};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{NodeInfo, PageRequest, Store};

use crate::support::{TERM, job, leading, options, start, wait_for};

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

/// Waits until one node leads and returns its index.
async fn leader_of(nodes: &[Coordinator]) -> usize {
    wait_for("one node leads", async || nodes.iter().position(|node| node.status().leading)).await
}

#[tokio::test]
async fn a_lone_node_leads_soon_after_its_start() {
    let store = memory();
    let started = Instant::now();
    let node = start(&store, "a");
    let status = leading(&node).await;
    // Usually a tenth of a second; a busy machine gets more.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(status.leader.unwrap().as_str(), "a");
    assert!(node.status().is_healthy());
}

#[tokio::test]
async fn one_of_three_nodes_leads_and_the_others_know_the_leader() {
    let store = memory();
    let nodes: Vec<Coordinator> = ["a", "b", "c"].iter().map(|name| start(&store, name)).collect();
    let leader = nodes[leader_of(&nodes).await].status().leader;
    for node in &nodes {
        wait_for("the node knows the leader", async || (node.status().leader == leader).then_some(())).await;
    }
    tokio::time::sleep(2 * TERM).await;
    assert_eq!(nodes.iter().filter(|node| node.status().leading).count(), 1);
    assert!(
        nodes.iter().all(|node| node.status().leader_changes == 1),
        "renewing a term does not count as a change of leader"
    );
    wait_for("all nodes are listed", async || {
        (store.list_nodes(&PageRequest::first(10)).await.unwrap().items.len() == 3).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_that_cannot_lead_is_listed_until_it_leaves_and_never_leads() {
    let store = memory();
    let info =
        NodeInfo { name: NodeName::trusted("api"), address: Some("127.0.0.1:8080".into()), roles: vec!["api".into()] };
    let options = CoordinatorOptions { node: info.clone(), can_lead: false, ..options("api") };
    let member = Coordinator::start(Arc::clone(&store), options).unwrap();
    let listed = async || store.list_nodes(&PageRequest::first(10)).await.unwrap().items;
    let node = wait_for("the node is listed", async || listed().await.pop()).await;
    assert_eq!((&node.info, node.leads), (&info, false));
    // It keeps sending heartbeats, and there is no leader.
    wait_for("the node sends another heartbeat", async || {
        listed().await.pop().filter(|again| again.last_seen_at > node.last_seen_at)
    })
    .await;
    tokio::time::sleep(2 * TERM).await;
    assert_eq!(store.leader().await.unwrap(), None);
    // Another node can lead.
    let other = start(&store, "b");
    leading(&other).await;
    wait_for("both nodes are listed", async || (listed().await.len() == 2).then_some(())).await;
    let both: Vec<_> = listed().await.into_iter().map(|node| (node.info.name.to_string(), node.leads)).collect();
    assert_eq!(both, [("api".to_owned(), false), ("b".to_owned(), true)]);
    assert!(!member.status().leading && member.status().services.is_empty());
    // It does not take over either.
    other.shutdown().await;
    tokio::time::sleep(2 * TERM).await;
    assert_eq!(store.leader().await.unwrap(), None);
    member.shutdown().await;
    assert_eq!(listed().await.len(), 0, "the node removed its registration");
}

#[tokio::test]
async fn after_a_leader_shuts_down_another_leads_before_the_term_would_end() {
    let store = memory();
    let long = |name: &str| {
        let options = CoordinatorOptions { term: Duration::from_secs(600), ..options(name) };
        Coordinator::start(Arc::clone(&store), options).unwrap()
    };
    let first = long("a");
    leading(&first).await;
    let second = long("b");
    first.shutdown().await;
    let status = leading(&second).await;
    assert_eq!(status.leader.unwrap().as_str(), "b");
    let nodes = store.list_nodes(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!(
        nodes.iter().filter(|node| node.info.name.as_str() == "a").count(),
        0,
        "the node removed its registration"
    );
}

#[tokio::test]
async fn after_a_leader_vanishes_another_leads_when_the_term_is_over() {
    let store = memory();
    let first = start(&store, "a");
    let epoch = leading(&first).await.epoch;
    let second = start(&store, "b");
    drop(first);
    let status = leading(&second).await;
    assert!(status.epoch > epoch);
}

#[tokio::test]
async fn a_deposed_leader_is_fenced_follows_and_is_healthy() {
    let store = memory();
    // The next renewal is far away: only a fenced step can depose it.
    let options = CoordinatorOptions { term: Duration::from_secs(600), ..options("a") };
    let node = Coordinator::start(Arc::clone(&store), options).unwrap();
    let epoch = leading(&node).await.epoch.unwrap();
    let other = NodeName::trusted("b");
    assert!(store.resign_leadership(&NodeName::trusted("a"), epoch).await.unwrap());
    store.campaign_for_leadership(&other, Duration::from_secs(600), None).await.unwrap();
    let start = Start::After(Duration::from_millis(50));
    let id = store.enqueue_job(NewJob { start, ..job("later") }).await.unwrap().id;
    let status = wait_for("the node follows", async || {
        Some(node.status()).filter(|status| status.leader.as_ref() == Some(&other))
    })
    .await;
    assert!(!status.leading);
    let fenced: u64 = status.services.values().map(|service| service.fenced).sum();
    assert!(fenced > 0, "{status:?}");
    wait_for("the node is healthy", async || node.status().is_healthy().then_some(())).await;
    assert_eq!(
        store.job_summary(id).await.unwrap().unwrap().state,
        JobState::Scheduled,
        "the deposed leader changed nothing"
    );
}

#[test]
fn inconsistent_durations_are_invalid() {
    let node = NodeInfo { name: orchestrix_core::NodeName::trusted("a"), address: None, roles: Vec::new() };
    let valid = CoordinatorOptions::new(node);
    assert!(valid.validate().is_ok());
    for (field, options) in [
        ("leaderTerm", CoordinatorOptions { term: Duration::ZERO, ..valid.clone() }),
        ("heartbeatInterval", CoordinatorOptions { heartbeat: Duration::ZERO, ..valid.clone() }),
        ("deadNodeTimeout", CoordinatorOptions { dead_after: Duration::from_secs(1), ..valid }),
    ] {
        assert_eq!(options.validate().unwrap_err().field, field);
    }
}
