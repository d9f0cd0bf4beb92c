mod events;
mod sight;

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
    Feed,
    listener::{Behind, Listener, MOST_JOBS},
    message::{self, Wanted},
    sight::News,
};
use crate::auth::caller::Caller;

const INTERVAL: Duration = Duration::from_millis(200);
/// Far longer than a look takes to come.
const A_WHILE: Duration = Duration::from_secs(5);

/// Every verb of the store in memory asks for the time once.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.0.fetch_add(1, Ordering::Relaxed);
        SystemClock.now()
    }
}

fn feed(buffer: usize) -> (Arc<dyn Store>, Feed) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let feed = Feed::new(Arc::clone(&store), INTERVAL, buffer);
    (store, feed)
}

/// The same on a clock that moves when it is told to, with room for very much.
fn feed_on_a_still_clock() -> (Arc<ManualClock>, Arc<dyn Store>, Feed) {
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
    let feed = Feed::new(Arc::clone(&store), INTERVAL, 1_000);
    (clock, store, feed)
}

fn anybody() -> Caller {
    Caller::anything("test".into())
}

fn bound_to_acme() -> Caller {
    Caller::of(KeyId::trusted("key"), Role::Client, Some(Tenant::new("acme").unwrap()))
}

fn all() -> Wanted {
    Wanted { all: true, ..Wanted::default() }
}

fn jobs(ids: &[JobId]) -> Wanted {
    Wanted { jobs: ids.to_vec(), ..Wanted::default() }
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

/// What is told, of which job; no status for one that is unknown.
type Line = (JobId, Option<JobStatus>);

fn lines(news: Vec<News>) -> Vec<Line> {
    let line = |news: News| match news {
        News::Job(seen) => (seen.job.id, Some(seen.job.status())),
        News::Unknown(id) => (id, None),
    };
    news.into_iter().map(line).collect()
}

/// What is heard until nothing more comes.
async fn heard(listener: &mut Listener) -> Vec<Line> {
    let mut all = Vec::new();
    while let Ok(heard) = timeout(A_WHILE, listener.hear()).await {
        all.extend(lines(listener.wanted(&heard.unwrap())));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_of_the_store_while_nobody_follows() {
    let clock = Arc::new(Counting::default());
    let asked = || clock.0.load(Ordering::Relaxed);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
    let feed = Feed::new(store, INTERVAL, 8);
    let mut listener = feed.listen(&anybody());
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(asked(), 0, "one who follows nothing is nobody");
    listener.follow(all()).unwrap();
    tokio::time::sleep(A_WHILE).await;
    let looks = asked();
    let expected = A_WHILE.as_millis() as usize / INTERVAL.as_millis() as usize;
    assert!((expected / 2..=2 * expected).contains(&looks), "{looks} looks");
    listener.leave(&all());
    tokio::time::sleep(INTERVAL).await;
    let before = asked();
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(asked(), before);
    listener.follow(jobs(&[JobId::new(Timestamp::UNIX_EPOCH, [0; 10])])).unwrap();
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(asked(), before + 1, "what is unknown is looked up once");
    drop(listener);
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_all_hears_of_every_job_in_order_and_of_its_end() {
    let (store, feed) = feed(64);
    let mut listener = feed.listen(&anybody());
    assert_eq!(lines(listener.follow(all()).unwrap()), []);
    assert_eq!(heard(&mut listener).await, []);
    let id = enqueue(&*store).await;
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Pending))]);
    let tokens = claim(&*store, 1).await;
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Running))]);
    // It leaves no trace but that it is no longer leased.
    finish(&*store, &tokens, Outcome::Snooze(Duration::from_secs(60))).await;
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Pending))]);
    store.cancel_job(id).await.unwrap();
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Cancelled))]);
    // Too fast for any look but the last.
    let fast = enqueue(&*store).await;
    let tokens = claim(&*store, 1).await;
    finish(&*store, &tokens, Outcome::DONE).await;
    assert_eq!(heard(&mut listener).await, [(fast, Some(JobStatus::Completed))]);
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_a_queue_hears_what_runs_there_and_nothing_of_others() {
    let (store, feed) = feed(64);
    let queue = Queue::new("q").unwrap();
    let in_queue = || NewJob { queue: queue.clone(), ..job() };
    let runs = store.enqueue_job(in_queue()).await.unwrap().id;
    enqueue(&*store).await;
    claim(&*store, 2).await;
    let wanted = || Wanted { queues: vec![queue.clone()], ..Wanted::default() };
    let mut first = feed.listen(&anybody());
    first.follow(wanted()).unwrap();
    assert_eq!(heard(&mut first).await, [(runs, Some(JobStatus::Running))]);
    let mut second = feed.listen(&anybody());
    assert_eq!(lines(second.follow(wanted()).unwrap()), [(runs, Some(JobStatus::Running))], "known by now");
    let waits = store.enqueue_job(in_queue()).await.unwrap().id;
    enqueue(&*store).await;
    assert_eq!(heard(&mut second).await, [(waits, Some(JobStatus::Pending))]);
    let mut bound = feed.listen(&bound_to_acme());
    assert_eq!(lines(bound.follow(wanted()).unwrap()), []);
    store.cancel_job(waits).await.unwrap();
    assert_eq!(heard(&mut bound).await, [], "another's");
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_a_job_hears_how_it_stands_and_every_change() {
    let (store, feed) = feed(64);
    let (id, other) = (enqueue(&*store).await, enqueue(&*store).await);
    let unknown = JobId::new(Timestamp::UNIX_EPOCH, [7; 10]);
    let mut listener = feed.listen(&anybody());
    listener.follow(jobs(&[id, unknown])).unwrap();
    assert_eq!(heard(&mut listener).await, [(unknown, None), (id, Some(JobStatus::Pending))]);
    let mut second = feed.listen(&anybody());
    assert_eq!(lines(second.follow(jobs(&[id])).unwrap()), [(id, Some(JobStatus::Pending))]);
    let mut bound = feed.listen(&bound_to_acme());
    assert_eq!(lines(bound.follow(jobs(&[id])).unwrap()), [(id, None)], "another's job is not there");
    let tokens = claim(&*store, 2).await;
    finish(&*store, &tokens, fatal()).await;
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Failed))]);
    store.retry_job(id).await.unwrap();
    store.retry_job(other).await.unwrap();
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Pending))]);
    second.leave(&jobs(&[id]));
    store.cancel_job(id).await.unwrap();
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Cancelled))], "though another left");
    assert_eq!(heard(&mut second).await, [], "who left hears nothing more");
    assert_eq!(heard(&mut bound).await, []);
}

#[tokio::test(start_paused = true)]
async fn another_chance_for_a_job_is_heard_by_those_who_follow_all() {
    let (store, feed) = feed(64);
    let id = enqueue(&*store).await;
    let mut listener = feed.listen(&anybody());
    listener.follow(all()).unwrap();
    let tokens = claim(&*store, 1).await;
    heard(&mut listener).await;
    finish(&*store, &tokens, fatal()).await;
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Failed))]);
    store.retry_job(id).await.unwrap();
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Pending))]);
}

#[tokio::test(start_paused = true)]
async fn so_is_one_for_a_job_that_was_over_long_before_anybody_followed() {
    let (clock, store, feed) = feed_on_a_still_clock();
    let ids = [enqueue(&*store).await, enqueue(&*store).await];
    let tokens = claim(&*store, 2).await;
    finish(&*store, &tokens, fatal()).await;
    clock.advance(Duration::from_secs(1_000));
    let mut listener = feed.listen(&anybody());
    listener.follow(all()).unwrap();
    assert_eq!(heard(&mut listener).await, []);
    store.retry_job(ids[0]).await.unwrap();
    assert_eq!(heard(&mut listener).await, [(ids[0], Some(JobStatus::Pending))]);
    clock.advance(Duration::from_secs(200));
    heard(&mut listener).await;
    store.retry_job(ids[1]).await.unwrap();
    assert_eq!(heard(&mut listener).await, [(ids[1], Some(JobStatus::Pending))]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_is_told_that_it_lags_and_then_how_things_stand() {
    let (store, feed) = feed(2);
    let (ends, runs) = (enqueue(&*store).await, enqueue(&*store).await);
    let mut slow = feed.listen(&anybody());
    slow.follow(all()).unwrap();
    let mut by_id = feed.listen(&anybody());
    by_id.follow(jobs(&[ends])).unwrap();
    assert_eq!(heard(&mut by_id).await.len(), 1);
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
    for listener in [&mut slow, &mut by_id] {
        timeout(A_WHILE, listener.hear()).await.unwrap().unwrap_err();
    }
    let now = lines(slow.resync().news);
    assert!(now.contains(&(ends, Some(JobStatus::Completed))), "{now:?}");
    assert!(now.contains(&(runs, Some(JobStatus::Running))), "{now:?}");
    assert_eq!(lines(by_id.resync().news), [(ends, Some(JobStatus::Completed))]);
    // From here on as before, and nothing twice.
    let id = enqueue(&*store).await;
    assert_eq!(heard(&mut slow).await, [(id, Some(JobStatus::Pending))]);
    assert_eq!(heard(&mut by_id).await, []);
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_more_hears_first_what_he_has_not_heard_yet() {
    let (store, feed) = feed(64);
    let id = enqueue(&*store).await;
    let mut listener = feed.listen(&anybody());
    listener.follow(all()).unwrap();
    heard(&mut listener).await;
    let tokens = claim(&*store, 1).await;
    tokio::time::sleep(A_WHILE).await;
    finish(&*store, &tokens, Outcome::DONE).await;
    tokio::time::sleep(A_WHILE).await;
    // Both are waiting to be heard.
    let [runs, done] = [JobStatus::Running, JobStatus::Completed].map(|status| (id, Some(status)));
    let mut told = lines(listener.follow(jobs(&[id])).unwrap());
    told.extend(heard(&mut listener).await);
    assert_eq!(told, [runs, done, done]);
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_more_and_did_not_hear_in_time_begins_anew() {
    let (store, feed) = feed(2);
    let mut listener = feed.listen(&anybody());
    listener.follow(all()).unwrap();
    heard(&mut listener).await;
    for _ in 0..4 {
        enqueue(&*store).await;
        tokio::time::sleep(2 * INTERVAL).await;
    }
    let id = enqueue(&*store).await;
    assert_eq!(listener.follow(jobs(&[id])).unwrap_err(), Behind::Lags);
    let standing = listener.resync();
    assert_eq!(
        (standing.news.len(), standing.lacks),
        (4, None),
        "those that he did not hear of; the job is still to be looked up"
    );
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Pending))]);
}

/// What is told to one who comes back, and whether that is all.
async fn back(listener: &mut Listener) -> (Vec<Line>, bool) {
    let mut told = Vec::new();
    loop {
        match timeout(A_WHILE, listener.hear()).await.unwrap() {
            Ok(batch) => told.extend(lines(listener.wanted(&batch))),
            Err(behind) => {
                assert_eq!(behind, Behind::Returns);
                let standing = listener.resync();
                told.extend(lines(standing.news));
                return (told, standing.lacks.is_none());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_is_told_what_changed_meanwhile_though_nobody_was_there() {
    let (clock, store, feed) = feed_on_a_still_clock();
    let [before, ended, runs] = [enqueue(&*store).await, enqueue(&*store).await, enqueue(&*store).await];
    let tokens = claim(&*store, 3).await;
    let token = |id| *tokens.iter().find(|token| token.job == id).unwrap();
    finish(&*store, &[token(before)], Outcome::DONE).await;
    let since = clock.now();
    // Longer ago than anything is remembered for.
    clock.advance(Duration::from_secs(100));
    let was_here = clock.now();
    clock.advance(Duration::from_secs(30));
    finish(&*store, &[token(ended)], Outcome::DONE).await;
    let waits = enqueue(&*store).await;
    clock.advance(Duration::from_secs(10));
    let mut listener = feed.listen(&anybody());
    assert_eq!(lines(listener.follow(Wanted { since: Some(was_here), ..all() }).unwrap()), []);
    let (told, whole) = back(&mut listener).await;
    let [ended, runs, waits] =
        [(ended, Some(JobStatus::Completed)), (runs, Some(JobStatus::Running)), (waits, Some(JobStatus::Pending))];
    assert!([ended, runs, waits].iter().all(|line| told.contains(line)), "{told:?}");
    assert!(whole && !told.iter().any(|(id, _)| *id == before), "{told:?}");
    // From here on as others.
    let next = enqueue(&*store).await;
    assert_eq!(heard(&mut listener).await, [(next, Some(JobStatus::Pending))]);
    // While others follow it is told from what is remembered.
    let mut second = feed.listen(&anybody());
    second.follow(Wanted { since: Some(since), ..all() }).unwrap();
    let (told, whole) = back(&mut second).await;
    assert!(told.contains(&ended) && !whole, "nobody knows all that happened since then: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn one_who_lags_is_told_of_every_job_that_ended_however_many() {
    const MANY: usize = 30_000;
    let (clock, store, feed) = feed_on_a_still_clock();
    let mut slow = feed.listen(&anybody());
    slow.follow(all()).unwrap();
    heard(&mut slow).await;
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
        // He hears nothing of it, and his buffer overflows.
        for _ in 0..1_100 {
            feed.0.publish(|_| (vec![News::Unknown(JobId::floor(clock.now()))], ()));
        }
    }
    assert_eq!(timeout(A_WHILE, slow.hear()).await.unwrap().unwrap_err(), Behind::Lags);
    let standing = slow.resync();
    let ended = lines(standing.news).into_iter().filter(|(_, status)| *status == Some(JobStatus::Completed));
    assert_eq!((ended.map(|(id, _)| id).collect::<std::collections::HashSet<_>>(), standing.lacks), (ids, None));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_cancelled_before_is_told_to_one_who_follows_it_and_all_others() {
    let (store, feed) = feed(64);
    let id = enqueue(&*store).await;
    store.cancel_job(id).await.unwrap();
    let mut listener = feed.listen(&anybody());
    listener.follow(Wanted { jobs: vec![id], ..all() }).unwrap();
    assert_eq!(heard(&mut listener).await, [(id, Some(JobStatus::Cancelled))]);
}

#[tokio::test(start_paused = true)]
async fn what_runs_is_told_to_one_who_begins_to_follow_all_though_another_follows_it_by_its_id() {
    let (store, feed) = feed(64);
    let id = enqueue(&*store).await;
    claim(&*store, 1).await;
    let mut by_id = feed.listen(&anybody());
    by_id.follow(jobs(&[id])).unwrap();
    let runs = [(id, Some(JobStatus::Running))];
    assert_eq!(heard(&mut by_id).await, runs);
    for _ in 0..2 {
        let mut broad = feed.listen(&anybody());
        let mut told = lines(broad.follow(all()).unwrap());
        told.extend(heard(&mut broad).await);
        assert_eq!(told, runs);
        // The last who follows all leaves, and the next begins anew.
    }
}

#[tokio::test(start_paused = true)]
async fn too_much_at_once_is_a_lag_for_those_who_follow_all() {
    let (clock, store, feed) = feed_on_a_still_clock();
    let id = enqueue(&*store).await;
    let mut broad = feed.listen(&anybody());
    broad.follow(all()).unwrap();
    let mut by_id = feed.listen(&anybody());
    by_id.follow(jobs(&[id])).unwrap();
    heard(&mut broad).await;
    store.enqueue_jobs(vec![job(); MAX_CHANGES]).await.unwrap();
    assert_eq!(heard(&mut broad).await.len(), MAX_CHANGES, "as many as one request may record are told");
    for _ in 0..ENQUEUED_FACTOR {
        store.enqueue_jobs(vec![job(); MAX_CHANGES]).await.unwrap();
    }
    timeout(A_WHILE, async { while broad.hear().await.is_ok() {} }).await.unwrap();
    clock.advance(Duration::from_secs(60));
    assert_eq!(heard(&mut by_id).await, [(id, Some(JobStatus::Pending))]);
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_a_job_that_is_unknown_takes_nothing_from_others_who_follow_it() {
    let (store, feed) = feed(64);
    let unknown = JobId::new(Timestamp::UNIX_EPOCH, [7; 10]);
    let (mut first, mut second) = (feed.listen(&anybody()), feed.listen(&anybody()));
    first.follow(jobs(&[unknown])).unwrap();
    tokio::time::sleep(A_WHILE).await;
    // It was not found, which the first has not heard yet.
    second.follow(jobs(&[unknown])).unwrap();
    first.leave(&jobs(&[unknown]));
    assert_eq!(heard(&mut second).await, [(unknown, None)], "though another left");
    let id = enqueue(&*store).await;
    second.follow(jobs(&[id])).unwrap();
    assert_eq!(heard(&mut second).await, [(id, Some(JobStatus::Pending))]);
}

#[tokio::test(start_paused = true)]
async fn fifty_thousand_leased_jobs_are_followed_without_a_lag_and_each_is_told_when_it_is_leased_no_more() {
    const MANY: usize = 5 * MAX_CHANGES;
    let (clock, store, feed) = feed_on_a_still_clock();
    for _ in 0..5 {
        store.enqueue_jobs(vec![job(); MAX_CHANGES]).await.unwrap();
    }
    // None of them was recorded lately.
    clock.advance(Duration::from_secs(60));
    let mut tokens = Vec::new();
    while tokens.len() < MANY {
        tokens.extend(claim(&*store, 1_000).await);
    }
    let mut listener = feed.listen(&anybody());
    listener.follow(all()).unwrap();
    let running = heard(&mut listener).await;
    assert_eq!(running.len(), MANY, "each once");
    assert!(running.iter().all(|(_, status)| *status == Some(JobStatus::Running)));
    // All at once, and some of them leave no other trace.
    for some in tokens.chunks(1_000) {
        finish(&*store, some, Outcome::Release).await;
    }
    let waiting = heard(&mut listener).await;
    assert_eq!(waiting.len(), MANY);
    assert!(waiting.iter().all(|(_, status)| *status == Some(JobStatus::Pending)));
    let mut later = feed.listen(&anybody());
    assert_eq!(lines(later.follow(all()).unwrap()), [], "nothing runs");
}

#[test]
fn what_cannot_be_followed_is_refused_and_what_is_no_id_is_unknown() {
    let code = |text: &str| message::read(text).unwrap_err().0;
    assert_eq!(code("{"), Code::MalformedRequest);
    for text in
        ["{}", r#"{"subscribe": {"job": []}}"#, r#"{"subscribe": {"queues": ["a b"]}}"#, "[]", r#"{"follow": 1}"#]
    {
        assert_eq!(code(text), Code::ValidationFailed, "{text}");
    }
    let many = format!(r#"{{"subscribe": {{"jobs": [{}""]}}}}"#, r#""","#.repeat(MOST_JOBS));
    assert_eq!(code(&many), Code::ValidationFailed);
    let ask = message::read(r#"{"subscribe": {"jobs": ["nonsense"]}, "unsubscribe": {"all": true}}"#).unwrap();
    assert_eq!((ask.unknown, ask.subscribe.jobs.len(), ask.unsubscribe.all), (vec!["nonsense".to_owned()], 0, true));
}

#[tokio::test]
async fn no_more_jobs_than_allowed_are_followed() {
    let (_store, feed) = feed(8);
    let ids: Vec<JobId> =
        (0..=MOST_JOBS).map(|n| JobId::new(Timestamp::from_second(n as i64).unwrap(), [0; 10])).collect();
    let mut listener = feed.listen(&anybody());
    assert!(listener.refuses(&jobs(&ids)).is_some());
    assert!(listener.refuses(&jobs(&ids[1..])).is_none());
    listener.follow(jobs(&ids[1..])).unwrap();
    assert!(listener.refuses(&jobs(&ids[1..])).is_none(), "the same again");
    assert!(listener.refuses(&jobs(&ids[..1])).is_some());
}
