//! The same jobs on a runtime of somebody's own.

use std::{sync::Arc, thread};

use orchestrix_core::{JobState, NewJob, Queue};

use super::{Harness, fixture::*};
use orchestrix_store::{LeaseStatus, Outcome, OutcomeReport, Store, Wakeup, Wakeups};

/// Runs `work` to its end on a thread with a runtime of its own.
fn elsewhere<T: Send>(work: impl Future<Output = T> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(work)
    };
    thread::scope(|scope| scope.spawn(run).join().expect("work that does not panic"))
}

fn apart(store: &dyn Store) -> Arc<dyn Store> {
    store.dedicated_handle(1).expect("a store apart")
}

pub(super) async fn a_store_apart_holds_the_same_jobs(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let other = h.enqueue(job("other")).await;
    h.advance(secs(1)).await;
    let now = h.now().await;
    let (beats, answers, recorded) = elsewhere(async {
        let store = apart(&*h.store);
        let beats = store.extend_leases(&[claimed.token]).await.expect("a store that answers");
        let items = vec![OutcomeReport { token: claimed.token, outcome: Outcome::DONE }];
        let answers = store.finish_attempts(items).await.expect("a store that answers");
        store.cancel_job(other).await.expect("a waiting job");
        (beats, answers, store.enqueue_job(job("new")).await.expect("a valid job").id)
    });
    assert_eq!(beats, [LeaseStatus::Held(now + claimed.lease)]);
    assert_eq!(answers, [Ok(JobState::Completed)]);
    assert_eq!((h.state(claimed.id()).await, h.state(other).await), (JobState::Completed, JobState::Cancelled));
    assert_eq!(h.claim_one().await.id(), recorded);
}

pub(super) async fn wake_ups_reach_the_subscribers_of_both(h: &Harness) {
    let mut here = h.store.job_wakeups();
    let mut there = elsewhere(async {
        let store = apart(&*h.store);
        let there = store.job_wakeups();
        store.enqueue_job(NewJob { queue: queue("q"), ..job("t") }).await.expect("a valid job");
        there
    });
    for wakeups in [&mut here, &mut there] {
        named(wakeups, &queue("q")).await;
    }
    h.enqueue(NewJob { queue: queue("r"), ..job("t") }).await;
    for wakeups in [&mut here, &mut there] {
        named(wakeups, &queue("r")).await;
    }
}

/// Waits for the hint that names `queue`, past all that do not.
async fn named(wakeups: &mut Wakeups, queue: &Queue) {
    let hint = async { while wakeups.next().await != Wakeup::Queue(queue.clone()) {} };
    tokio::time::timeout(secs(20), hint).await.expect("a hint should have come");
}

pub(super) async fn a_store_apart_outlives_the_first(h: &Harness) {
    let first = apart(&*h.store);
    let second = apart(&*first);
    drop(first);
    let id = second.enqueue_job(job("t")).await.expect("a valid job").id;
    assert_eq!(h.claim_one().await.id(), id);
}
