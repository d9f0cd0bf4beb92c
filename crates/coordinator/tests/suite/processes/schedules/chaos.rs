//! The same faults for as long as one likes, in random order and at random moments: `cargo xtask chaos schedules`.

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use orchestrix_core::Misfire;
use orchestrix_testkit::Durability;

use super::{
    super::{cluster::Cluster, faults::Fault},
    LONG_TERM, TURN,
    judge::Counts,
    plan,
    trial::{Outcome, Trial, Written},
};
use crate::support::TERM;

const MINUTES: &str = "ORCHESTRIX_CHAOS_MINUTES";
/// How long one database is used before all is judged and begun anew: what is read does not grow for ever.
const ROUND: Duration = Duration::from_secs(150);

/// Faults by their terms and names, with what is promised, and how long it took each time to the next line of a ledger.
type Recoveries = BTreeMap<(Duration, &'static str), (Duration, Vec<Duration>)>;

/// Not a test: the body of the command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for as long as `cargo xtask chaos schedules` says"]
async fn chaos() {
    let Ok(minutes) = env::var(MINUTES) else { return };
    let minutes: f64 = minutes.parse().unwrap();
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let (mut recoveries, mut found) = (Recoveries::new(), Outcome::default());
    // With short terms most is on time; with long ones, much is late.
    for term in [TERM, LONG_TERM].into_iter().cycle() {
        if Instant::now() >= end {
            break;
        }
        found.add(round(term, end.min(Instant::now() + ROUND), &mut recoveries).await);
    }
    print(&recoveries, &mut found);
    assert_eq!(found.violations, Vec::<String>::new());
}

async fn round(term: Duration, end: Instant, recoveries: &mut Recoveries) -> Outcome {
    let cluster = Cluster::start_apart(Durability::Durable, term).await;
    let rules = [Misfire::CatchUp, Misfire::FireOnce, Misfire::Skip];
    let planned: Vec<_> = rules.into_iter().flat_map(|rule| [plan::brisk(rule), plan::slow(rule)].concat()).collect();
    println!("\nThree nodes, terms of {term:?}, {} schedules.", planned.len());
    let mut trial = Trial::start(cluster, &planned).await;
    // One at least.
    loop {
        let fault = Fault::ALL[rand::random_range(0..Fault::ALL.len())];
        let written = if rand::random() { Written::Jobs } else { Written::Lines };
        let (name, took) = match rand::random_range(0..Fault::ALL.len() + 2) {
            0 => ("killed while firing", trial.kill_while_firing(written).await),
            1 => ("stopped while firing", trial.stop_while_firing(written).await),
            _ => (fault.name(), trial.strike(fault).await),
        };
        println!("{name:<24}{:>6.2} s", took.as_secs_f64());
        let promise = if name == fault.name() { fault.promise(term) } else { Fault::Killed.promise(term) } + TURN;
        recoveries.entry((term, name)).or_insert((promise, Vec::new())).1.push(took);
        if Instant::now() >= end {
            return trial.finish().await;
        }
        tokio::time::sleep(TERM.mul_f64(rand::random_range(0.0..1.5))).await;
    }
}

impl Outcome {
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

// One that took too long may be the machine's fault; if half of them did, a promise is broken.
fn print(recoveries: &Recoveries, found: &mut Outcome) {
    println!("\n{:<6}{:<24}{:>8}{:>10}{:>10}{:>10}{:>8}", "term", "fault", "faults", "p50", "max", "promised", "late");
    for ((term, name), (promise, took)) in recoveries {
        let mut took = took.clone();
        took.sort_unstable();
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        let late = took.iter().filter(|took| *took > promise).count();
        if median > *promise {
            found.violations.push(format!("{name}: fired again after {median:?}, not {promise:?}"));
        }
        println!(
            "{:<6}{name:<24}{:>8}{:>8.2} s{:>8.2} s{:>8.2} s{late:>8}",
            format!("{} s", term.as_secs()),
            took.len(),
            median.as_secs_f64(),
            longest.as_secs_f64(),
            promise.as_secs_f64(),
        );
    }
    println!(
        "\n{:<12}{:>10}{:>10}{:>10}{:>12}{:>10}",
        "misfire", "schedules", "times", "on time", "fired late", "missed"
    );
    for count in &found.counts {
        let Counts { misfire, schedules, times, on_time, late, missed } = count;
        println!("{misfire:<12}{schedules:>10}{times:>10}{on_time:>10}{late:>12}{missed:>10}");
    }
    println!("\n{} takeovers, {} violations", found.takeovers, found.violations.len());
    for violation in &found.violations {
        println!("  {violation}");
    }
}
