//! Nodes that are processes, and all that can happen to one that leads. Whatever does, another leads soon, at no time do
//! two write in one epoch, and every job that is due is promoted and every lease that ran out is taken back, once.

mod chaos;
mod cluster;
mod faults;
mod node;
mod schedules;
mod sqlite;
mod traffic;

use std::time::Duration;

use orchestrix_testkit::Durability;

use self::{
    cluster::Cluster,
    faults::{Fault, Held},
};
use crate::support::{TERM, until};

/// What a busy machine gets beyond what is promised.
const SLACK: Duration = Duration::from_secs(5);

async fn strike(cluster: &mut Cluster, fault: Fault) -> u64 {
    let outcome = fault.strike(cluster).await;
    println!("{}: another led after {:?}, {} refused", fault.name(), outcome.took, outcome.refused);
    assert!(outcome.took < fault.promise(cluster.term) + SLACK, "{} took {:?}", fault.name(), outcome.took);
    outcome.refused
}

async fn survives(mut cluster: Cluster, faults: &[Fault]) {
    for fault in faults {
        strike(&mut cluster, *fault).await;
    }
    at_peace(cluster).await;
}

/// The same for a fault that comes upon a leader about to write: almost always, so it is tried until it did.
async fn is_refused(fault: Fault) {
    let mut cluster = Cluster::start(TERM).await;
    let mut refused = 0;
    for _ in 0..5 {
        refused = strike(&mut cluster, fault).await;
        if refused > 0 {
            break;
        }
    }
    assert!(refused > 0, "nothing that came too late was refused");
    at_peace(cluster).await;
}

/// All comes to its end, and the audit finds nothing.
async fn at_peace(cluster: Cluster) {
    let report = cluster.finish().await;
    println!("{report:?}");
    assert_eq!(report.violations, Vec::<String>::new());
    assert!(report.takeovers > 0 && report.promoted > 0 && report.reaped > 0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_has_a_successor_when_its_term_is_over() {
    survives(Cluster::start(TERM).await, &[Fault::Killed]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_asked_to_end_has_a_successor_at_once() {
    // A term that nobody would wait for.
    survives(Cluster::start(Duration::from_secs(30)).await, &[Fault::Terminated]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_stopped_past_its_term_follows_when_it_goes_on() {
    survives(Cluster::start(TERM).await, &[Fault::Stopped]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stopped_leader_was_about_to_write_is_refused_when_it_goes_on() {
    is_refused(Fault::StoppedBeforeWriting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_stopped_in_the_middle_of_a_transaction_is_cut_off_by_the_server_and_its_writes_are_undone() {
    survives(Cluster::start(TERM).await, &[Fault::StoppedWhileWriting]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_knows_by_itself_when_to_stop_leading() {
    survives(Cluster::start(TERM).await, &[Fault::Cut]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_held_up_on_its_way_until_another_led_is_refused() {
    is_refused(Fault::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_leads_again_soon_after_the_database_was_killed() {
    let cluster = Cluster::start_apart(Durability::Fast, TERM).await;
    survives(cluster, &[Fault::DatabaseKilled, Fault::DatabaseKilled]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_what_is_being_written_in_the_old_leaders_name() {
    // Transactions may take a quarter of a term: long enough for all that follows.
    let cluster = Cluster::start(Duration::from_secs(20)).await;
    let (leader, epoch) = cluster.leader().await;
    let held = Held::new(&cluster).await;
    let (lock, holder) = held.lock(&cluster).await;
    let node = &cluster.members[leader].node;
    let writer = Held::waits(&cluster, &node.name, holder).await;
    node.signal("STOP");
    // As if the term were over, which it cannot be before the server ends the transaction.
    cluster.client().batch_execute("UPDATE orchestrix.leader_term SET ends_at = now()").await.unwrap();
    let sql = "SELECT epoch FROM orchestrix.leader WHERE epoch > $1
               UNION ALL SELECT pid FROM pg_stat_activity WHERE $2 = ANY (pg_blocking_pids(pid))";
    let tried = async || cluster.client().query(sql, &[&epoch, &writer]).await.unwrap().pop();
    until("another tries to take over", tried).await;
    lock.batch_execute("COMMIT").await.unwrap();
    node.signal("CONT");
    cluster.leader_after(epoch).await;
    let taken_back = held.taken_back(&cluster).await;
    assert_eq!((taken_back.node, taken_back.epoch), (node.name.clone(), epoch), "written before anybody took over");
    held.finish(&cluster).await;
    assert_eq!(cluster.finish().await.violations, Vec::<String>::new());
}
