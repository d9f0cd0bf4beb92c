//! Hints that something became claimable come after it did.

use orchestrix_core::{NewJob, Queue, Start};

use super::{Harness, fixture::*};
use orchestrix_store::{Outcome, Wakeup, Wakeups};

// The only wall-clock time in the suite, and no test waits for it: it ends one whose hint never comes.
const GIVE_UP: std::time::Duration = secs(20);

async fn hinted(wakeups: &mut Wakeups, queue: &Queue) {
    let hint = async {
        loop {
            match wakeups.next().await {
                Wakeup::Queue(hinted) if hinted != *queue => {}
                _ => return,
            }
        }
    };
    tokio::time::timeout(GIVE_UP, hint).await.expect("a hint should have come");
}

fn in_queue(name: &str) -> NewJob {
    NewJob { queue: queue(name), ..job("t") }
}

pub(super) async fn a_new_job_that_is_claimable_wakes_its_queue(h: &Harness) {
    let mut wakeups = h.store.job_wakeups();
    h.enqueue(in_queue("one")).await;
    hinted(&mut wakeups, &queue("one")).await;
    assert_eq!(h.claim_all().await.len(), 1);
    h.enqueue_many(vec![in_queue("many"), in_queue("more")]).await;
    hinted(&mut wakeups, &queue("many")).await;
    assert_eq!(h.claim_all().await.len(), 2);
}

pub(super) async fn a_promoted_job_wakes_its_queue(h: &Harness) {
    h.enqueue(NewJob { start: Start::After(secs(1)), ..in_queue("q") }).await;
    h.advance(secs(1)).await;
    let mut wakeups = h.store.job_wakeups();
    h.promote().await;
    hinted(&mut wakeups, &queue("q")).await;
    h.claim_one().await;
}

pub(super) async fn a_job_handed_back_or_taken_back_wakes_its_queue(h: &Harness) {
    let claimed = h.start(in_queue("q")).await;
    let mut wakeups = h.store.job_wakeups();
    h.end(&claimed, Outcome::Release).await;
    hinted(&mut wakeups, &queue("q")).await;
    let claimed = h.claim_one().await;
    let mut wakeups = h.store.job_wakeups();
    h.lose(&claimed).await;
    hinted(&mut wakeups, &queue("q")).await;
    h.claim_one().await;
}

pub(super) async fn a_job_unblocked_or_let_go_wakes_its_queue(h: &Harness) {
    let parent = h.start(in_queue("parents")).await;
    h.enqueue(NewJob { queue: queue("children"), ..child_of([parent.id()]) }).await;
    let mut wakeups = h.store.job_wakeups();
    h.end(&parent, Outcome::DONE).await;
    hinted(&mut wakeups, &queue("children")).await;
    h.claim_one().await;
    let held = h.enqueue(NewJob { hold: true, ..in_queue("held") }).await;
    h.store.release_held_job(held).await.expect("a held job");
    hinted(&mut wakeups, &queue("held")).await;
    h.claim_one().await;
}

pub(super) async fn a_retried_job_and_a_resumed_queue_wake(h: &Harness) {
    let dead = h.dead(in_queue("q")).await;
    let mut wakeups = h.store.job_wakeups();
    h.store.retry_job(dead).await.expect("a dead job");
    hinted(&mut wakeups, &queue("q")).await;
    h.store.pause_queue(&queue("q")).await.expect("a store that answers");
    let mut wakeups = h.store.job_wakeups();
    h.store.resume_queue(&queue("q")).await.expect("a store that answers");
    hinted(&mut wakeups, &queue("q")).await;
    h.claim_one().await;
}

pub(super) async fn every_subscriber_is_woken(h: &Harness) {
    let (mut first, mut second) = (h.store.job_wakeups(), h.store.job_wakeups());
    h.enqueue(in_queue("q")).await;
    hinted(&mut first, &queue("q")).await;
    hinted(&mut second, &queue("q")).await;
}
