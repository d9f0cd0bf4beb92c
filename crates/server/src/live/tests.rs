mod job_events;
mod tracker;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orchestrix_api::Code;
use orchestrix_core::{
    JobId, JobStatus, JobType, KeyId, LeaseToken, NewJob, Queue, Role, Tenant, Timestamp, WorkerName,
};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{
    ClaimRequest, Clock, ManualClock, Outcome, OutcomeReport, Store, SystemClock,
    changes::{ENQUEUED_FACTOR, MAX_CHANGES},
};
use tokio::time::timeout;

use super::{
    ChangeFeed,
    message::{self, Subscription},
    subscriber::{MAX_JOBS, ResyncReason, Subscriber},
    tracker::JobUpdate,
};
use crate::auth::principal::Principal;

const INTERVAL: Duration = Duration::from_millis(200);
/// Much longer than the poll interval.
const A_WHILE: Duration = Duration::from_secs(5);

/// Counts the queries of an in-memory store, which reads its clock once per query.
#[derive(Debug, Default)]
struct CountingClock(AtomicUsize);

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        self.0.fetch_add(1, Ordering::Relaxed);
        SystemClock.now()
    }
}

fn feed(buffer: usize) -> (Arc<dyn Store>, ChangeFeed) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let feed = ChangeFeed::new(Arc::clone(&store), INTERVAL, buffer);
    (store, feed)
}

/// A feed with a large buffer, on a store whose clock moves only when the test advances it.
fn feed_with_manual_clock() -> (Arc<ManualClock>, Arc<dyn Store>, ChangeFeed) {
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
    let feed = ChangeFeed::new(Arc::clone(&store), INTERVAL, 1_000);
    (clock, store, feed)
}

fn admin() -> Principal {
    Principal::unrestricted("test".into())
}

fn bound_to_acme() -> Principal {
    Principal::from_key(KeyId::trusted("key"), Role::Client, Some(Tenant::new("acme").unwrap()))
}

fn all() -> Subscription {
    Subscription { all: true, ..Subscription::default() }
}

fn jobs(ids: &[JobId]) -> Subscription {
    Subscription { jobs: ids.to_vec(), ..Subscription::default() }
}

fn job() -> NewJob {
    NewJob::new(JobType::new("t").unwrap())
}

async fn enqueue(store: &dyn Store) -> JobId {
    store.enqueue_job(job()).await.unwrap().id
}

async fn claim(store: &dyn Store, limit: usize) -> Vec<LeaseToken> {
    let claimed = store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), limit)).await.unwrap();
    claimed.into_iter().map(|claimed| claimed.token).collect()
}

async fn finish(store: &dyn Store, tokens: &[LeaseToken], outcome: Outcome) {
    let items = tokens.iter().map(|token| OutcomeReport { token: *token, outcome: outcome.clone() }).collect();
    store.finish_attempts(items).await.unwrap().into_iter().for_each(|end| {
        end.unwrap();
    });
}

fn fatal() -> Outcome {
    Outcome::Fail { error: "no use".into(), retryable: false, retry_after: None }
}

/// A received update: the job and its status, or `None` if the job does not exist.
type Received = (JobId, Option<JobStatus>);

fn summarize(updates: Vec<JobUpdate>) -> Vec<Received> {
    let summary = |update: JobUpdate| match update {
        JobUpdate::Status(status) => (status.job.id, Some(status.job.status())),
        JobUpdate::NotFound(id) => (id, None),
    };
    updates.into_iter().map(summary).collect()
}

/// All updates until no more come.
async fn received(subscriber: &mut Subscriber) -> Vec<Received> {
    let mut all = Vec::new();
    while let Ok(batch) = timeout(A_WHILE, subscriber.next_batch()).await {
        all.extend(summarize(subscriber.select(&batch.unwrap())));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn the_store_is_not_polled_without_subscriptions() {
    let clock = Arc::new(CountingClock::default());
    let queries = || clock.0.load(Ordering::Relaxed);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
    let feed = ChangeFeed::new(store, INTERVAL, 8);
    let mut subscriber = feed.subscriber(&admin());
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(queries(), 0, "a subscriber without subscriptions");
    subscriber.subscribe(all()).unwrap();
    tokio::time::sleep(A_WHILE).await;
    let polls = queries();
    let expected = A_WHILE.as_millis() as usize / INTERVAL.as_millis() as usize;
    assert!((expected / 2..=2 * expected).contains(&polls), "{polls} polls");
    subscriber.unsubscribe(&all());
    tokio::time::sleep(INTERVAL).await;
    let before = queries();
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(queries(), before);
    subscriber.subscribe(jobs(&[JobId::new(Timestamp::UNIX_EPOCH, [0; 10])])).unwrap();
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(queries(), before + 1, "an unknown job is read once");
    drop(subscriber);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_all_jobs_receives_every_change_in_order() {
    let (store, feed) = feed(64);
    let mut subscriber = feed.subscriber(&admin());
    assert_eq!(summarize(subscriber.subscribe(all()).unwrap()), []);
    assert_eq!(received(&mut subscriber).await, []);
    let id = enqueue(&*store).await;
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Pending))]);
    let tokens = claim(&*store, 1).await;
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Running))]);
    // The only trace of a snooze is that the job is no longer leased.
    finish(&*store, &tokens, Outcome::Snooze(Duration::from_secs(60))).await;
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Pending))]);
    store.cancel_job(id).await.unwrap();
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Cancelled))]);
    // Several changes between two polls appear as one.
    let fast = enqueue(&*store).await;
    let tokens = claim(&*store, 1).await;
    finish(&*store, &tokens, Outcome::DONE).await;
    assert_eq!(received(&mut subscriber).await, [(fast, Some(JobStatus::Completed))]);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_a_queue_receives_its_running_jobs_and_nothing_of_other_queues() {
    let (store, feed) = feed(64);
    let queue = Queue::new("q").unwrap();
    let in_queue = || NewJob { queue: queue.clone(), ..job() };
    let running = store.enqueue_job(in_queue()).await.unwrap().id;
    enqueue(&*store).await;
    claim(&*store, 2).await;
    let subscription = || Subscription { queues: vec![queue.clone()], ..Subscription::default() };
    let mut first = feed.subscriber(&admin());
    first.subscribe(subscription()).unwrap();
    assert_eq!(received(&mut first).await, [(running, Some(JobStatus::Running))]);
    let mut second = feed.subscriber(&admin());
    assert_eq!(
        summarize(second.subscribe(subscription()).unwrap()),
        [(running, Some(JobStatus::Running))],
        "its initial state is known"
    );
    let waiting = store.enqueue_job(in_queue()).await.unwrap().id;
    enqueue(&*store).await;
    assert_eq!(received(&mut second).await, [(waiting, Some(JobStatus::Pending))]);
    let mut bound = feed.subscriber(&bound_to_acme());
    assert_eq!(summarize(bound.subscribe(subscription()).unwrap()), []);
    store.cancel_job(waiting).await.unwrap();
    assert_eq!(received(&mut bound).await, [], "the job belongs to another tenant");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_a_job_receives_its_status_and_every_change() {
    let (store, feed) = feed(64);
    let (id, other) = (enqueue(&*store).await, enqueue(&*store).await);
    let unknown = JobId::new(Timestamp::UNIX_EPOCH, [7; 10]);
    let mut subscriber = feed.subscriber(&admin());
    subscriber.subscribe(jobs(&[id, unknown])).unwrap();
    assert_eq!(received(&mut subscriber).await, [(unknown, None), (id, Some(JobStatus::Pending))]);
    let mut second = feed.subscriber(&admin());
    assert_eq!(summarize(second.subscribe(jobs(&[id])).unwrap()), [(id, Some(JobStatus::Pending))]);
    let mut bound = feed.subscriber(&bound_to_acme());
    assert_eq!(summarize(bound.subscribe(jobs(&[id])).unwrap()), [(id, None)], "another tenant's job does not exist");
    let tokens = claim(&*store, 2).await;
    finish(&*store, &tokens, fatal()).await;
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Failed))]);
    store.retry_job(id).await.unwrap();
    store.retry_job(other).await.unwrap();
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Pending))]);
    second.unsubscribe(&jobs(&[id]));
    store.cancel_job(id).await.unwrap();
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Cancelled))], "the other unsubscribed");
    assert_eq!(received(&mut second).await, [], "it has unsubscribed");
    assert_eq!(received(&mut bound).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_all_jobs_receives_a_redrive() {
    let (store, feed) = feed(64);
    let id = enqueue(&*store).await;
    let mut subscriber = feed.subscriber(&admin());
    subscriber.subscribe(all()).unwrap();
    let tokens = claim(&*store, 1).await;
    received(&mut subscriber).await;
    finish(&*store, &tokens, fatal()).await;
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Failed))]);
    store.retry_job(id).await.unwrap();
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Pending))]);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_all_jobs_receives_the_redrive_of_a_job_that_finished_long_before() {
    let (clock, store, feed) = feed_with_manual_clock();
    let ids = [enqueue(&*store).await, enqueue(&*store).await];
    let tokens = claim(&*store, 2).await;
    finish(&*store, &tokens, fatal()).await;
    clock.advance(Duration::from_secs(1_000));
    let mut subscriber = feed.subscriber(&admin());
    subscriber.subscribe(all()).unwrap();
    assert_eq!(received(&mut subscriber).await, []);
    store.retry_job(ids[0]).await.unwrap();
    assert_eq!(received(&mut subscriber).await, [(ids[0], Some(JobStatus::Pending))]);
    clock.advance(Duration::from_secs(200));
    received(&mut subscriber).await;
    store.retry_job(ids[1]).await.unwrap();
    assert_eq!(received(&mut subscriber).await, [(ids[1], Some(JobStatus::Pending))]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_lags_and_then_resyncs() {
    let (store, feed) = feed(2);
    let (ends, runs) = (enqueue(&*store).await, enqueue(&*store).await);
    let mut slow = feed.subscriber(&admin());
    slow.subscribe(all()).unwrap();
    let mut by_id = feed.subscriber(&admin());
    by_id.subscribe(jobs(&[ends])).unwrap();
    assert_eq!(received(&mut by_id).await.len(), 1);
    let tokens = claim(&*store, 2).await;
    for n in 0..8 {
        tokio::time::sleep(2 * INTERVAL).await;
        let id = enqueue(&*store).await;
        if n == 4 {
            let mine: Vec<LeaseToken> = tokens.iter().filter(|token| token.job == ends).copied().collect();
            finish(&*store, &mine, Outcome::DONE).await;
        }
        store.cancel_job(id).await.unwrap();
    }
    tokio::time::sleep(A_WHILE).await;
    for subscriber in [&mut slow, &mut by_id] {
        timeout(A_WHILE, subscriber.next_batch()).await.unwrap().unwrap_err();
    }
    let now = summarize(slow.resync().updates);
    assert!(now.contains(&(ends, Some(JobStatus::Completed))), "{now:?}");
    assert!(now.contains(&(runs, Some(JobStatus::Running))), "{now:?}");
    assert_eq!(summarize(by_id.resync().updates), [(ends, Some(JobStatus::Completed))]);
    // After the resync updates continue, without duplicates.
    let id = enqueue(&*store).await;
    assert_eq!(received(&mut slow).await, [(id, Some(JobStatus::Pending))]);
    assert_eq!(received(&mut by_id).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_new_subscription_delivers_pending_updates_first() {
    let (store, feed) = feed(64);
    let id = enqueue(&*store).await;
    let mut subscriber = feed.subscriber(&admin());
    subscriber.subscribe(all()).unwrap();
    received(&mut subscriber).await;
    let tokens = claim(&*store, 1).await;
    tokio::time::sleep(A_WHILE).await;
    finish(&*store, &tokens, Outcome::DONE).await;
    tokio::time::sleep(A_WHILE).await;
    // Both updates are pending.
    let [running, completed] = [JobStatus::Running, JobStatus::Completed].map(|status| (id, Some(status)));
    let mut updates = summarize(subscriber.subscribe(jobs(&[id])).unwrap());
    updates.extend(received(&mut subscriber).await);
    assert_eq!(updates, [running, completed, completed]);
}

#[tokio::test(start_paused = true)]
async fn a_lagging_subscriber_that_adds_a_subscription_resyncs() {
    let (store, feed) = feed(2);
    let mut subscriber = feed.subscriber(&admin());
    subscriber.subscribe(all()).unwrap();
    received(&mut subscriber).await;
    for _ in 0..4 {
        enqueue(&*store).await;
        tokio::time::sleep(2 * INTERVAL).await;
    }
    let id = enqueue(&*store).await;
    assert_eq!(subscriber.subscribe(jobs(&[id])).unwrap_err(), ResyncReason::Lagged);
    let resync = subscriber.resync();
    assert_eq!(
        (resync.updates.len(), resync.incomplete_until),
        (4, None),
        "the missed jobs; the watched one is still to be read"
    );
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Pending))]);
}

/// The updates of a resumed subscription up to its resync, and whether the resync is complete.
async fn resume(subscriber: &mut Subscriber) -> (Vec<Received>, bool) {
    let mut updates = Vec::new();
    loop {
        match timeout(A_WHILE, subscriber.next_batch()).await.unwrap() {
            Ok(batch) => updates.extend(summarize(subscriber.select(&batch))),
            Err(reason) => {
                assert_eq!(reason, ResyncReason::Resumed);
                let resync = subscriber.resync();
                updates.extend(summarize(resync.updates));
                return (updates, resync.incomplete_until.is_none());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_subscription_receives_what_changed_meanwhile() {
    let (clock, store, feed) = feed_with_manual_clock();
    let [before, ended, running] = [enqueue(&*store).await, enqueue(&*store).await, enqueue(&*store).await];
    let tokens = claim(&*store, 3).await;
    let token = |id| *tokens.iter().find(|token| token.job == id).unwrap();
    finish(&*store, &[token(before)], Outcome::DONE).await;
    let since = clock.now();
    // Beyond the retention of the replay buffer.
    clock.advance(Duration::from_secs(100));
    let last_event = clock.now();
    clock.advance(Duration::from_secs(30));
    finish(&*store, &[token(ended)], Outcome::DONE).await;
    let waiting = enqueue(&*store).await;
    clock.advance(Duration::from_secs(10));
    let mut subscriber = feed.subscriber(&admin());
    assert_eq!(summarize(subscriber.subscribe(Subscription { since: Some(last_event), ..all() }).unwrap()), []);
    let (updates, complete) = resume(&mut subscriber).await;
    let [ended, running, waiting] =
        [(ended, Some(JobStatus::Completed)), (running, Some(JobStatus::Running)), (waiting, Some(JobStatus::Pending))];
    assert!([ended, running, waiting].iter().all(|expected| updates.contains(expected)), "{updates:?}");
    assert!(complete && !updates.iter().any(|(id, _)| *id == before), "{updates:?}");
    // Then updates continue.
    let next = enqueue(&*store).await;
    assert_eq!(received(&mut subscriber).await, [(next, Some(JobStatus::Pending))]);
    // While another subscription is active, the resync is served from the replay buffer.
    let mut second = feed.subscriber(&admin());
    second.subscribe(Subscription { since: Some(since), ..all() }).unwrap();
    let (updates, complete) = resume(&mut second).await;
    assert!(updates.contains(&ended) && !complete, "the buffer does not reach back so far: {updates:?}");
}

#[tokio::test(start_paused = true)]
async fn the_resync_of_a_lagging_subscriber_includes_all_of_thirty_thousand_finished_jobs() {
    const MANY: usize = 30_000;
    let (clock, store, feed) = feed_with_manual_clock();
    let mut slow = feed.subscriber(&admin());
    slow.subscribe(all()).unwrap();
    received(&mut slow).await;
    let mut ids = std::collections::HashSet::new();
    while ids.len() < MANY {
        let recorded = store.enqueue_jobs(vec![job(); MAX_CHANGES / 2]).await.unwrap();
        ids.extend(recorded.iter().map(|job| job.id));
        for _ in 0..MAX_CHANGES / 2 / 1_000 {
            let tokens = claim(&*store, 1_000).await;
            finish(&*store, &tokens, Outcome::DONE).await;
        }
        clock.advance(Duration::from_secs(1));
        tokio::time::sleep(2 * INTERVAL).await;
        // The subscriber reads nothing, and its buffer overflows.
        for _ in 0..1_100 {
            feed.0.publish(|_| (vec![JobUpdate::NotFound(JobId::floor(clock.now()))], ()));
        }
    }
    assert_eq!(timeout(A_WHILE, slow.next_batch()).await.unwrap().unwrap_err(), ResyncReason::Lagged);
    let resync = slow.resync();
    let ended = summarize(resync.updates).into_iter().filter(|(_, status)| *status == Some(JobStatus::Completed));
    assert_eq!(
        (ended.map(|(id, _)| id).collect::<std::collections::HashSet<_>>(), resync.incomplete_until),
        (ids, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_cancelled_before_is_reported_to_a_subscriber_of_it_and_of_all_jobs() {
    let (store, feed) = feed(64);
    let id = enqueue(&*store).await;
    store.cancel_job(id).await.unwrap();
    let mut subscriber = feed.subscriber(&admin());
    subscriber.subscribe(Subscription { jobs: vec![id], ..all() }).unwrap();
    assert_eq!(received(&mut subscriber).await, [(id, Some(JobStatus::Cancelled))]);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_all_jobs_receives_a_running_job_that_another_subscriber_watches() {
    let (store, feed) = feed(64);
    let id = enqueue(&*store).await;
    claim(&*store, 1).await;
    let mut by_id = feed.subscriber(&admin());
    by_id.subscribe(jobs(&[id])).unwrap();
    let running = [(id, Some(JobStatus::Running))];
    assert_eq!(received(&mut by_id).await, running);
    for _ in 0..2 {
        let mut broad = feed.subscriber(&admin());
        let mut updates = summarize(broad.subscribe(all()).unwrap());
        updates.extend(received(&mut broad).await);
        assert_eq!(updates, running);
        // The last broad subscriber leaves, and the next one starts afresh.
    }
}

#[tokio::test(start_paused = true)]
async fn more_changes_than_a_poll_returns_are_a_lag_for_broad_subscriptions() {
    let (clock, store, feed) = feed_with_manual_clock();
    let id = enqueue(&*store).await;
    let mut broad = feed.subscriber(&admin());
    broad.subscribe(all()).unwrap();
    let mut by_id = feed.subscriber(&admin());
    by_id.subscribe(jobs(&[id])).unwrap();
    received(&mut broad).await;
    store.enqueue_jobs(vec![job(); MAX_CHANGES]).await.unwrap();
    assert_eq!(received(&mut broad).await.len(), MAX_CHANGES, "as many jobs as one request may enqueue");
    for _ in 0..ENQUEUED_FACTOR {
        store.enqueue_jobs(vec![job(); MAX_CHANGES]).await.unwrap();
    }
    timeout(A_WHILE, async { while broad.next_batch().await.is_ok() {} }).await.unwrap();
    clock.advance(Duration::from_secs(60));
    assert_eq!(received(&mut by_id).await, [(id, Some(JobStatus::Pending))]);
}

#[tokio::test(start_paused = true)]
async fn unsubscribing_from_an_unknown_job_does_not_affect_other_subscribers() {
    let (store, feed) = feed(64);
    let unknown = JobId::new(Timestamp::UNIX_EPOCH, [7; 10]);
    let (mut first, mut second) = (feed.subscriber(&admin()), feed.subscriber(&admin()));
    first.subscribe(jobs(&[unknown])).unwrap();
    tokio::time::sleep(A_WHILE).await;
    // The job was not found, and the first subscriber has not received that yet.
    second.subscribe(jobs(&[unknown])).unwrap();
    first.unsubscribe(&jobs(&[unknown]));
    assert_eq!(received(&mut second).await, [(unknown, None)], "the first one has unsubscribed");
    let id = enqueue(&*store).await;
    second.subscribe(jobs(&[id])).unwrap();
    assert_eq!(received(&mut second).await, [(id, Some(JobStatus::Pending))]);
}

#[tokio::test(start_paused = true)]
async fn fifty_thousand_leased_jobs_are_tracked_without_a_lag() {
    const MANY: usize = 5 * MAX_CHANGES;
    let (clock, store, feed) = feed_with_manual_clock();
    for _ in 0..5 {
        store.enqueue_jobs(vec![job(); MAX_CHANGES]).await.unwrap();
    }
    // None of them was enqueued recently.
    clock.advance(Duration::from_secs(60));
    let mut tokens = Vec::new();
    while tokens.len() < MANY {
        tokens.extend(claim(&*store, 1_000).await);
    }
    let mut subscriber = feed.subscriber(&admin());
    subscriber.subscribe(all()).unwrap();
    let running = received(&mut subscriber).await;
    assert_eq!(running.len(), MANY, "each once");
    assert!(running.iter().all(|(_, status)| *status == Some(JobStatus::Running)));
    // All at once. The only trace of a release is that the job is no longer leased.
    for some in tokens.chunks(1_000) {
        finish(&*store, some, Outcome::Release).await;
    }
    let waiting = received(&mut subscriber).await;
    assert_eq!(waiting.len(), MANY);
    assert!(waiting.iter().all(|(_, status)| *status == Some(JobStatus::Pending)));
    let mut later = feed.subscriber(&admin());
    assert_eq!(summarize(later.subscribe(all()).unwrap()), [], "no job runs");
}

#[test]
fn invalid_messages_are_rejected_and_malformed_ids_are_collected() {
    let code = |text: &str| message::parse(text).unwrap_err().0;
    assert_eq!(code("{"), Code::MalformedRequest);
    for text in
        ["{}", r#"{"subscribe": {"job": []}}"#, r#"{"subscribe": {"queues": ["a b"]}}"#, "[]", r#"{"follow": 1}"#]
    {
        assert_eq!(code(text), Code::ValidationFailed, "{text}");
    }
    let many = format!(r#"{{"subscribe": {{"jobs": [{}""]}}}}"#, r#""","#.repeat(MAX_JOBS));
    assert_eq!(code(&many), Code::ValidationFailed);
    let message = message::parse(r#"{"subscribe": {"jobs": ["nonsense"]}, "unsubscribe": {"all": true}}"#).unwrap();
    assert_eq!(
        (message.malformed_ids, message.subscribe.jobs.len(), message.unsubscribe.all),
        (vec!["nonsense".to_owned()], 0, true)
    );
}

#[tokio::test]
async fn the_number_of_watched_jobs_is_limited() {
    let (_store, feed) = feed(8);
    let ids: Vec<JobId> =
        (0..=MAX_JOBS).map(|n| JobId::new(Timestamp::from_second(n as i64).unwrap(), [0; 10])).collect();
    let mut subscriber = feed.subscriber(&admin());
    assert!(subscriber.exceeds_limit(&jobs(&ids)).is_some());
    assert!(subscriber.exceeds_limit(&jobs(&ids[1..])).is_none());
    subscriber.subscribe(jobs(&ids[1..])).unwrap();
    assert!(subscriber.exceeds_limit(&jobs(&ids[1..])).is_none(), "the same jobs again");
    assert!(subscriber.exceeds_limit(&jobs(&ids[..1])).is_some());
}
