//! The same faults in random order at random times, for a chosen duration: `cargo xtask chaos workers`.

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use orchestrix_testkit::Durability;

use super::{
    checker::{CheckReport, FaultKind},
    fleet::Fleet,
    jobs::LEASE,
    process::Setup,
    scenarios::RECLAIM,
    test_store::TestStore,
    workload::Rate,
};

const MINUTES: &str = "ORCHESTRIX_CHAOS_MINUTES";
const WORKERS: usize = 8;
const RATE: Rate = Rate { short: 60.0, long: 10.0, failing: 6.0 };
/// How long one database and its journals are used before they are checked and replaced, so that the checked data stays
/// bounded.
const ROUND: Duration = Duration::from_secs(300);
/// How soon after an outage of the database jobs must finish at the previous rate.
const RESTORE: Duration = Duration::from_secs(5);

/// Not a test: the body of the command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for as long as `cargo xtask chaos workers` says"]
async fn chaos() {
    let Ok(minutes) = env::var(MINUTES) else { return };
    let minutes: f64 = minutes.parse().unwrap();
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    println!("\n{WORKERS} workers, leases of {LEASE:?}.");
    let (mut total, mut kinds) = (CheckReport::default(), BTreeMap::new());
    while Instant::now() < end {
        total.add(round(end.min(Instant::now() + ROUND), &mut kinds).await);
    }
    print(&kinds, &mut total);
    assert_eq!(total.violations, Vec::<String>::new());
}

async fn round(end: Instant, kinds: &mut BTreeMap<FaultKind, u64>) -> CheckReport {
    const KINDS: [FaultKind; 6] =
        // Kills are the most common fault.
        [
            FaultKind::Killed,
            FaultKind::Killed,
            FaultKind::Suspended,
            FaultKind::Terminated,
            FaultKind::Disconnected,
            FaultKind::DatabaseDown,
        ];
    let mut fleet = Fleet::on(TestStore::own(Durability::Durable)).await;
    for _ in 0..WORKERS {
        fleet.add(Setup::default());
    }
    let mut remaining = Vec::new();
    fleet.start_workload(RATE).await;
    for worker in &fleet.workers {
        worker.wait_until_started(1).await;
    }
    loop {
        tokio::time::sleep(Duration::from_millis(rand::random_range(500..3_000))).await;
        if Instant::now() >= end {
            return fleet.finish().await;
        }
        // Shuffled rounds, so that each kind occurs.
        if remaining.is_empty() {
            remaining.extend(KINDS);
        }
        let kind = remaining.swap_remove(rand::random_range(0..remaining.len()));
        inject(kind, &mut fleet).await;
        println!("{}", name(kind));
        *kinds.entry(kind).or_default() += 1;
    }
}

async fn inject(kind: FaultKind, fleet: &mut Fleet) {
    let victim = rand::random_range(0..fleet.workers.len());
    match kind {
        FaultKind::Killed => {
            fleet.kill(victim);
            fleet.add(Setup::default());
        }
        FaultKind::Terminated => {
            fleet.terminate(victim).await;
            fleet.add(Setup::default());
        }
        FaultKind::Suspended | FaultKind::NetworkFrozen => {
            let since = fleet.suspend(victim);
            tokio::time::sleep(3 * LEASE).await;
            fleet.resume(victim, since);
        }
        FaultKind::Disconnected => {
            for _ in 0..20 {
                fleet.disconnect(rand::random_range(1..4)).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        FaultKind::DatabaseDown => fleet.kill_database(LEASE.mul_f64(rand::random_range(0.0..1.5))),
    }
}

fn name(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Killed => "killed",
        FaultKind::Suspended => "suspended for three leases",
        FaultKind::Terminated => "terminated",
        FaultKind::NetworkFrozen => "network frozen",
        FaultKind::Disconnected => "connections closed",
        FaultKind::DatabaseDown => "database killed",
    }
}

impl CheckReport {
    fn add(&mut self, mut other: Self) {
        self.jobs += other.jobs;
        self.runs += other.runs;
        self.lost_before_start += other.lost_before_start;
        self.reruns += other.reruns;
        self.overlaps += other.overlaps;
        self.released += other.released;
        self.kept += other.kept;
        self.forgotten += other.forgotten;
        self.stale += other.stale;
        self.lost += other.lost;
        self.reclaimed.append(&mut other.reclaimed);
        self.restored.append(&mut other.restored);
        self.violations.append(&mut other.violations);
    }
}

fn print(kinds: &BTreeMap<FaultKind, u64>, total: &mut CheckReport) {
    println!("\n{:<28}{:>8}", "fault", "faults");
    for (kind, n) in kinds {
        println!("{:<28}{n:>8}", name(*kind));
    }
    println!("\n{:<28}{:>8}{:>10}{:>10}{:>10}{:>8}", "recovery", "times", "p50", "max", "limit", "late");
    let CheckReport { reclaimed, restored, violations, .. } = total;
    print_recovery("restarted after a kill", reclaimed, LEASE + RECLAIM, violations);
    print_recovery("full rate after an outage", restored, RESTORE, violations);
    if total.forgotten > total.kept {
        total.violations.push("most outcomes of the outages were lost".into());
    }
    println!("\n{} jobs, {} runs, {} released", total.jobs, total.runs, total.released);
    println!(
        "{} explained reruns; {} of them started while the previous run still ran without a lease",
        total.reruns, total.overlaps
    );
    println!("{} leases lost before their handler started", total.lost_before_start);
    println!("{} outcomes kept through an outage, {} lost", total.kept, total.forgotten);
    println!("{} stale outcomes refused, {} lost leases noticed by their workers", total.stale, total.lost);
    println!("{} violations", total.violations.len());
    for violation in &total.violations {
        println!("  {violation}");
    }
}

/// Prints one row. A single slow recovery may be the machine's fault; a median over the limit is a violation.
fn print_recovery(what: &str, took: &mut [Duration], limit: Duration, violations: &mut Vec<String>) {
    took.sort_unstable();
    let Some(longest) = took.last() else { return };
    let median = took[took.len() / 2];
    let late = took.iter().filter(|took| **took > limit).count();
    if median > limit {
        violations.push(format!("{what}: median {median:?}, over the limit of {limit:?}"));
    }
    println!(
        "{what:<28}{:>8}{:>8.2} s{:>8.2} s{:>8.2} s{late:>8}",
        took.len(),
        median.as_secs_f64(),
        longest.as_secs_f64(),
        limit.as_secs_f64(),
    );
}
