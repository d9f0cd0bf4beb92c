//! Manual triggers, backfills of past ranges, and the ledger of both.

use std::time::Duration;

use orchestrix_core::{
    JobState, Misfire, NewSchedule, Overlap, Timestamp,
    schedule::{OccurrenceOutcome, Reason},
};

use super::{Harness, fixture::*};
use orchestrix_store::{Backfill, Fence, JobFilter, PageRequest, Result, Retention, SweepResult};

const DAY: Duration = secs(24 * 3600);

async fn trigger(h: &Harness) -> orchestrix_store::Enqueued {
    h.store.trigger_schedule(None, &schedule_name("s")).await.expect("a schedule")
}

async fn backfill(h: &Harness, from: Timestamp, to: Timestamp, overlap: Option<Overlap>) -> Result<usize> {
    h.store.backfill_schedule(None, &schedule_name("s"), &Backfill { from, to, overlap }).await
}

pub(super) async fn a_trigger_enqueues_at_once_and_keeps_the_next_time(h: &Harness) {
    let first = h.begin(every(60)).await;
    h.fire_at(first).await;
    h.advance(secs(7)).await;
    let now = h.now().await;
    let before = h.schedule().await;
    // The earlier job is unfinished, which does not matter for a trigger.
    let enqueued = trigger(h).await;
    assert_eq!((enqueued.state, enqueued.duplicate), (JobState::Pending, false));
    assert_eq!(h.lines().await, [fired(first), fired_for(now, Reason::Trigger)]);
    let job = h.job_of(now).await;
    assert_eq!((job.id, job.correlation_id), (enqueued.id, Some(format!("s@{now}"))));
    let after = h.schedule().await;
    assert_eq!((after.next_nominal, after.counted_from), (before.next_nominal, before.counted_from));
    assert_eq!(after.last_fired_at, Some(now));
}

pub(super) async fn a_paused_schedule_can_be_triggered(h: &Harness) {
    h.put(NewSchedule { paused: true, ..every(60) }).await;
    let enqueued = trigger(h).await;
    assert_eq!(h.claim_one().await.id(), enqueued.id);
    assert!(h.schedule().await.definition.paused);
}

pub(super) async fn every_trigger_has_its_own_occurrence(h: &Harness) {
    let first = h.begin(every(3600)).await;
    h.pass_until(first + secs(1)).await;
    let ids = [trigger(h).await.id, trigger(h).await.id, trigger(h).await.id];
    let ledger = h.ledger().await;
    assert_eq!(ledger.iter().map(|line| line.job).collect::<Vec<_>>(), ids.map(Some));
    let now = h.now().await;
    let times: Vec<Timestamp> = ledger.iter().map(|line| line.nominal).collect();
    assert_eq!(times, [0, 1, 2].map(|micros| now + Duration::from_micros(micros)));
}

pub(super) async fn a_backfill_includes_its_start_and_excludes_its_end(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(60) }).await;
    let before = h.schedule().await;
    let from = first - secs(600);
    assert_eq!(backfill(h, from, from + secs(180), None).await.expect("a valid range"), 3);
    let times = [0, 60, 120].map(|seconds| from + secs(seconds));
    assert_eq!(h.lines().await, times.map(|time| fired_for(time, Reason::Backfill)));
    for time in times {
        let job = h.job_of(time).await;
        assert_eq!((job.state, job.correlation_id), (JobState::Pending, Some(format!("s@{time}"))));
    }
    let after = h.schedule().await;
    assert_eq!((after.next_nominal, after.counted_from), (before.next_nominal, before.counted_from));
    assert_eq!(after.last_fired_at, Some(h.now().await));
}

pub(super) async fn backfilling_a_range_again_changes_nothing(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(60) }).await;
    let from = first - secs(600);
    backfill(h, from, from + secs(180), None).await.expect("a valid range");
    let (schedule, ledger) = (h.schedule().await, h.ledger().await);
    h.advance(secs(1)).await;
    assert_eq!(backfill(h, from, from + secs(180), None).await.expect("a valid range"), 0);
    assert_eq!((h.schedule().await, h.ledger().await), (schedule, ledger));
    assert_eq!(backfill(h, from - secs(60), from + secs(240), None).await.expect("a valid range"), 2, "its edges");
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 5);
}

pub(super) async fn a_backfill_can_have_its_own_overlap_policy(h: &Harness) {
    let first = h.begin(every(60)).await;
    let from = first - secs(600);
    let t = [0, 60, 120].map(|seconds| from + secs(seconds));
    let by_hand = |time| fired_for(time, Reason::Backfill);
    assert_eq!(backfill(h, from, from + secs(180), None).await.expect("a valid range"), 1, "the schedule's own");
    assert_eq!(h.lines().await, [by_hand(t[0]), overlapped(t[1]), overlapped(t[2])]);
    let allow = Some(Overlap::Allow);
    assert_eq!(backfill(h, from, from + secs(180), allow).await.expect("a valid range"), 2, "what did not fire");
    assert_eq!(h.lines().await, t.map(by_hand));
    assert_eq!(h.claim_all().await.len(), 3);
}

pub(super) async fn empty_and_too_long_ranges_are_refused(h: &Harness) {
    let first = h.begin(every(1)).await;
    for to in [first, first - secs(1)] {
        assert_eq!(bad_fields(backfill(h, first, to, None).await), ["to"]);
    }
    assert_eq!(bad_fields(backfill(h, first - secs(10_010), first - secs(1), None).await), ["to"]);
    assert_eq!((h.ledger().await, h.listed(&JobFilter::default()).await), (vec![], vec![]));
}

pub(super) async fn missed_occurrences_can_be_backfilled(h: &Harness) {
    let first = h.begin(NewSchedule { misfire: Misfire::Skip, overlap: Overlap::Allow, ..every(60) }).await;
    // The first 76 missed times are one occurrence, the other 24 one each.
    h.fire_at(first + secs(60 * 99 + 45)).await;
    let last = first + secs(60 * 99);
    assert_eq!(backfill(h, last, last + secs(1), None).await.expect("a valid range"), 1);
    assert_eq!(h.ledger().await.len(), 25, "the occurrence was replaced");
    assert_eq!(h.lines().await[24], fired_for(last, Reason::Backfill));
    // A time in the middle of the span leaves the span as it is; the first ones shorten it.
    let inner = first + secs(120);
    assert_eq!(backfill(h, inner, inner + secs(1), None).await.expect("a valid range"), 1);
    let span = |ledger: &[orchestrix_store::Occurrence]| {
        let line = ledger.iter().find(|line| line.count > 1).expect("a span");
        (line.nominal, line.until, line.outcome)
    };
    let until = first + secs(60 * 75);
    assert_eq!(span(&h.ledger().await), (first, until, OccurrenceOutcome::Missed));
    assert_eq!(backfill(h, first, first + secs(60), None).await.expect("a valid range"), 1);
    assert_eq!(span(&h.ledger().await), (first + secs(60), until, OccurrenceOutcome::Missed));
    assert_eq!(backfill(h, first, last + secs(1), None).await.expect("a valid range"), 97, "three are filled already");
    let ledger = h.ledger().await;
    assert_eq!(ledger.len(), 100);
    assert!(ledger.iter().all(|line| line.outcome == OccurrenceOutcome::Fired && line.count == 1));
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 100);
}

pub(super) async fn future_ranges_are_refused_and_future_times_not_backfilled(h: &Harness) {
    // Paused, so that it fires nothing itself.
    h.put(NewSchedule { paused: true, overlap: Overlap::Allow, ..every(1) }).await;
    let start = every(1).cadence.next_after(h.now().await).expect("an interval never ends") + secs(10);
    h.pass_until(start).await;
    let far = start + Backfill::SKEW + Duration::from_micros(1);
    assert_eq!(bad_fields(backfill(h, start - secs(5), far, None).await), ["to"]);
    for year in ["1999-12-31T23:59:59Z", "2200-01-01T00:00:00Z"] {
        let from: Timestamp = year.parse().expect("a time");
        assert_eq!(bad_fields(backfill(h, from, from + secs(1), None).await)[0], "from");
    }
    assert_eq!(h.ledger().await, []);
    // The caller's clock may be a little ahead: the range is accepted, and future times are left out.
    assert_eq!(backfill(h, start - secs(5), start + secs(30), None).await.expect("a valid range"), 5);
    assert_eq!(h.lines().await.last(), Some(&fired_for(start - secs(1), Reason::Backfill)));
}

pub(super) async fn times_that_the_schedule_will_still_fire_are_not_backfilled(h: &Harness) {
    let schedule = NewSchedule { misfire: Misfire::CatchUp, overlap: Overlap::Allow, ..every(60) };
    let first = h.begin(schedule).await;
    h.fire_at(first).await;
    h.advance(secs(125)).await;
    assert_eq!(backfill(h, first - secs(60), h.now().await, None).await.expect("a valid range"), 1);
    assert_eq!(h.fire().await, SweepResult { count: 1, next_in: Some(secs(55)) });
    let late = fired_for(first + secs(60), Reason::CatchUp);
    let before = fired_for(first - secs(60), Reason::Backfill);
    assert_eq!(h.lines().await, [before, fired(first), late, fired(first + secs(120))]);
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 4);
}

pub(super) async fn a_time_that_waits_for_its_jitter_is_not_backfilled(h: &Harness) {
    let schedule = NewSchedule { jitter: secs(50), ..every(60) };
    let first = h.begin(schedule.clone()).await;
    let due = schedule.timing().due(first);
    assert!(due > first + Duration::from_micros(1), "{due} would prove nothing");
    h.pass_until(first + Duration::from_micros(1)).await;
    assert_eq!(backfill(h, first, h.now().await, None).await.expect("a valid range"), 0);
    h.fire_at(due).await;
    assert_eq!(h.lines().await, [fired(first)]);
}

pub(super) async fn a_backfill_stays_between_start_and_end_of_the_schedule(h: &Harness) {
    let now = h.now().await;
    let from = every(60).cadence.next_after(now).expect("an interval never ends") - secs(600);
    let (start_at, end_at) = (Some(from + secs(60)), Some(from + secs(180)));
    h.put(NewSchedule { start_at, end_at, overlap: Overlap::Allow, ..every(60) }).await;
    assert_eq!(backfill(h, from, now, None).await.expect("a valid range"), 2);
    let by_hand = |seconds| fired_for(from + secs(seconds), Reason::Backfill);
    assert_eq!(h.lines().await, [by_hand(60), by_hand(120)]);
}

pub(super) async fn a_trigger_does_not_take_a_nominal_time_of_the_schedule(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(60) }).await;
    h.pass_until(first).await;
    let ids = [trigger(h).await.id, trigger(h).await.id];
    h.fire().await;
    let micro = Duration::from_micros(1);
    let by_hand = |n| fired_for(first + n * micro, Reason::Trigger);
    assert_eq!(h.lines().await, [fired(first), by_hand(1), by_hand(2)]);
    assert_eq!(h.ledger().await[1..].iter().map(|line| line.job).collect::<Vec<_>>(), ids.map(Some));
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 3);
}

pub(super) async fn occurrences_are_listed_newest_first_page_by_page(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(60) }).await;
    let other = NewSchedule { name: schedule_name("other"), ..every(1) };
    h.put(other).await;
    let from = first - secs(300);
    h.pass_until(first - Duration::from_micros(1)).await;
    backfill(h, from, h.now().await, None).await.expect("a valid range");
    h.fire_at(first).await;
    let name = schedule_name("s");
    let mut times = Vec::new();
    let mut page = PageRequest::first(4);
    loop {
        let part = h.store.list_occurrences(None, &name, &page).await.expect("a valid page");
        times.push(part.items.iter().map(|line| line.nominal).collect::<Vec<_>>());
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 4);
    }
    let at = |seconds| from + secs(seconds);
    assert_eq!(times, [vec![at(300), at(240), at(180), at(120)], vec![at(60), at(0)]]);
    for limit in [0, 1_001] {
        assert_eq!(bad_fields(h.store.list_occurrences(None, &name, &PageRequest::first(limit)).await), ["limit"]);
    }
}

// Prunes occurrences past this retention.
async fn prune(h: &Harness, occurrences: Duration) {
    let retention = Retention { occurrences, ..Retention::default() };
    let pruned = h.store.prune_history(Fence::NONE, &retention, 10_000).await.expect("a valid limit");
    assert!(!pruned.more, "the limit was not reached");
}

pub(super) async fn occurrences_are_pruned_after_their_retention(h: &Harness) {
    let kept = 15 * DAY;
    let first = h.begin(NewSchedule { misfire: Misfire::Skip, ..every(3600) }).await;
    // Twenty days were missed: one occurrence for most of them, and one each for the last day.
    h.fire_at(first + 20 * DAY + secs(1800)).await;
    prune(h, kept).await;
    let before = h.ledger().await;
    assert_eq!((before.len(), before[0].nominal), (25, first), "all of them were just written");
    h.pass_until(before[0].at + kept - Duration::from_micros(1)).await;
    prune(h, kept).await;
    assert_eq!(h.ledger().await, before, "they are kept for all of their retention");
    h.advance(Duration::from_micros(1)).await;
    prune(h, kept).await;
    assert_eq!(h.ledger().await, []);
}

pub(super) async fn a_range_of_long_ago_is_not_backfilled_twice(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(3600) }).await;
    let (from, to) = (first - 90 * DAY, first - 90 * DAY + secs(3 * 3600));
    assert_eq!(backfill(h, from, to, None).await.expect("a valid range"), 3);
    h.advance(DAY).await;
    prune(h, 30 * DAY).await;
    assert_eq!(backfill(h, from, to, None).await.expect("a valid range"), 0);
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 3);
}
