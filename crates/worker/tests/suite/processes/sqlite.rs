//! Worker processes that share one SQLite file.

use super::{fleet::Fleet, scenarios, workload::Rate};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_killed_workers_every_job_finishes_and_only_interrupted_jobs_run_again() {
    let rate = Rate { short: 20.0, long: 3.0, failing: 3.0 };
    scenarios::kill_workers(Fleet::on_a_file().await, 3, 8, rate).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_worker_releases_what_it_cannot_finish_at_no_cost() {
    scenarios::terminate_worker(Fleet::on_a_file().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_keep_their_leases() {
    scenarios::block_runtime(Fleet::on_a_file().await, 1).await;
}
