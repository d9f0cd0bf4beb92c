//! Schedules under faults of the leader and the database. Whatever happens, every nominal time of every schedule has
//! exactly one occurrence, with one job or, by the schedule's misfire rule, none.

mod chaos;
mod checker;
mod checker_tests;
mod plan;
mod scenario;

use std::time::Duration;

use orchestrix_core::Misfire;
use orchestrix_testkit::Durability;

use self::{
    checker::Counts,
    plan::SCHEDULES,
    scenario::{FiringStage, Scenario, ScenarioReport},
};
use super::{SLACK, cluster::Cluster, faults::Fault};
use crate::support::TERM;

/// A term so long that occurrences are late after the leader was killed.
const LONG_TERM: Duration = Duration::from_secs(8);
/// An outage that makes occurrences late: longer than every grace period here.
const OUTAGE: Duration = Duration::from_secs(9);
/// The longest time until the next occurrence.
const PERIOD: Duration = Duration::from_secs(1);

async fn inject(scenario: &mut Scenario, fault: Fault, term: Duration) {
    let took = scenario.inject(fault).await;
    println!("{}: schedules fired again after {took:?}", fault.name());
    assert!(took < fault.recovery_limit(term) + PERIOD + SLACK, "{} took {took:?}", fault.name());
}

/// Finishes the scenario and checks that there are occurrences and no violations.
async fn finish_without_violations(scenario: Scenario) -> Vec<Counts> {
    let ScenarioReport { counts, takeovers, violations } = scenario.finish().await;
    println!("{takeovers} takeovers, {counts:#?}");
    assert_eq!(violations, Vec::<String>::new());
    for count in &counts {
        assert!(count.times >= i64::from(3 * SCHEDULES) && count.on_time >= i64::from(SCHEDULES), "{count:?}");
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_schedules_fire_once_per_second_under_faults_of_the_leader() {
    let mut scenario = Scenario::start(Cluster::start(TERM).await, &plan::every_second(Misfire::CatchUp)).await;
    for fault in [
        Fault::Killed,
        Fault::Suspended,
        Fault::Terminated,
        Fault::NetworkFrozen,
        Fault::Killed,
        Fault::Suspended,
        Fault::Terminated,
        Fault::Killed,
    ] {
        inject(&mut scenario, fault, TERM).await;
    }
    finish_without_violations(scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partial_firing_is_rolled_back_and_repeated_by_the_next_leader() {
    let mut scenario = Scenario::start(Cluster::start(TERM).await, &plan::every_second(Misfire::CatchUp)).await;
    for stage in [FiringStage::Jobs, FiringStage::Occurrences] {
        let took = scenario.kill_while_firing(stage).await;
        println!("killed at stage {stage:?}: schedules fired again after {took:?}");
        let took = scenario.suspend_while_firing(stage).await;
        println!("suspended at stage {stage:?}: schedules fired again after {took:?}");
    }
    finish_without_violations(scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firing_that_arrives_after_a_takeover_is_fenced() {
    let mut scenario = Scenario::start(Cluster::start(TERM).await, &plan::every_second(Misfire::CatchUp)).await;
    let refused = [scenario.fire_after_takeover().await, scenario.fire_after_takeover().await];
    finish_without_violations(scenario).await;
    // One of them may be zero, if the network froze in the middle of a transaction: the server has ended it.
    assert_ne!(refused, [0, 0], "no late firing was fenced");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_schedules_fire_once_per_second_across_database_kills() {
    let cluster = Cluster::start_with_own_server(Durability::Fast, TERM).await;
    let mut scenario = Scenario::start(cluster, &plan::every_second(Misfire::CatchUp)).await;
    inject(&mut scenario, Fault::DatabaseKilled, TERM).await;
    inject(&mut scenario, Fault::Killed, TERM).await;
    scenario.database_outage(OUTAGE).await;
    let counts = finish_without_violations(scenario).await;
    assert!(counts[0].late > i64::from(SCHEDULES), "too few occurrences were late: {counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_occurrences_follow_the_misfire_rules_fire_once_and_skip() {
    let cluster = Cluster::start_with_own_server(Durability::Fast, LONG_TERM).await;
    let rules = [Misfire::FireOnce, Misfire::Skip];
    let planned: Vec<_> = rules
        .into_iter()
        .flat_map(|rule| [plan::every_second(rule), plan::every_twelve_seconds(rule)].concat())
        .collect();
    let mut scenario = Scenario::start(cluster, &planned).await;
    scenario.database_outage(OUTAGE).await;
    for fault in [Fault::Killed, Fault::Terminated, Fault::Suspended] {
        inject(&mut scenario, fault, LONG_TERM).await;
    }
    let counts = finish_without_violations(scenario).await;
    let [once, skip] = &counts[..] else { panic!("{counts:?}") };
    assert_eq!((once.misfire.as_str(), skip.misfire.as_str()), ("fire_once", "skip"));
    assert!(once.late > 0 && once.missed > i64::from(SCHEDULES), "{once:?}");
    assert!(skip.late == 0 && skip.missed > i64::from(SCHEDULES), "{skip:?}");
}
