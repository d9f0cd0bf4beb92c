//! On a file of SQLite that all processes share.

use super::{fleet::Fleet, stream::Rate, trials};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_workers_are_killed_every_job_ends_and_runs_again_only_where_it_was_cut_short() {
    let rate = Rate { short: 20.0, long: 3.0, failing: 3.0 };
    trials::killed(Fleet::on_a_file().await, 3, 8, rate).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_asked_to_end_hands_back_what_it_cannot_finish_at_no_cost() {
    trials::terminated(Fleet::on_a_file().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_keep_their_leases() {
    trials::spinning(Fleet::on_a_file().await, 1).await;
}
