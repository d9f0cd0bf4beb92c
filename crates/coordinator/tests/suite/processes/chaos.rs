//! The same faults in random order at random times, for a chosen duration: `cargo xtask chaos leader`.

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use orchestrix_testkit::Durability;

use super::{
    cluster::{Cluster, Report},
    faults::{Fault, FaultOutcome},
};
use crate::support::TERM;

const MINUTES: &str = "ORCHESTRIX_CHAOS_MINUTES";

/// Not a test: the body of the command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for as long as `cargo xtask chaos leader` says"]
async fn chaos() {
    let Ok(minutes) = env::var(MINUTES) else { return };
    let minutes: f64 = minutes.parse().unwrap();
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut cluster = Cluster::start_with_own_server(Durability::Durable, TERM).await;
    println!("\nThree nodes, terms of {TERM:?}.");
    let mut outcomes: BTreeMap<Fault, Vec<FaultOutcome>> = BTreeMap::new();
    while Instant::now() < end {
        tokio::time::sleep(TERM.mul_f64(rand::random_range(0.0..1.5))).await;
        let fault = Fault::ALL[rand::random_range(0..Fault::ALL.len())];
        let outcome = fault.inject(&mut cluster).await;
        println!("{:<24}{:>6.2} s, {} steps fenced", fault.name(), outcome.took.as_secs_f64(), outcome.refused);
        outcomes.entry(fault).or_default().push(outcome);
    }
    let mut report = cluster.finish().await;
    print(&outcomes, &mut report);
    assert_eq!(report.violations, Vec::<String>::new());
}

/// Prints the results. A single slow recovery may be the machine's fault; a median over the limit is a violation.
fn print(outcomes: &BTreeMap<Fault, Vec<FaultOutcome>>, report: &mut Report) {
    println!("\n{:<24}{:>8}{:>10}{:>10}{:>10}{:>8}{:>10}", "fault", "faults", "p50", "max", "limit", "late", "fenced");
    for (fault, outcomes) in outcomes {
        let mut took: Vec<Duration> = outcomes.iter().map(|outcome| outcome.took).collect();
        took.sort_unstable();
        let limit = fault.recovery_limit(TERM);
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        let late = took.iter().filter(|took| **took > limit).count();
        let refused: u64 = outcomes.iter().map(|outcome| outcome.refused).sum();
        if median > limit {
            report.violations.push(format!("{}: median {median:?}, over the limit of {limit:?}", fault.name()));
        }
        println!(
            "{:<24}{:>8}{:>8.2} s{:>8.2} s{:>8.2} s{late:>8}{refused:>10}",
            fault.name(),
            took.len(),
            median.as_secs_f64(),
            longest.as_secs_f64(),
            limit.as_secs_f64(),
        );
    }
    let Report { takeovers, promoted, reaped, violations } = report;
    println!("\n{takeovers} takeovers, {promoted} jobs promoted, {reaped} leases reaped");
    println!("{} violations", violations.len());
    for violation in violations {
        println!("  {violation}");
    }
}
