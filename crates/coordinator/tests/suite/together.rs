//! Several nodes on one store: one leads, and the next one when it stops.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::{JobState, NewJob, NodeName, Start};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{NodeInfo, PageRequest, Store};

use crate::support::{TERM, job, leading, options, start, until};

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

async fn one_of(nodes: &[Coordinator]) -> usize {
    until("one leads", async || nodes.iter().position(|node| node.status().leading)).await
}

#[tokio::test]
async fn a_lone_node_leads_soon_after_its_start() {
    let store = memory();
    let begun = Instant::now();
    let node = start(&store, "a");
    let status = leading(&node).await;
    // A tenth of a second is what is promised; a busy machine gets more.
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(status.leader.unwrap().as_str(), "a");
    assert!(node.status().is_healthy());
}

#[tokio::test]
async fn of_three_one_leads_and_the_others_know_it() {
    let store = memory();
    let nodes: Vec<Coordinator> = ["a", "b", "c"].iter().map(|name| start(&store, name)).collect();
    let leader = nodes[one_of(&nodes).await].status().leader;
    for node in &nodes {
        until("it knows who leads", async || (node.status().leader == leader).then_some(())).await;
    }
    tokio::time::sleep(2 * TERM).await;
    assert_eq!(nodes.iter().filter(|node| node.status().leading).count(), 1);
    assert!(nodes.iter().all(|node| node.status().leader_changes == 1), "renewing is no change");
    until("all are listed", async || {
        (store.list_nodes(&PageRequest::first(10)).await.unwrap().items.len() == 3).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_that_does_not_stand_is_listed_until_it_leaves_and_never_leads_even_alone() {
    let store = memory();
    let info =
        NodeInfo { name: NodeName::trusted("api"), address: Some("127.0.0.1:8080".into()), roles: vec!["api".into()] };
    let options = CoordinatorOptions { node: info.clone(), stands: false, ..options("api") };
    let member = Coordinator::start(Arc::clone(&store), options).unwrap();
    let listed = async || store.list_nodes(&PageRequest::first(10)).await.unwrap().items;
    let node = until("it is listed", async || listed().await.pop()).await;
    assert_eq!((&node.info, node.leads), (&info, false));
    // It goes on to say that it lives, and nobody leads meanwhile.
    until("it is heard again", async || listed().await.pop().filter(|again| again.last_seen_at > node.last_seen_at))
        .await;
    tokio::time::sleep(2 * TERM).await;
    assert_eq!(store.leader().await.unwrap(), None);
    // It keeps nobody who stands from leading.
    let other = start(&store, "b");
    leading(&other).await;
    until("both are listed", async || (listed().await.len() == 2).then_some(())).await;
    let both: Vec<_> = listed().await.into_iter().map(|node| (node.info.name.to_string(), node.leads)).collect();
    assert_eq!(both, [("api".to_owned(), false), ("b".to_owned(), true)]);
    assert!(!member.status().leading && member.status().services.is_empty());
    // Nor from taking over, and it does not when it could.
    other.shutdown().await;
    tokio::time::sleep(2 * TERM).await;
    assert_eq!(store.leader().await.unwrap(), None);
    member.shutdown().await;
    assert_eq!(listed().await.len(), 0, "it said that it leaves");
}

#[tokio::test]
async fn a_leader_that_shuts_down_is_succeeded_long_before_its_term_would_end() {
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
    assert_eq!(nodes.iter().filter(|node| node.info.name.as_str() == "a").count(), 0, "it said that it leaves");
}

#[tokio::test]
async fn a_leader_that_vanishes_is_succeeded_when_its_term_is_over() {
    let store = memory();
    let first = start(&store, "a");
    let epoch = leading(&first).await.epoch;
    let second = start(&store, "b");
    drop(first);
    let status = leading(&second).await;
    assert!(status.epoch > epoch);
}

#[tokio::test]
async fn a_leader_that_was_deposed_is_refused_follows_and_is_well() {
    let store = memory();
    // Its own renewals are far away: only a refusal can tell it.
    let options = CoordinatorOptions { term: Duration::from_secs(600), ..options("a") };
    let node = Coordinator::start(Arc::clone(&store), options).unwrap();
    let epoch = leading(&node).await.epoch.unwrap();
    let other = NodeName::trusted("b");
    assert!(store.resign_leadership(&NodeName::trusted("a"), epoch).await.unwrap());
    store.campaign_for_leadership(&other, Duration::from_secs(600), None).await.unwrap();
    let start = Start::After(Duration::from_millis(50));
    let id = store.enqueue_job(NewJob { start, ..job("later") }).await.unwrap().id;
    let status =
        until("it follows", async || Some(node.status()).filter(|status| status.leader.as_ref() == Some(&other))).await;
    assert!(!status.leading);
    let refused: u64 = status.services.values().map(|service| service.refused).sum();
    assert!(refused > 0, "{status:?}");
    until("it is well", async || node.status().is_healthy().then_some(())).await;
    assert_eq!(
        store.job_summary(id).await.unwrap().unwrap().state,
        JobState::Scheduled,
        "nothing was done in its name"
    );
}

#[test]
fn times_that_do_not_fit_together_are_refused() {
    let node = NodeInfo { name: orchestrix_core::NodeName::trusted("a"), address: None, roles: Vec::new() };
    let fine = CoordinatorOptions::new(node);
    assert!(fine.validate().is_ok());
    for (field, options) in [
        ("leaderTerm", CoordinatorOptions { term: Duration::ZERO, ..fine.clone() }),
        ("heartbeatInterval", CoordinatorOptions { heartbeat: Duration::ZERO, ..fine.clone() }),
        ("deadNodeTimeout", CoordinatorOptions { dead_after: Duration::from_secs(1), ..fine }),
    ] {
        assert_eq!(options.validate().unwrap_err().field, field);
    }
}
