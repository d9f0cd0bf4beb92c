//! Dedicated handles: the same store on a runtime of its own.

use std::{sync::Arc, thread};

use orchestrix_core::{JobState, NewJob, Queue};

use super::{Harness, fixture::*};
use orchestrix_store::{LeaseStatus, Outcome, OutcomeReport, Store, Wakeup, Wakeups};

/// Runs `work` on a thread with a runtime of its own.
fn on_own_runtime<T: Send>(work: impl Future<Output = T> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(work)
    };
    thread::scope(|scope| scope.spawn(run).join().expect("work that does not panic"))
}

fn dedicated(store: &dyn Store) -> Arc<dyn Store> {
    store.dedicated_handle(1).expect("a dedicated handle")
}

pub(super) async fn a_dedicated_handle_sees_the_same_jobs(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let other = h.enqueue(job("other")).await;
    h.advance(secs(1)).await;
    let now = h.now().await;
    let (statuses, answers, enqueued) = on_own_runtime(async {
        let store = dedicated(&*h.store);
        let statuses = store.extend_leases(&[claimed.token]).await.expect("a store that answers");
        let items = vec![OutcomeReport { token: claimed.token, outcome: Outcome::DONE }];
        let answers = store.finish_attempts(items).await.expect("a store that answers");
        store.cancel_job(other).await.expect("a waiting job");
        (statuses, answers, store.enqueue_job(job("new")).await.expect("a valid job").id)
    });
    assert_eq!(statuses, [LeaseStatus::Held(now + claimed.lease)]);
    assert_eq!(answers, [Ok(JobState::Completed)]);
    assert_eq!((h.state(claimed.id()).await, h.state(other).await), (JobState::Completed, JobState::Cancelled));
    assert_eq!(h.claim_one().await.id(), enqueued);
}

pub(super) async fn wakeups_reach_the_subscribers_of_both_handles(h: &Harness) {
    let mut first = h.store.job_wakeups();
    let mut second = on_own_runtime(async {
        let store = dedicated(&*h.store);
        let wakeups = store.job_wakeups();
        store.enqueue_job(NewJob { queue: queue("q"), ..job("t") }).await.expect("a valid job");
        wakeups
    });
    for wakeups in [&mut first, &mut second] {
        woken(wakeups, &queue("q")).await;
    }
    h.enqueue(NewJob { queue: queue("r"), ..job("t") }).await;
    for wakeups in [&mut first, &mut second] {
        woken(wakeups, &queue("r")).await;
    }
}

/// Waits for the wake-up of `queue`, ignoring others.
async fn woken(wakeups: &mut Wakeups, queue: &Queue) {
    let wakeup = async { while wakeups.next().await != Wakeup::Queue(queue.clone()) {} };
    tokio::time::timeout(secs(20), wakeup).await.expect("a wake-up should have come");
}

pub(super) async fn a_dedicated_handle_outlives_the_one_it_came_from(h: &Harness) {
    let first = dedicated(&*h.store);
    let second = dedicated(&*first);
    drop(first);
    let id = second.enqueue_job(job("t")).await.expect("a valid job").id;
    assert_eq!(h.claim_one().await.id(), id);
}
