//! The same faults for as long as one likes, in random order and at random moments: `cargo xtask chaos workers`.

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use orchestrix_testkit::Durability;

use super::{
    fleet::Fleet,
    ground::Ground,
    jobs::LEASE,
    judge::{Blow, Judgement},
    process::Setup,
    stream::Rate,
    trials::RECLAIM,
};

const MINUTES: &str = "ORCHESTRIX_CHAOS_MINUTES";
const WORKERS: usize = 8;
const RATE: Rate = Rate { short: 60.0, long: 10.0, failing: 6.0 };
/// How long one database and its journals are used before all is judged and begun anew: what is read does not grow for ever.
const ROUND: Duration = Duration::from_secs(300);
/// How soon after the return of the database jobs end at the rate of before.
const RESTORE: Duration = Duration::from_secs(5);

/// Not a test: the body of the command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs for as long as `cargo xtask chaos workers` says"]
async fn chaos() {
    let Ok(minutes) = env::var(MINUTES) else { return };
    let minutes: f64 = minutes.parse().unwrap();
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    println!("\n{WORKERS} workers, leases of {LEASE:?}.");
    let (mut found, mut blows) = (Judgement::default(), BTreeMap::new());
    while Instant::now() < end {
        found.add(round(end.min(Instant::now() + ROUND), &mut blows).await);
    }
    print(&blows, &mut found);
    assert_eq!(found.violations, Vec::<String>::new());
}

async fn round(end: Instant, blows: &mut BTreeMap<Blow, u64>) -> Judgement {
    const BLOWS: [Blow; 6] =
        // Kills are what happens most.
        [Blow::Killed, Blow::Killed, Blow::Stopped, Blow::Terminated, Blow::Disconnected, Blow::Away];
    let mut fleet = Fleet::on(Ground::own(Durability::Durable)).await;
    for _ in 0..WORKERS {
        fleet.add(Setup::default());
    }
    let mut left = Vec::new();
    fleet.stream(RATE).await;
    for worker in &fleet.workers {
        worker.has_begun(1).await;
    }
    loop {
        tokio::time::sleep(Duration::from_millis(rand::random_range(500..3_000))).await;
        if Instant::now() >= end {
            return fleet.finish().await;
        }
        // In random order, and each in its turn.
        if left.is_empty() {
            left.extend(BLOWS);
        }
        let blow = left.swap_remove(rand::random_range(0..left.len()));
        strike(blow, &mut fleet).await;
        println!("{}", name(blow));
        *blows.entry(blow).or_default() += 1;
    }
}

async fn strike(blow: Blow, fleet: &mut Fleet) {
    let victim = rand::random_range(0..fleet.workers.len());
    match blow {
        Blow::Killed => {
            fleet.kill(victim);
            fleet.add(Setup::default());
        }
        Blow::Terminated => {
            fleet.terminate(victim).await;
            fleet.add(Setup::default());
        }
        Blow::Stopped | Blow::Frozen => {
            let since = fleet.stop(victim);
            tokio::time::sleep(3 * LEASE).await;
            fleet.go_on(victim, since);
        }
        Blow::Disconnected => {
            for _ in 0..20 {
                fleet.disconnect(rand::random_range(1..4)).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Blow::Away => fleet.kill_database(LEASE.mul_f64(rand::random_range(0.0..1.5))),
    }
}

fn name(blow: Blow) -> &'static str {
    match blow {
        Blow::Killed => "killed",
        Blow::Stopped => "stopped for three leases",
        Blow::Terminated => "terminated",
        Blow::Frozen => "line frozen",
        Blow::Disconnected => "connections ended",
        Blow::Away => "database killed",
    }
}

impl Judgement {
    fn add(&mut self, mut other: Self) {
        self.jobs += other.jobs;
        self.runs += other.runs;
        self.unbegun += other.unbegun;
        self.doubles += other.doubles;
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

fn print(blows: &BTreeMap<Blow, u64>, found: &mut Judgement) {
    println!("\n{:<28}{:>8}", "fault", "faults");
    for (blow, n) in blows {
        println!("{:<28}{n:>8}", name(*blow));
    }
    println!("\n{:<28}{:>8}{:>10}{:>10}{:>10}{:>8}", "recovery", "times", "p50", "max", "promised", "late");
    let Judgement { reclaimed, restored, violations, .. } = found;
    line("begun anew after a kill", reclaimed, LEASE + RECLAIM, violations);
    line("database back, full rate", restored, RESTORE, violations);
    if found.forgotten > found.kept {
        found.violations.push("most outcomes were forgotten while the database was away".into());
    }
    println!("\n{} jobs, {} runs, {} handed back", found.jobs, found.runs, found.released);
    println!(
        "{} double executions explained; {} of them began while the one before still ran, without a lease",
        found.doubles, found.overlaps
    );
    println!("{} leases lost before they were begun", found.unbegun);
    println!("{} outcomes without a database kept until it was back, {} forgotten", found.kept, found.forgotten);
    println!("{} stale outcomes refused, {} leases found lost by their workers", found.stale, found.lost);
    println!("{} violations", found.violations.len());
    for violation in &found.violations {
        println!("  {violation}");
    }
}

// One that took too long may be the machine's fault; if half of them did, a promise is broken.
fn line(what: &str, took: &mut [Duration], promise: Duration, violations: &mut Vec<String>) {
    took.sort_unstable();
    let Some(longest) = took.last() else { return };
    let median = took[took.len() / 2];
    let late = took.iter().filter(|took| **took > promise).count();
    if median > promise {
        violations.push(format!("{what}: after {median:?}, not {promise:?}"));
    }
    println!(
        "{what:<28}{:>8}{:>8.2} s{:>8.2} s{:>8.2} s{late:>8}",
        took.len(),
        median.as_secs_f64(),
        longest.as_secs_f64(),
        promise.as_secs_f64(),
    );
}
