//! Wake-ups come after jobs became claimable.

use orchestrix_core::{NewJob, Queue, Start};

use super::{Harness, fixture::*};
use orchestrix_store::{Outcome, Wakeup, Wakeups};

// The only real time in the suite. No passing test waits for it; it ends a test whose wake-up never comes.
const WAKEUP_TIMEOUT: std::time::Duration = secs(20);

async fn woken(wakeups: &mut Wakeups, queue: &Queue) {
    let hint = async {
        loop {
            match wakeups.next().await {
                Wakeup::Queue(hinted) if hinted != *queue => {}
                _ => return,
            }
        }
    };
    tokio::time::timeout(WAKEUP_TIMEOUT, hint).await.expect("a wake-up should have come");
}

fn in_queue(name: &str) -> NewJob {
    NewJob { queue: queue(name), ..job("t") }
}

pub(super) async fn a_new_claimable_job_wakes_its_queue(h: &Harness) {
    let mut wakeups = h.store.job_wakeups();
    h.enqueue(in_queue("one")).await;
    woken(&mut wakeups, &queue("one")).await;
    assert_eq!(h.claim_all().await.len(), 1);
    h.enqueue_many(vec![in_queue("many"), in_queue("more")]).await;
    woken(&mut wakeups, &queue("many")).await;
    assert_eq!(h.claim_all().await.len(), 2);
}

pub(super) async fn a_promoted_job_wakes_its_queue(h: &Harness) {
    h.enqueue(NewJob { start: Start::After(secs(1)), ..in_queue("q") }).await;
    h.advance(secs(1)).await;
    let mut wakeups = h.store.job_wakeups();
    h.promote().await;
    woken(&mut wakeups, &queue("q")).await;
    h.claim_one().await;
}

pub(super) async fn a_released_or_reaped_job_wakes_its_queue(h: &Harness) {
    let claimed = h.start(in_queue("q")).await;
    let mut wakeups = h.store.job_wakeups();
    h.end(&claimed, Outcome::Release).await;
    woken(&mut wakeups, &queue("q")).await;
    let claimed = h.claim_one().await;
    let mut wakeups = h.store.job_wakeups();
    h.lose(&claimed).await;
    woken(&mut wakeups, &queue("q")).await;
    h.claim_one().await;
}

pub(super) async fn an_unblocked_or_released_job_wakes_its_queue(h: &Harness) {
    let parent = h.start(in_queue("parents")).await;
    h.enqueue(NewJob { queue: queue("children"), ..child_of([parent.id()]) }).await;
    let mut wakeups = h.store.job_wakeups();
    h.end(&parent, Outcome::DONE).await;
    woken(&mut wakeups, &queue("children")).await;
    h.claim_one().await;
    let held = h.enqueue(NewJob { hold: true, ..in_queue("held") }).await;
    h.store.release_held_job(held).await.expect("a held job");
    woken(&mut wakeups, &queue("held")).await;
    h.claim_one().await;
}

pub(super) async fn a_retried_job_and_a_resumed_queue_wake_their_queue(h: &Harness) {
    let dead = h.dead(in_queue("q")).await;
    let mut wakeups = h.store.job_wakeups();
    h.store.retry_job(dead).await.expect("a dead job");
    woken(&mut wakeups, &queue("q")).await;
    h.store.pause_queue(&queue("q")).await.expect("a store that answers");
    let mut wakeups = h.store.job_wakeups();
    h.store.resume_queue(&queue("q")).await.expect("a store that answers");
    woken(&mut wakeups, &queue("q")).await;
    h.claim_one().await;
}

pub(super) async fn every_subscriber_is_woken(h: &Harness) {
    let (mut first, mut second) = (h.store.job_wakeups(), h.store.job_wakeups());
    h.enqueue(in_queue("q")).await;
    woken(&mut first, &queue("q")).await;
    woken(&mut second, &queue("q")).await;
}
