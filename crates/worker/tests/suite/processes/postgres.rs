//! Worker processes on PostgreSQL.

use std::time::Duration;

use orchestrix_client::Job;
use orchestrix_testkit::Durability;

use super::{
    checker::CheckReport,
    fleet::Fleet,
    jobs::{LEASE, Long},
    journal::now,
    process::Setup,
    scenarios::{self, assert_no_violations},
    test_store::{Row, TestStore},
    wait_for,
    workload::Rate,
};

/// A rate that a few workers on a busy machine sustain.
const RATE: Rate = Rate { short: 40.0, long: 4.0, failing: 4.0 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_killed_workers_every_job_finishes_and_only_interrupted_jobs_run_again() {
    scenarios::kill_workers(Fleet::on(TestStore::own(Durability::Fast)).await, 8, 30, RATE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_worker_releases_what_it_cannot_finish_at_no_cost() {
    scenarios::terminate_worker(Fleet::on(TestStore::shared()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_the_only_thread_keep_their_leases() {
    scenarios::block_runtime(Fleet::on(TestStore::shared()).await, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_keep_their_leases() {
    scenarios::block_runtime(Fleet::on(TestStore::shared()).await, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_does_not_prefetch_long_jobs() {
    let mut fleet = Fleet::on(TestStore::shared()).await;
    fleet.add(Setup::default());
    let long = || (Long { ms: 600_000, again_ms: 50, stubborn: false }.request().build().unwrap(), "completed");
    fleet.enqueue((0..60).map(|_| long()).collect()).await;
    fleet.workers[0].wait_until_running(10).await;
    fleet.add(Setup::default()).wait_until_running(10).await;
    let running = fleet.store.rows().await.iter().filter(|row| row.state == "running").count();
    assert_eq!(running, 20, "each of two workers holds only the jobs that it runs");
}

/// Makes the first worker start `n` long jobs, then adds a second worker.
async fn start_long_jobs(fleet: &mut Fleet, n: usize, ms: u64) {
    let long = || (Long { ms, again_ms: 50, stubborn: true }.request().build().unwrap(), "completed");
    fleet.enqueue((0..n).map(|_| long()).collect()).await;
    fleet.workers[0].wait_until_running(n).await;
    fleet.add(Setup::default());
}

/// Waits until the second worker has finished the jobs.
async fn finished_rows(fleet: &Fleet) -> Vec<Row> {
    fleet.wait_until_all_finished().await;
    fleet.store.rows().await
}

/// Waits until the first worker has noticed that it lost all `n` leases, and checks that it changed nothing.
async fn assert_first_worker_was_fenced(fleet: Fleet, n: u64, rows: Vec<Row>) -> CheckReport {
    let refused =
        async || Some(fleet.workers[0].journal_contents()).filter(|contents| contents.stale + contents.lost >= n);
    wait_for("the first worker notices its lost leases", refused).await;
    assert!(
        rows.iter().all(|row| row.counter == 2 && row.done_by == Some(2)),
        "the second worker did not finish every job: {rows:?}"
    );
    assert_eq!(fleet.store.rows().await, rows, "a refused outcome changed a job");
    let report = fleet.finish().await;
    assert_no_violations(&report);
    assert_eq!(report.reruns, rows.len(), "{report:?}");
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_suspended_for_three_leases_changes_nothing_when_it_resumes() {
    let mut fleet = Fleet::on(TestStore::shared()).await;
    fleet.add(Setup::default());
    start_long_jobs(&mut fleet, 6, 2_000).await;
    let three_leases = tokio::time::Instant::now() + 3 * LEASE;
    let since = fleet.suspend(0);
    let rows = finished_rows(&fleet).await;
    tokio::time::sleep_until(three_leases).await;
    fleet.resume(0, since);
    assert_first_worker_was_fenced(fleet, 6, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_delayed_by_the_network_until_another_worker_owns_the_job_is_refused() {
    let mut fleet = Fleet::on(TestStore::shared()).await;
    let proxy = fleet.add_behind_proxy(Setup::default());
    start_long_jobs(&mut fleet, 6, 1_500).await;
    let since = now();
    proxy.freeze();
    let rows = finished_rows(&fleet).await;
    fleet.restore_network(0, &proxy, since);
    let report = assert_first_worker_was_fenced(fleet, 6, rows).await;
    assert!(report.stale > 0, "no delayed outcome arrived: {report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_recover_after_the_database_was_killed_and_restarted() {
    const KILLS: u32 = 3;
    let mut fleet = Fleet::on(TestStore::own(Durability::Fast)).await;
    for _ in 0..4 {
        fleet.add(Setup::default());
    }
    fleet.start_workload(RATE).await;
    let mut survived = 0;
    for n in 0..KILLS {
        let mut running = Vec::new();
        for worker in &fleet.workers {
            worker.wait_until_started(1).await;
            running.extend(worker.journal_contents().running().filter(|run| run.kind == "long").cloned());
        }
        // Outages shorter and longer than a lease.
        fleet.kill_database(LEASE.mul_f64(0.1 + 0.6 * f64::from(n)));
        let recovered_at = now();
        let started = || {
            fleet.workers.iter().flat_map(|w| w.journal_contents().runs).filter(|run| run.start > recovered_at).count()
        };
        wait_for("jobs start again", async || (started() > 50).then_some(())).await;
        survived += fleet.wait_for_runs(&running).await;
    }
    let report = fleet.finish().await;
    assert_no_violations(&report);
    println!("{survived} runs started before an outage and completed after it");
    assert!(survived > 0, "no run survived an outage");
    assert!(report.kept > 0 && report.forgotten == 0, "outcomes of an outage were lost: {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_connections_cost_no_job_and_no_attempt() {
    let mut fleet = Fleet::on(TestStore::shared()).await;
    for _ in 0..4 {
        fleet.add(Setup::default());
    }
    fleet.start_workload(RATE).await;
    for worker in &fleet.workers {
        worker.wait_until_started(1).await;
    }
    let mut closed = 0;
    let mut pauses = tokio::time::interval(Duration::from_millis(50));
    while closed < 100 {
        pauses.tick().await;
        closed += fleet.disconnect(rand::random_range(1..4)).await;
    }
    let report = fleet.finish().await;
    assert_no_violations(&report);
}
