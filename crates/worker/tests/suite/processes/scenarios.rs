//! Scenarios that workers must survive on any store.

use std::time::Duration;

use orchestrix_client::Job;

use super::{
    checker::CheckReport,
    fleet::Fleet,
    jobs::{LEASE, Long, Short, Spin},
    process::Setup,
    wait_for,
    workload::Rate,
};

/// How soon another worker must restart a job after its lease has expired.
pub(crate) const RECLAIM: Duration = Duration::from_secs(5);
/// Extra time for a busy machine.
const SLACK: Duration = Duration::from_secs(10);

/// Prints the report and fails on violations.
pub(crate) fn assert_no_violations(report: &CheckReport) {
    println!("{report}");
    assert_eq!(report.violations, Vec::<String>::new());
}

/// Kills working processes one after the other.
pub(crate) async fn kill_workers(mut fleet: Fleet, workers: usize, kills: usize, rate: Rate) {
    for _ in 0..workers {
        fleet.add(Setup::default());
    }
    fleet.start_workload(rate).await;
    for _ in 0..kills {
        // A worker in the middle of a long job.
        let busy = async || {
            let first = rand::random_range(0..workers);
            (first..first + workers).map(|n| n % workers).find(|n| fleet.workers[*n].is_running("long"))
        };
        let victim = wait_for("a worker runs a long job", busy).await;
        fleet.kill(victim);
        fleet.add(Setup::default());
        // Wait for replacements, so that half of the workers are always running.
        for worker in &fleet.workers[..workers / 2] {
            worker.wait_until_started(1).await;
        }
    }
    let report = fleet.finish().await;
    assert_no_violations(&report);
    assert!(report.reruns >= kills, "each kill interrupted a job: {report:?}");
    let latest = report.reclaimed.iter().max().expect("kills interrupted jobs");
    assert!(*latest < LEASE + RECLAIM + SLACK, "an interrupted job restarted only after {latest:?}");
}

/// Terminates a working process: it releases what it cannot finish at no cost, and another worker does it.
pub(crate) async fn terminate_worker(mut fleet: Fleet) {
    let drain = Duration::from_secs(2);
    fleet.add(Setup { drain, plain: true, ..Setup::default() });
    let endless = |stubborn| (Long { ms: 600_000, again_ms: 10, stubborn }.request().build().unwrap(), "completed");
    let short = || (Short { ms: 300 }.request().build().unwrap(), "completed");
    fleet.enqueue(vec![endless(true), endless(false), endless(true), endless(false)]).await;
    fleet.workers[0].wait_until_running(4).await;
    fleet.enqueue((0..6).map(|_| short()).collect()).await;
    fleet.workers[0].wait_until_started(10).await;
    fleet.terminate(0).await;

    let rows = fleet.store.rows().await;
    let unfinished: Vec<_> = rows.iter().filter(|row| row.state != "completed").collect();
    assert_eq!(unfinished.len(), 4, "the short jobs finished before the worker ended: {rows:?}");
    for row in unfinished {
        assert_eq!((row.state.as_str(), row.attempts, row.counter), ("pending", 0, 1), "{row:?}");
        assert_eq!(row.leases.len(), 1, "{row:?}");
        assert_eq!(row.leases[0].outcome, "released", "{row:?}");
    }
    fleet.add(Setup::default());
    let report = fleet.finish().await;
    assert_no_violations(&report);
    assert_eq!((report.released, report.runs), (4, 14), "each released job ran once more: {report:?}");
}

/// Blocks every thread of a worker's runtime for more than three lease durations while another worker is idle.
pub(crate) async fn block_runtime(mut fleet: Fleet, threads: usize) {
    fleet.add(Setup { threads, ..Setup::default() });
    let spin = || (Spin { ms: 3_500 }.request().build().unwrap(), "completed");
    // One job per thread.
    fleet.enqueue((0..threads).map(|_| spin()).collect()).await;
    fleet.workers[0].wait_until_running(threads).await;
    fleet.add(Setup::default());
    fleet.wait_until_all_finished().await;
    let rows = fleet.store.rows().await;
    assert!(rows.iter().all(|row| (row.attempts, row.counter) == (1, 1)), "a job needed more than one lease: {rows:?}");
    let report = fleet.finish().await;
    assert_no_violations(&report);
    assert_eq!((report.runs, report.stale, report.lost), (threads, 0, 0), "{report:?}");
}
