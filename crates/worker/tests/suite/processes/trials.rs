//! What workers on any store must come through.

use std::time::Duration;

use orchestrix_client::Job;

use super::{
    fleet::Fleet,
    jobs::{LEASE, Long, Short, Spin},
    judge::Judgement,
    process::Setup,
    stream::Rate,
    until,
};

/// How soon a job goes on elsewhere when its worker was killed.
pub(crate) const RECLAIM: Duration = Duration::from_secs(5);
/// What a busy machine gets beyond what is promised.
const SLACK: Duration = Duration::from_secs(10);

/// Prints what was found, and fails if anything is wrong.
pub(crate) fn at_peace(judgement: &Judgement) {
    println!("{judgement}");
    assert_eq!(judgement.violations, Vec::<String>::new());
}

/// Workers are killed while they work, one after the other.
pub(crate) async fn killed(mut fleet: Fleet, workers: usize, kills: usize, rate: Rate) {
    for _ in 0..workers {
        fleet.add(Setup::default());
    }
    fleet.stream(rate).await;
    for _ in 0..kills {
        // Whoever is in the middle of something long; often of other things too.
        let busy = async || {
            let first = rand::random_range(0..workers);
            (first..first + workers).map(|n| n % workers).find(|n| fleet.workers[*n].is_at("long"))
        };
        let victim = until("somebody works", busy).await;
        fleet.kill(victim);
        fleet.add(Setup::default());
        // Not faster than others take their place: half of them are always at work.
        for worker in &fleet.workers[..workers / 2] {
            worker.has_begun(1).await;
        }
    }
    let judgement = fleet.finish().await;
    at_peace(&judgement);
    assert!(judgement.doubles >= kills, "each cut something short: {judgement:?}");
    let latest = judgement.reclaimed.iter().max().expect("some were cut short");
    assert!(*latest < LEASE + RECLAIM + SLACK, "what was cut short began anew after {latest:?}");
}

/// A worker is asked to end while it works: it hands back what it cannot finish, at no cost, and others do it.
pub(crate) async fn terminated(mut fleet: Fleet) {
    let drain = Duration::from_secs(2);
    fleet.add(Setup { drain, plain: true, ..Setup::default() });
    let hopeless = |stubborn| (Long { ms: 600_000, again_ms: 10, stubborn }.request().build().unwrap(), "completed");
    let soon = || (Short { ms: 300 }.request().build().unwrap(), "completed");
    fleet.record(vec![hopeless(true), hopeless(false), hopeless(true), hopeless(false)]).await;
    fleet.workers[0].at_work(4).await;
    fleet.record((0..6).map(|_| soon()).collect()).await;
    fleet.workers[0].has_begun(10).await;
    fleet.terminate(0).await;

    let rows = fleet.ground.rows().await;
    let unfinished: Vec<_> = rows.iter().filter(|row| row.state != "completed").collect();
    assert_eq!(unfinished.len(), 4, "the others were let finish: {rows:?}");
    for row in unfinished {
        assert_eq!((row.state.as_str(), row.attempts, row.counter), ("pending", 0, 1), "{row:?}");
        assert_eq!(row.leases.len(), 1, "{row:?}");
        assert_eq!(row.leases[0].outcome, "released", "{row:?}");
    }
    fleet.add(Setup::default());
    let judgement = fleet.finish().await;
    at_peace(&judgement);
    assert_eq!((judgement.released, judgement.runs), (4, 14), "each once more: {judgement:?}");
}

/// Handlers that keep every thread of their runtime busy for more than three leases, with others waiting to take over.
pub(crate) async fn spinning(mut fleet: Fleet, threads: usize) {
    fleet.add(Setup { threads, ..Setup::default() });
    let spin = || (Spin { ms: 3_500 }.request().build().unwrap(), "completed");
    // One for each thread.
    fleet.record((0..threads).map(|_| spin()).collect()).await;
    fleet.workers[0].at_work(threads).await;
    fleet.add(Setup::default());
    fleet.all_finished().await;
    let rows = fleet.ground.rows().await;
    assert!(rows.iter().all(|row| (row.attempts, row.counter) == (1, 1)), "each by its first lease: {rows:?}");
    let judgement = fleet.finish().await;
    at_peace(&judgement);
    assert_eq!((judgement.runs, judgement.stale, judgement.lost), (threads, 0, 0), "{judgement:?}");
}
