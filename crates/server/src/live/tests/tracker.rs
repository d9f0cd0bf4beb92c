//! The tracker alone, without a store.

use orchestrix_core::{JobId, JobState, JobStatus, JobType, Queue, Tenant, Timestamp};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{ChangesPage, ChangesQuery, JobChange, changes::LeaseCursor, prelude::*};

use super::{enqueue, summarize};
use crate::live::tracker::JobTracker;

fn change(id: JobId, state: JobState) -> JobChange {
    JobChange {
        id,
        job_type: JobType::new("t").unwrap(),
        queue: Queue::new("q").unwrap(),
        tenant: Tenant::new("default").unwrap(),
        state,
        at: Timestamp::UNIX_EPOCH,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn changes(jobs: Vec<JobChange>, second: i64) -> ChangesPage {
    ChangesPage { jobs, ..ChangesPage::none(at(second)) }
}

/// Adds a subscriber to all jobs, and begins the first poll.
fn begin_first_poll(tracker: &mut JobTracker) -> ChangesQuery {
    tracker.add_broad_subscriber();
    assert_eq!(tracker.begin_poll(), None);
    assert!(tracker.needs_time());
    tracker.set_time(at(0));
    tracker.begin_poll().unwrap()
}

#[test]
fn a_job_whose_end_commits_late_is_read_when_it_is_no_longer_leased() {
    let mut tracker = JobTracker::default();
    tracker.add_broad_subscriber();
    let id = JobId::new(Timestamp::UNIX_EPOCH, [1; 10]);
    let query = begin_first_poll(&mut tracker);
    let (updates, lookups) = tracker.apply_changes(&query, changes(vec![change(id, JobState::Running)], 0));
    assert_eq!((summarize(updates), lookups), (vec![(id, Some(JobStatus::Running))], vec![]));
    // The job stays leased until its end is committed.
    for second in 1..20 {
        let query = tracker.begin_poll().unwrap();
        assert!(query.finished_since < Some(at(second - 1)), "the query reads back before the previous poll");
        let (updates, lookups) = tracker.apply_changes(&query, changes(vec![change(id, JobState::Running)], second));
        assert_eq!((summarize(updates), lookups), (vec![], vec![]));
        tracker.evict();
    }
    let query = tracker.begin_poll().unwrap();
    let (updates, lookups) = tracker.apply_changes(&query, changes(Vec::new(), 20));
    assert_eq!((summarize(updates), lookups), (vec![], vec![id]));
}

#[test]
fn a_lease_has_ended_when_a_complete_scan_does_not_show_it_and_not_before() {
    let mut tracker = JobTracker::default();
    let [first, second] = [1, 2].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
    let running = |id| vec![change(id, JobState::Running)];
    let page = |jobs, n, next: Option<JobId>| ChangesPage {
        leased_next: next.map(|id| LeaseCursor { expires_at: at(n), id }),
        ..changes(jobs, n)
    };
    let query = begin_first_poll(&mut tracker);
    tracker.apply_changes(&query, page(running(first), 0, Some(first)));
    for scan in 1..4 {
        // The second page of one scan and the first page of the next.
        let query = tracker.begin_poll().unwrap();
        assert_eq!(query.leased_after.unwrap().id, first);
        assert!(query.finished_since < Some(at(2 * scan - 2)), "a job that the scan has not reached may end meanwhile");
        let (_, lookups) = tracker.apply_changes(&query, page(running(second), 2 * scan - 1, None));
        assert_eq!(lookups, []);
        let query = tracker.begin_poll().unwrap();
        assert!(query.leased_after.unwrap().expires_at < at(0), "the scan starts over");
        let (_, lookups) = tracker.apply_changes(&query, page(running(first), 2 * scan, Some(first)));
        assert_eq!(lookups, []);
    }
    let query = tracker.begin_poll().unwrap();
    let (_, lookups) = tracker.apply_changes(&query, page(Vec::new(), 8, None));
    assert_eq!(lookups, [second]);
}

#[test]
fn a_cancel_that_commits_late_is_published_and_one_before_the_subscription_is_not() {
    let mut tracker = JobTracker::default();
    let [before, late] = [1, 2].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
    let cancelled = |id| change(id, JobState::Cancelled);
    let query = begin_first_poll(&mut tracker);
    assert!(query.cancelled_since.is_some(), "{query:?}");
    let (updates, _) = tracker.apply_changes(&query, changes(vec![cancelled(before)], 0));
    assert_eq!(summarize(updates), []);
    let mut published = Vec::new();
    // Polls do not read cancels every time, but often enough to find it within a few seconds.
    for n in 0..30 {
        let query = tracker.begin_poll().unwrap();
        let shown = match query.cancelled_since {
            Some(since) => {
                assert!(since <= at(-59), "the query reads back a minute: {since}");
                vec![cancelled(before), cancelled(late)]
            }
            None => Vec::new(),
        };
        published.extend(summarize(tracker.apply_changes(&query, changes(shown, n / 15)).0));
        tracker.evict();
    }
    assert_eq!(published, [(late, Some(JobStatus::Cancelled))]);
}

#[test]
fn the_cancel_of_a_watched_job_is_published_though_the_first_broad_subscription_begins() {
    let mut tracker = JobTracker::default();
    let [watched, just_watched, other] = [1, 2, 3].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
    tracker.watch(watched, None);
    assert_eq!(tracker.apply_changes(&ChangesQuery::leased(1), changes(Vec::new(), 0)).0.len(), 0);
    let query = begin_first_poll(&mut tracker);
    tracker.watch(just_watched, None);
    let cancelled = [watched, just_watched, other].map(|id| change(id, JobState::Cancelled)).to_vec();
    let (updates, _) = tracker.apply_changes(&query, changes(cancelled, 0));
    assert_eq!(summarize(updates), [watched, just_watched].map(|id| (id, Some(JobStatus::Cancelled))));
}

#[test]
fn a_lease_scan_starts_after_dead_leases_and_before_any_that_may_be_committed() {
    let mut tracker = JobTracker::default();
    let id = JobId::new(Timestamp::UNIX_EPOCH, [1; 10]);
    let scan = |tracker: &mut JobTracker, from: Option<Timestamp>, now: i64| {
        let query = tracker.begin_poll().unwrap();
        let jobs = from.map(|_| change(id, JobState::Running)).into_iter().collect();
        tracker.apply_changes(&query, ChangesPage { leased_from: from, ..changes(jobs, now) });
        tracker.begin_poll().unwrap().leased_after.unwrap().expires_at
    };
    assert_eq!(begin_first_poll(&mut tracker).leased_after, None);
    // A lease that expired long ago and was not reaped is part of every scan.
    assert_eq!(scan(&mut tracker, Some(at(-500)), 0), at(-560));
    assert_eq!(scan(&mut tracker, Some(at(-500)), 100), at(-560));
    assert_eq!(scan(&mut tracker, Some(at(700)), 200), at(140), "a lease of one second may still be committed");
    assert_eq!(scan(&mut tracker, None, 300), at(240));
}

#[test]
fn the_snapshot_holds_running_and_changed_jobs_and_knows_what_it_lacks() {
    let mut tracker = JobTracker::default();
    let id = |n: u8| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]);
    let query = begin_first_poll(&mut tracker);
    let initial = [change(id(1), JobState::Pending), change(id(2), JobState::Running)];
    tracker.apply_changes(&query, changes(initial.to_vec(), 0));
    tracker.evict();
    assert_eq!(tracker.incomplete_until(at(-59)), None, "the first poll reads back a minute");
    assert_eq!(tracker.incomplete_until(at(-61)), Some(at(-60)));
    let query = tracker.begin_poll().unwrap();
    let running = change(id(2), JobState::Running);
    tracker.apply_changes(&query, changes(vec![running.clone(), change(id(3), JobState::Completed)], 10));
    let mut snapshot: Vec<_> = tracker
        .snapshot()
        .into_iter()
        .map(|entry| (entry.changed_at, entry.running, summarize(vec![entry.update])[0]))
        .collect();
    snapshot.sort_by_key(|(.., (id, _))| *id);
    let expected = [
        (at(0), false, (id(1), Some(JobStatus::Pending))),
        (at(0), true, (id(2), Some(JobStatus::Running))),
        (at(10), false, (id(3), Some(JobStatus::Completed))),
    ];
    assert_eq!(snapshot, expected);
    let query = tracker.begin_poll().unwrap();
    tracker.apply_changes(&query, ChangesPage { more: true, ..changes(vec![running], 11) });
    assert_eq!(
        (tracker.incomplete_until(at(11)), tracker.incomplete_until(at(12))),
        (Some(at(11)), None),
        "a poll overflowed"
    );
}

#[test]
fn changes_before_the_subscription_are_recorded_and_not_published() {
    let mut tracker = JobTracker::default();
    let [before, just_now, ended] = [1, 2, 3].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
    let query = begin_first_poll(&mut tracker);
    let since = [query.enqueued_since, query.finished_since, query.cancelled_since, query.redriven_since];
    assert!(since.iter().all(|since| *since <= Some(at(-59))), "{query:?}");
    let jobs = [(before, JobState::Pending, -30), (just_now, JobState::Pending, 0), (ended, JobState::Completed, -30)];
    let jobs = jobs.map(|(id, state, second)| JobChange { at: at(second), ..change(id, state) }).to_vec();
    let (updates, _) = tracker.apply_changes(&query, changes(jobs.clone(), 0));
    assert_eq!(
        summarize(updates),
        [(just_now, Some(JobStatus::Pending))],
        "the job may have been enqueued after the subscription began"
    );
    let query = tracker.begin_poll().unwrap();
    let (updates, _) = tracker.apply_changes(&query, changes(jobs, 1));
    assert_eq!(summarize(updates), []);
}

/// The next poll that begins a scan of the unfinished jobs: one of five.
fn next_unfinished_scan(tracker: &mut JobTracker) -> ChangesQuery {
    let polls: Vec<ChangesQuery> = (0..5).map(|_| tracker.begin_poll().unwrap()).collect();
    let begins: Vec<&ChangesQuery> = polls.iter().filter(|query| query.ids_after.is_some()).collect();
    assert_eq!(begins.len(), 1, "{polls:?}");
    *begins[0]
}

#[test]
fn an_overflow_is_reported_once_and_makes_the_snapshot_incomplete() {
    let mut tracker = JobTracker::default();
    let query = begin_first_poll(&mut tracker);
    tracker.apply_changes(&query, changes(Vec::new(), 0));
    let mut overflows = Vec::new();
    for second in 1..=10 {
        let query = tracker.begin_poll().unwrap();
        tracker.apply_changes(&query, ChangesPage { more: second == 1, ..changes(Vec::new(), second) });
        if tracker.take_overflow() {
            overflows.push(tracker.incomplete_until(at(second)));
        }
    }
    assert!(matches!(overflows[..], [Some(_)]), "reported once, as incomplete: {overflows:?}");
}

#[test]
fn unfinished_jobs_that_no_poll_returned_are_read_one_page_at_a_time() {
    let mut tracker = JobTracker::default();
    let ids = [1, 2, 3, 4].map(|n| JobId::new(at(-30), [n; 10]));
    let query = begin_first_poll(&mut tracker);
    assert_eq!(query.ids_after, None, "the first poll reads all enqueued jobs");
    tracker.apply_changes(&query, changes(vec![change(ids[0], JobState::Pending)], 0));
    let page = |ids: &[JobId], next| ChangesPage { ids: ids.to_vec(), ids_next: next, ..changes(Vec::new(), 1) };
    let query = next_unfinished_scan(&mut tracker);
    assert_eq!(query.ids_after, Some(JobId::floor(at(-60))), "the scan starts a minute back");
    let (updates, lookups) = tracker.apply_changes(&query, page(&ids[..2], Some(ids[1])));
    assert_eq!((summarize(updates), lookups), (vec![], vec![ids[1]]));
    let query = tracker.begin_poll().unwrap();
    assert_eq!(query.ids_after, Some(ids[1]));
    let (_, lookups) = tracker.apply_changes(&query, page(&ids[2..], None));
    assert_eq!(lookups, ids[2..]);
    assert_eq!(next_unfinished_scan(&mut tracker).ids_after, Some(JobId::floor(at(-59))), "and starts over");
    // If the buffer lacks older waiting jobs, they cannot be distinguished from new ones, so the scan skips them.
    let mut tracker = JobTracker::default();
    let query = begin_first_poll(&mut tracker);
    let many = ids[1..].iter().map(|id| change(*id, JobState::Pending)).collect();
    tracker.apply_changes(&query, ChangesPage { more: true, ..changes(many, 0) });
    assert_eq!(next_unfinished_scan(&mut tracker).ids_after, Some(ids[1]));
}

#[test]
fn repeated_subscriptions_leave_nothing_behind() {
    let mut tracker = JobTracker::default();
    tracker.add_broad_subscriber();
    for n in 0..100 {
        let id = JobId::new(Timestamp::UNIX_EPOCH, [n; 10]);
        tracker.watch(id, None);
        tracker.unwatch(id);
    }
    assert_eq!(tracker.take_lookups(), []);
    let id = JobId::new(Timestamp::UNIX_EPOCH, [1; 10]);
    tracker.queue_lookups(&[id]);
    tracker.watch(id, None);
    tracker.unwatch(id);
    assert_eq!(tracker.take_lookups(), [id], "a broad subscription still covers it");
    tracker.remove_broad_subscriber();
    assert!(tracker.is_idle());
}

#[test]
fn a_job_whose_subscriber_left_while_it_was_read_is_not_kept() {
    let store = MemoryStore::new();
    let mut tracker = JobTracker::default();
    let found = futures_util::FutureExt::now_or_never(async {
        let id = enqueue(&store).await;
        tracker.watch(id, None);
        assert_eq!(tracker.take_lookups(), [id]);
        let found = store.job_summaries(&[id]).await.unwrap();
        tracker.unwatch(id);
        (id, found)
    });
    let (id, found) = found.unwrap();
    assert_eq!(summarize(tracker.apply_jobs(&[id], found)), []);
    assert!(tracker.is_idle() && tracker.latest(id).is_none());
    tracker.requeue_lookups(&[id]);
    assert_eq!(tracker.take_lookups(), [], "it is not read again");
}
