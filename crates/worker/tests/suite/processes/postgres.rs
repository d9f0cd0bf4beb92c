//! On PostgreSQL.

use std::time::Duration;

use orchestrix_client::Job;
use orchestrix_testkit::Durability;

use super::{
    fleet::Fleet,
    ground::{Ground, Row},
    jobs::{LEASE, Long},
    journal::now,
    judge::Judgement,
    process::Setup,
    stream::Rate,
    trials::{self, at_peace},
    until,
};

/// What some workers on a busy machine manage easily.
const RATE: Rate = Rate { short: 40.0, long: 4.0, failing: 4.0 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_workers_are_killed_every_job_ends_and_runs_again_only_where_it_was_cut_short() {
    trials::killed(Fleet::on(Ground::own(Durability::Fast)).await, 8, 30, RATE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_asked_to_end_hands_back_what_it_cannot_finish_at_no_cost() {
    trials::terminated(Fleet::on(Ground::shared()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_the_only_thread_keep_their_leases() {
    trials::spinning(Fleet::on(Ground::shared()).await, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_keep_their_leases() {
    trials::spinning(Fleet::on(Ground::shared()).await, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_holds_no_long_jobs_back_from_others() {
    let mut fleet = Fleet::on(Ground::shared()).await;
    fleet.add(Setup::default());
    let long = || (Long { ms: 600_000, again_ms: 50, stubborn: false }.request().build().unwrap(), "completed");
    fleet.record((0..60).map(|_| long()).collect()).await;
    fleet.workers[0].at_work(10).await;
    fleet.add(Setup::default()).at_work(10).await;
    let running = fleet.ground.rows().await.iter().filter(|row| row.state == "running").count();
    assert_eq!(running, 20, "so many run, and the rest is left to whoever comes");
}

/// One worker has begun `n` long jobs; another is there.
async fn begun(fleet: &mut Fleet, n: usize, ms: u64) {
    let long = || (Long { ms, again_ms: 50, stubborn: true }.request().build().unwrap(), "completed");
    fleet.record((0..n).map(|_| long()).collect()).await;
    fleet.workers[0].at_work(n).await;
    fleet.add(Setup::default());
}

/// Waits until the other worker has done them.
async fn done(fleet: &Fleet) -> Vec<Row> {
    fleet.all_finished().await;
    fleet.ground.rows().await
}

/// Waits until the first worker knows that it is too late, for each of `n`, and lets all end: nothing may have changed.
async fn too_late(fleet: Fleet, n: u64, rows: Vec<Row>) -> Judgement {
    let refused = async || Some(fleet.workers[0].written()).filter(|now| now.stale + now.lost >= n);
    until("what comes too late is refused", refused).await;
    assert!(rows.iter().all(|row| row.counter == 2 && row.done_by == Some(2)), "by the other: {rows:?}");
    assert_eq!(fleet.ground.rows().await, rows, "what was refused changed nothing");
    let judgement = fleet.finish().await;
    at_peace(&judgement);
    assert_eq!(judgement.doubles, rows.len(), "{judgement:?}");
    judgement
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_stopped_for_three_leases_changes_nothing_when_it_goes_on() {
    let mut fleet = Fleet::on(Ground::shared()).await;
    fleet.add(Setup::default());
    begun(&mut fleet, 6, 2_000).await;
    let three_leases = tokio::time::Instant::now() + 3 * LEASE;
    let since = fleet.stop(0);
    let rows = done(&fleet).await;
    tokio::time::sleep_until(three_leases).await;
    fleet.go_on(0, since);
    too_late(fleet, 6, rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_that_was_held_up_on_its_way_until_another_had_the_job_is_refused() {
    let mut fleet = Fleet::on(Ground::shared()).await;
    let line = fleet.add_behind(Setup::default());
    begun(&mut fleet, 6, 1_500).await;
    let since = now();
    line.freeze();
    let rows = done(&fleet).await;
    fleet.thaw(0, &line, since);
    let judgement = too_late(fleet, 6, rows).await;
    assert!(judgement.stale > 0, "what was on its way arrived: {judgement:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_by_itself_when_the_database_was_killed_and_came_back() {
    const KILLS: u32 = 3;
    let mut fleet = Fleet::on(Ground::own(Durability::Fast)).await;
    for _ in 0..4 {
        fleet.add(Setup::default());
    }
    fleet.stream(RATE).await;
    let mut survived = 0;
    for n in 0..KILLS {
        let mut running = Vec::new();
        for worker in &fleet.workers {
            worker.has_begun(1).await;
            running.extend(worker.written().open().filter(|run| run.kind == "long").cloned());
        }
        // Shorter than a lease, and longer.
        fleet.kill_database(LEASE.mul_f64(0.1 + 0.6 * f64::from(n)));
        let back = now();
        let begins = || fleet.workers.iter().flat_map(|w| w.written().runs).filter(|run| run.start > back).count();
        until("jobs are begun again", async || (begins() > 50).then_some(())).await;
        survived += fleet.ended(&running).await;
    }
    let judgement = fleet.finish().await;
    at_peace(&judgement);
    println!("{survived} were begun before and completed after");
    assert!(survived > 0, "what ran went on, and its outcome was told");
    assert!(judgement.kept > 0 && judgement.forgotten == 0, "what ended meanwhile was told later: {judgement}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_the_server_ends_cost_nothing_but_time() {
    let mut fleet = Fleet::on(Ground::shared()).await;
    for _ in 0..4 {
        fleet.add(Setup::default());
    }
    fleet.stream(RATE).await;
    for worker in &fleet.workers {
        worker.has_begun(1).await;
    }
    let mut ended = 0;
    let mut pauses = tokio::time::interval(Duration::from_millis(50));
    while ended < 100 {
        pauses.tick().await;
        ended += fleet.disconnect(rand::random_range(1..4)).await;
    }
    let judgement = fleet.finish().await;
    at_peace(&judgement);
}
