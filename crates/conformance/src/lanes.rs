//! Lanes: (queue, job type) pairs with claimable jobs.

use orchestrix_core::{JobType, NewJob, Queue, Start};

use super::{Harness, fixture::*};
use orchestrix_store::{Outcome, inspect::MAX_LANES};

fn in_lane(queue_name: &str, kind: &str) -> NewJob {
    NewJob { queue: queue(queue_name), ..job(kind) }
}

async fn lanes(h: &Harness, limit: usize) -> Vec<(Queue, JobType)> {
    h.store.claimable_lanes(limit).await.expect("a valid limit")
}

fn named(names: &[(&str, &str)]) -> Vec<(Queue, JobType)> {
    names.iter().map(|(name, kind)| (queue(name), job_type(kind))).collect()
}

pub(super) async fn an_empty_store_has_no_lanes(h: &Harness) {
    assert_eq!(lanes(h, 10).await, []);
}

pub(super) async fn lanes_are_listed_once_by_queue_and_type(h: &Harness) {
    for (name, kind) in [("b", "mail"), ("a", "report"), ("b-1", "mail"), ("B", "x"), ("a", "mail"), ("b", "mail.big")]
    {
        h.enqueue_many(vec![in_lane(name, kind); 50]).await;
    }
    // Sorted by bytes, whatever the collation of the database.
    let expected = [("B", "x"), ("a", "mail"), ("a", "report"), ("b", "mail"), ("b", "mail.big"), ("b-1", "mail")];
    assert_eq!(lanes(h, MAX_LANES).await, named(&expected));
}

pub(super) async fn only_claimable_jobs_make_a_lane(h: &Harness) {
    let running = h.start(in_lane("q", "running")).await;
    let retrying = h.start(in_lane("q", "retrying")).await;
    h.end(&retrying, Outcome::fail("not yet")).await;
    let done = h.start(in_lane("q", "done")).await;
    h.end(&done, Outcome::DONE).await;
    h.enqueue(NewJob { hold: true, ..in_lane("q", "held") }).await;
    h.enqueue(NewJob { start: Start::After(secs(9)), ..in_lane("q", "scheduled") }).await;
    h.enqueue(NewJob { queue: queue("q"), ..child_of([running.id()]) }).await;
    assert_eq!(lanes(h, 10).await, []);
    h.end(&running, Outcome::Release).await;
    assert_eq!(lanes(h, 10).await, named(&[("q", "running")]));
    h.claim_one().await;
    assert_eq!(lanes(h, 10).await, []);
    h.advance(secs(9)).await;
    h.promote().await;
    assert_eq!(lanes(h, 10).await, named(&[("q", "retrying"), ("q", "scheduled")]));
}

pub(super) async fn a_paused_queue_keeps_its_lanes(h: &Harness) {
    h.enqueue(in_lane("q", "t")).await;
    h.store.pause_queue(&queue("q")).await.expect("a store that answers");
    assert_eq!(lanes(h, 10).await, named(&[("q", "t")]));
}

pub(super) async fn the_first_lanes_up_to_the_limit_are_listed(h: &Harness) {
    for kind in ["c", "a", "d", "b"] {
        h.enqueue(in_lane("q", kind)).await;
    }
    assert_eq!(lanes(h, 2).await, named(&[("q", "a"), ("q", "b")]));
    assert_eq!(lanes(h, 4).await.len(), 4);
}

pub(super) async fn limits_out_of_range_are_refused(h: &Harness) {
    for limit in [0, MAX_LANES + 1] {
        assert_eq!(bad_fields(h.store.claimable_lanes(limit).await), ["limit"]);
    }
}
