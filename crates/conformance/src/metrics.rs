//! Metrics: each job is counted once when it is enqueued and once when it finishes, by the store that commits it.
//!
//! The recorder is global to the process, in which other tests may run. So every test uses its own queue and schedule.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
};

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use orchestrix_core::{JobState, Lifecycle, NewJob, NewSchedule, Overlap, Queue, RetryPolicy};

use super::{Harness, fixture::*};
use orchestrix_store::{Backfill, Fence, JobFilter, Outcome};

/// Counters by name and labels. Other metrics are ignored.
#[derive(Debug, Clone, Default)]
struct Counted(Arc<Mutex<BTreeMap<String, u64>>>);

struct One(Counted, String);

impl CounterFn for One {
    fn increment(&self, n: u64) {
        *self.0.0.lock().expect("no test panics while it holds the lock").entry(self.1.clone()).or_default() += n;
    }

    fn absolute(&self, n: u64) {
        self.0.0.lock().expect("no test panics while it holds the lock").insert(self.1.clone(), n);
    }
}

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let name = key.name().trim_start_matches("orchestrix_").trim_end_matches("_total");
        let labels: Vec<&str> = key.labels().map(metrics::Label::value).collect();
        Counter::from_arc(Arc::new(One(self.clone(), format!("{name} {}", labels.join(" ")))))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// The counters of `name`, a queue or a schedule.
fn counted(name: &str) -> Vec<String> {
    let all = recorder().0.lock().expect("no test panics while it holds the lock");
    let mine = all.iter().filter(|(key, _)| key.split(' ').nth(1) == Some(name));
    mine.map(|(key, n)| format!("{} {n}", key.replacen(&format!(" {name}"), "", 1))).collect()
}

fn recorder() -> &'static Counted {
    static RECORDER: OnceLock<Counted> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let counted = Counted::default();
        metrics::set_global_recorder(counted.clone()).expect("no other recorder is installed");
        counted
    })
}

/// A queue that no other test uses.
fn own() -> Queue {
    recorder();
    queue(&format!("q{:x}", rand::random::<u64>()))
}

fn of(queue: &Queue, name: &str) -> NewJob {
    NewJob { queue: queue.clone(), ..job(name) }
}

pub(super) async fn an_enqueued_job_is_counted_once(h: &Harness) {
    let queue = own();
    h.enqueue(of(&queue, "one")).await;
    let keyed = NewJob { idempotency_key: key("k"), ..of(&queue, "keyed") };
    for _ in 0..3 {
        h.enqueue(keyed.clone()).await;
    }
    h.enqueue_many(vec![of(&queue, "many"), keyed.clone(), of(&queue, "many"), of(&queue, "other")]).await;
    let again = NewJob { idempotency_key: key("twice"), ..of(&queue, "keyed") };
    h.enqueue_many(vec![again.clone(), again]).await;
    // Refused, so nothing of it is counted.
    let refused = NewJob { idempotency_key: key("k"), priority: priority(1), ..of(&queue, "keyed") };
    assert!(h.store.enqueue_jobs(vec![of(&queue, "refused"), refused]).await.is_err());
    assert_eq!(
        counted(queue.as_str()),
        ["jobs_enqueued keyed 2", "jobs_enqueued many 2", "jobs_enqueued one 1", "jobs_enqueued other 1"]
    );
}

pub(super) async fn a_finished_job_is_counted_once(h: &Harness) {
    let queue = own();
    let done = h.start(of(&queue, "done")).await;
    for _ in 0..2 {
        h.end(&done, Outcome::DONE).await;
    }
    let dead = h.start(of(&queue, "dead")).await;
    for _ in 0..2 {
        h.end(&dead, fatal("no use")).await;
    }
    h.store.retry_job(dead.id()).await.expect("a dead job");
    let dead = h.claim_one().await;
    h.end(&dead, fatal("no use again")).await;
    let cancelled = h.enqueue(of(&queue, "cancelled")).await;
    for _ in 0..2 {
        h.store.cancel_job(cancelled).await.expect("a waiting job");
    }
    let stopped = h.start(of(&queue, "stopped")).await;
    h.store.cancel_job(stopped.id()).await.expect("a running job");
    h.end(&stopped, Outcome::Cancelled).await;
    // Not finished: a retry, a snooze, a release.
    for outcome in [Outcome::fail("later"), Outcome::Snooze(secs(60)), Outcome::Release] {
        let claimed = h.start(of(&queue, "goes-on")).await;
        h.end(&claimed, outcome).await;
        h.store.cancel_job(claimed.id()).await.expect("a waiting job");
    }
    assert_eq!(
        counted(queue.as_str()).into_iter().filter(|line| line.starts_with("jobs_finished")).collect::<Vec<_>>(),
        [
            "jobs_finished cancelled cancelled 1",
            "jobs_finished dead dead 2",
            "jobs_finished done completed 1",
            "jobs_finished goes-on cancelled 3",
            "jobs_finished stopped cancelled 1",
        ]
    );
}

pub(super) async fn dependents_that_end_with_their_parents_are_counted(h: &Harness) {
    let queue = own();
    let parent = h.start(of(&queue, "parent")).await;
    let child = |ids| NewJob { queue: queue.clone(), ..child_of(ids) };
    let first = h.enqueue(child([parent.id()])).await;
    h.enqueue(child([first])).await;
    h.end(&parent, fatal("no use")).await;
    h.store.unblock_jobs(Fence::NONE, 1_000).await.expect("a valid limit");
    // Cancelled at once, since its parent is dead.
    h.enqueue(child([first])).await;
    assert!(h.listed(&JobFilter { states: vec![JobState::Blocked], ..JobFilter::default() }).await.is_empty());
    assert_eq!(
        counted(queue.as_str()),
        [
            "jobs_enqueued child 3",
            "jobs_enqueued parent 1",
            "jobs_finished child cancelled 3",
            "jobs_finished parent dead 1",
        ]
    );
}

pub(super) async fn jobs_that_sweeps_end_are_counted(h: &Harness) {
    let queue = own();
    let late = NewJob { expires_at: Some(h.now().await + secs(5)), ..of(&queue, "late") };
    h.enqueue(late).await;
    h.advance(secs(10)).await;
    h.expire().await;
    let slow = NewJob { timeout: Some(secs(5)), max_attempts: 1, ..of(&queue, "slow") };
    let slow = h.start(slow).await;
    h.advance(secs(6)).await;
    h.time_out().await;
    // The worker reports the same timeout later, which is answered as a repeat.
    h.end(&slow, Outcome::TimedOut).await;
    let retry = RetryPolicy { base: secs(0), ..RetryPolicy::default() };
    h.enqueue(NewJob { retry, ..of(&queue, "crashes") }).await;
    for _ in 0..Lifecycle::CRASH_LOOP {
        let claimed = h.claim_one().await;
        h.lose(&claimed).await;
    }
    assert_eq!(
        counted(queue.as_str()).into_iter().filter(|line| line.starts_with("jobs_finished")).collect::<Vec<_>>(),
        ["jobs_finished crashes dead 1", "jobs_finished late cancelled 1", "jobs_finished slow dead 1"]
    );
}

pub(super) async fn occurrences_of_schedules_are_counted(h: &Harness) {
    let queue = own();
    // The schedule has the name of the queue.
    let name = schedule_name(queue.as_str());
    let schedule = NewSchedule { name: name.clone(), job: of(&queue, "tick"), overlap: Overlap::Skip, ..every(60) };
    h.put(schedule).await;
    let first = h
        .store
        .schedule(None, &name)
        .await
        .expect("a store that answers")
        .expect("a schedule that exists")
        .next_nominal;
    let first = first.expect("a next time");
    h.fire_at(first).await;
    // The first job is unfinished.
    h.fire_at(first + secs(60)).await;
    h.store.trigger_schedule(None, &name).await.expect("a schedule that exists");
    // Two are missed; the third would fire for all of them but is skipped.
    h.fire_at(first + secs(240)).await;
    let range = Backfill { from: first + secs(60), to: first + secs(61), overlap: Some(Overlap::Allow) };
    assert_eq!(h.store.backfill_schedule(None, &name, &range).await.expect("a valid range"), 1);
    assert_eq!(
        counted(name.as_str()),
        ["jobs_enqueued tick 3", "schedule_fires fired 3", "schedule_fires missed 2", "schedule_fires skipped 2",]
    );
}
