//! Schedules of nodes that are processes: whatever happens to whoever leads and to the database, every nominal time of every
//! schedule is in the ledger once, and has one job or, by its schedule's own rule, none.

mod chaos;
mod judge;
mod judge_tests;
mod plan;
mod trial;

use std::time::Duration;

use orchestrix_core::Misfire;
use orchestrix_testkit::Durability;

use self::{
    judge::Counts,
    plan::FIFTY,
    trial::{Outcome, Trial, Written},
};
use super::{SLACK, cluster::Cluster, faults::Fault};
use crate::support::TERM;

/// A term so long that what was due since its leader was killed is late.
const LONG_TERM: Duration = Duration::from_secs(8);
/// An outage after which much is late: longer than every grace here.
const OUTAGE: Duration = Duration::from_secs(9);
/// A schedule may just have fired, and is not due for so long.
const TURN: Duration = Duration::from_secs(1);

async fn strike(trial: &mut Trial, fault: Fault, term: Duration) {
    let took = trial.strike(fault).await;
    println!("{}: schedules fired again after {took:?}", fault.name());
    assert!(took < fault.promise(term) + TURN + SLACK, "{} took {took:?}", fault.name());
}

/// Nothing is amiss, and there was something to judge.
async fn at_peace(trial: Trial) -> Vec<Counts> {
    let Outcome { counts, takeovers, violations } = trial.finish().await;
    println!("{takeovers} takeovers, {counts:#?}");
    assert_eq!(violations, Vec::<String>::new());
    for count in &counts {
        assert!(count.times >= i64::from(3 * FIFTY) && count.on_time >= i64::from(FIFTY), "{count:?}");
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_second_of_fifty_schedules_fires_once_whatever_happens_to_the_leader() {
    let mut trial = Trial::start(Cluster::start(TERM).await, &plan::brisk(Misfire::CatchUp)).await;
    for fault in [
        Fault::Killed,
        Fault::Stopped,
        Fault::Terminated,
        Fault::Frozen,
        Fault::Killed,
        Fault::Stopped,
        Fault::Terminated,
        Fault::Killed,
    ] {
        strike(&mut trial, fault, TERM).await;
    }
    at_peace(trial).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_leader_had_begun_to_fire_is_undone_and_fired_by_its_successor() {
    let mut trial = Trial::start(Cluster::start(TERM).await, &plan::brisk(Misfire::CatchUp)).await;
    for written in [Written::Jobs, Written::Lines] {
        let took = trial.kill_while_firing(written).await;
        println!("killed with {written:?} written: schedules fired again after {took:?}");
        let took = trial.stop_while_firing(written).await;
        println!("stopped with {written:?} written: schedules fired again after {took:?}");
    }
    at_peace(trial).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_arrives_when_another_leads_fires_nothing() {
    let mut trial = Trial::start(Cluster::start(TERM).await, &plan::brisk(Misfire::CatchUp)).await;
    let refused = [trial.fire_too_late().await, trial.fire_too_late().await];
    at_peace(trial).await;
    // Once there may be nothing, if the line froze in the middle of a transaction: the server has ended that.
    assert_ne!(refused, [0, 0], "nothing that came too late was refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_second_of_fifty_schedules_fires_once_though_the_database_is_killed() {
    let cluster = Cluster::start_apart(Durability::Fast, TERM).await;
    let mut trial = Trial::start(cluster, &plan::brisk(Misfire::CatchUp)).await;
    strike(&mut trial, Fault::DatabaseKilled, TERM).await;
    strike(&mut trial, Fault::Killed, TERM).await;
    trial.lose_database(OUTAGE).await;
    let counts = at_peace(trial).await;
    assert!(counts[0].late > i64::from(FIFTY), "some were late: {counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_times_fire_once_or_not_at_all_where_that_is_the_rule() {
    let cluster = Cluster::start_apart(Durability::Fast, LONG_TERM).await;
    let rules = [Misfire::FireOnce, Misfire::Skip];
    let planned: Vec<_> = rules.into_iter().flat_map(|rule| [plan::brisk(rule), plan::slow(rule)].concat()).collect();
    let mut trial = Trial::start(cluster, &planned).await;
    trial.lose_database(OUTAGE).await;
    for fault in [Fault::Killed, Fault::Terminated, Fault::Stopped] {
        strike(&mut trial, fault, LONG_TERM).await;
    }
    let counts = at_peace(trial).await;
    let [once, skip] = &counts[..] else { panic!("{counts:?}") };
    assert_eq!((once.misfire.as_str(), skip.misfire.as_str()), ("fire_once", "skip"));
    assert!(once.late > 0 && once.missed > i64::from(FIFTY), "{once:?}");
    assert!(skip.late == 0 && skip.missed > i64::from(FIFTY), "{skip:?}");
}
