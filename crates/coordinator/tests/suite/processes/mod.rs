//! Node processes under faults of the leader, its network and the database. Whatever happens, another node leads soon,
//! no two nodes write in one epoch, every due job is promoted once and every expired lease is reaped once.

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
    faults::{Fault, HeldLease},
};
use crate::support::{TERM, wait_for};

/// Extra time for a busy machine.
const SLACK: Duration = Duration::from_secs(5);

/// Injects a fault and checks the time until another node leads. Returns how many steps of the old leader were fenced.
async fn inject(cluster: &mut Cluster, fault: Fault) -> u64 {
    let outcome = fault.inject(cluster).await;
    println!("{}: another node led after {:?}, {} steps fenced", fault.name(), outcome.took, outcome.refused);
    assert!(outcome.took < fault.recovery_limit(cluster.term) + SLACK, "{} took {:?}", fault.name(), outcome.took);
    outcome.refused
}

async fn assert_survives(mut cluster: Cluster, faults: &[Fault]) {
    for fault in faults {
        inject(&mut cluster, *fault).await;
    }
    finish_without_violations(cluster).await;
}

/// Checks that a write of the old leader is fenced. The fault does not always hit a leader about to write, so it is
/// repeated.
async fn assert_fenced(fault: Fault) {
    let mut cluster = Cluster::start(TERM).await;
    let mut refused = 0;
    for _ in 0..5 {
        refused = inject(&mut cluster, fault).await;
        if refused > 0 {
            break;
        }
    }
    assert!(refused > 0, "no late write was fenced");
    finish_without_violations(cluster).await;
}

/// Finishes the workload and checks that the audit finds no violation.
async fn finish_without_violations(cluster: Cluster) {
    let report = cluster.finish().await;
    println!("{report:?}");
    assert_eq!(report.violations, Vec::<String>::new());
    assert!(report.takeovers > 0 && report.promoted > 0 && report.reaped > 0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_leader_is_killed_another_leads_when_the_term_is_over() {
    assert_survives(Cluster::start(TERM).await, &[Fault::Killed]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_leader_is_terminated_another_leads_at_once() {
    // A term longer than the test waits.
    assert_survives(Cluster::start(Duration::from_secs(30)).await, &[Fault::Terminated]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_suspended_past_its_term_follows_when_it_resumes() {
    assert_survives(Cluster::start(TERM).await, &[Fault::Suspended]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_a_suspended_leader_is_fenced_when_it_resumes() {
    assert_fenced(Fault::SuspendedBeforeWriting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_transaction_of_a_suspended_leader_is_ended_by_the_server_and_rolled_back() {
    assert_survives(Cluster::start(TERM).await, &[Fault::SuspendedWhileWriting]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disconnected_leader_stops_leading_by_its_own_clock() {
    assert_survives(Cluster::start(TERM).await, &[Fault::Disconnected]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_delayed_by_the_network_until_another_node_leads_is_fenced() {
    assert_fenced(Fault::NetworkFrozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leads_soon_after_the_database_was_killed() {
    let cluster = Cluster::start_with_own_server(Durability::Fast, TERM).await;
    assert_survives(cluster, &[Fault::DatabaseKilled, Fault::DatabaseKilled]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_an_open_transaction_of_the_old_leader() {
    // The transaction timeout is a quarter of a term: 15 s for the steps below, also on a busy machine.
    let cluster = Cluster::start(Duration::from_secs(60)).await;
    let (leader, epoch) = cluster.leader().await;
    let held = HeldLease::new(&cluster).await;
    let (lock, holder) = held.lock(&cluster).await;
    let node = &cluster.members[leader].node;
    let writer = HeldLease::wait_for_blocked_node(&cluster, &node.name, holder).await;
    node.signal("STOP");
    // As if the term were over. In reality the server ends the transaction before that.
    cluster.client().batch_execute("UPDATE orchestrix.leader_term SET ends_at = now()").await.unwrap();
    let sql = "SELECT epoch FROM orchestrix.leader WHERE epoch > $1
               UNION ALL SELECT pid FROM pg_stat_activity WHERE $2 = ANY (pg_blocking_pids(pid))";
    let takeover = async || cluster.client().query(sql, &[&epoch, &writer]).await.unwrap().pop();
    wait_for("another node tries to take over", takeover).await;
    lock.batch_execute("COMMIT").await.unwrap();
    node.signal("CONT");
    cluster.leader_after(epoch).await;
    let reaped = held.wait_until_reaped(&cluster).await;
    assert_eq!(
        (reaped.node, reaped.epoch),
        (node.name.clone(), epoch),
        "the lease was not reaped by the old leader before the takeover"
    );
    held.finish(&cluster).await;
    assert_eq!(cluster.finish().await.violations, Vec::<String>::new());
}
