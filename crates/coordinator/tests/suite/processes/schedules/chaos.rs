//! The same faults in random order at random times, for a chosen duration: `cargo xtask chaos schedules`.

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use orchestrix_core::Misfire;
use orchestrix_testkit::Durability;

use super::{
    super::{cluster::Cluster, faults::Fault},
    LONG_TERM, PERIOD,
    checker::Counts,
    plan,
    scenario::{FiringStage, Scenario, ScenarioReport},
};
use crate::support::TERM;

const MINUTES: &str = "ORCHESTRIX_CHAOS_MINUTES";
/// How long one database is used before it is checked and replaced, so that the checked data stays bounded.
const ROUND: Duration = Duration::from_secs(150);

/// The time limit and the measured times until the next occurrence, by term and fault.
type Recoveries = BTreeMap<(Duration, &'static str), (Duration, Vec<Duration>)>;

/// Not a test: the body of the command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for as long as `cargo xtask chaos schedules` says"]
async fn chaos() {
    let Ok(minutes) = env::var(MINUTES) else { return };
    let minutes: f64 = minutes.parse().unwrap();
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let (mut recoveries, mut total) = (Recoveries::new(), ScenarioReport::default());
    // With short terms most occurrences are on time; with long ones many are late.
    for term in [TERM, LONG_TERM].into_iter().cycle() {
        if Instant::now() >= end {
            break;
        }
        total.add(round(term, end.min(Instant::now() + ROUND), &mut recoveries).await);
    }
    print(&recoveries, &mut total);
    assert_eq!(total.violations, Vec::<String>::new());
}

async fn round(term: Duration, end: Instant, recoveries: &mut Recoveries) -> ScenarioReport {
    let cluster = Cluster::start_with_own_server(Durability::Durable, term).await;
    let rules = [Misfire::CatchUp, Misfire::FireOnce, Misfire::Skip];
    let planned: Vec<_> = rules
        .into_iter()
        .flat_map(|rule| [plan::every_second(rule), plan::every_twelve_seconds(rule)].concat())
        .collect();
    println!("\nThree nodes, terms of {term:?}, {} schedules.", planned.len());
    let mut scenario = Scenario::start(cluster, &planned).await;
    // At least one fault.
    loop {
        let fault = Fault::ALL[rand::random_range(0..Fault::ALL.len())];
        let stage = if rand::random() { FiringStage::Jobs } else { FiringStage::Occurrences };
        let (name, took) = match rand::random_range(0..Fault::ALL.len() + 2) {
            0 => ("killed while firing", scenario.kill_while_firing(stage).await),
            1 => ("suspended while firing", scenario.suspend_while_firing(stage).await),
            _ => (fault.name(), scenario.inject(fault).await),
        };
        println!("{name:<24}{:>6.2} s", took.as_secs_f64());
        let limit =
            if name == fault.name() { fault.recovery_limit(term) } else { Fault::Killed.recovery_limit(term) } + PERIOD;
        recoveries.entry((term, name)).or_insert((limit, Vec::new())).1.push(took);
        if Instant::now() >= end {
            return scenario.finish().await;
        }
        tokio::time::sleep(TERM.mul_f64(rand::random_range(0.0..1.5))).await;
    }
}

impl ScenarioReport {
    fn add(&mut self, other: Self) {
        self.takeovers += other.takeovers;
        self.violations.extend(other.violations);
        for more in other.counts {
            match self.counts.iter_mut().find(|count| count.misfire == more.misfire) {
                Some(count) => count.add(&more),
                None => self.counts.push(more),
            }
        }
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.times += other.times;
        self.on_time += other.on_time;
        self.late += other.late;
        self.missed += other.missed;
    }
}

/// Prints the results. A single slow recovery may be the machine's fault; a median over the limit is a violation.
fn print(recoveries: &Recoveries, total: &mut ScenarioReport) {
    println!("\n{:<6}{:<24}{:>8}{:>10}{:>10}{:>10}{:>8}", "term", "fault", "faults", "p50", "max", "limit", "late");
    for ((term, name), (limit, took)) in recoveries {
        let mut took = took.clone();
        took.sort_unstable();
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        let late = took.iter().filter(|took| *took > limit).count();
        if median > *limit {
            total.violations.push(format!("{name}: median {median:?}, over the limit of {limit:?}"));
        }
        println!(
            "{:<6}{name:<24}{:>8}{:>8.2} s{:>8.2} s{:>8.2} s{late:>8}",
            format!("{} s", term.as_secs()),
            took.len(),
            median.as_secs_f64(),
            longest.as_secs_f64(),
            limit.as_secs_f64(),
        );
    }
    println!(
        "\n{:<12}{:>10}{:>10}{:>10}{:>12}{:>10}",
        "misfire", "schedules", "times", "on time", "fired late", "missed"
    );
    for count in &total.counts {
        let Counts { misfire, schedules, times, on_time, late, missed } = count;
        println!("{misfire:<12}{schedules:>10}{times:>10}{on_time:>10}{late:>12}{missed:>10}");
    }
    println!("\n{} takeovers, {} violations", total.takeovers, total.violations.len());
    for violation in &total.violations {
        println!("  {violation}");
    }
}
