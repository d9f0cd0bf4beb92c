//! Overlap policies: what happens while earlier jobs of a schedule are unfinished.

use orchestrix_core::{JobState, Misfire, NewSchedule, Overlap, Timestamp, schedule::Reason};

use super::{Harness, fixture::*};
use orchestrix_store::{Backfill, JobFilter, LeaseStatus, Outcome, Schedule};

fn with(overlap: Overlap) -> NewSchedule {
    NewSchedule { overlap, ..every(60) }
}

fn times(first: Timestamp) -> [Timestamp; 5] {
    [0, 60, 120, 180, 240].map(|seconds| first + secs(seconds))
}

pub(super) async fn overlap_skip_skips_while_the_earlier_job_is_unfinished(h: &Harness) {
    let t = times(h.begin(with(Overlap::Skip)).await);
    h.fire_at(t[0]).await;
    assert_eq!(h.fire_at(t[1]).await.count, 1, "the schedule moves on nevertheless");
    let running = h.claim_one().await;
    h.fire_at(t[2]).await;
    assert_eq!(h.lines().await, [fired(t[0]), overlapped(t[1]), overlapped(t[2])]);
    assert_eq!(h.schedule().await.last_fired_at, Some(t[0]));
    h.end(&running, Outcome::DONE).await;
    h.fire_at(t[3]).await;
    assert_eq!(h.lines().await[3], fired(t[3]));
}

pub(super) async fn a_job_that_will_be_retried_is_unfinished(h: &Harness) {
    let t = times(h.begin(with(Overlap::Skip)).await);
    h.fire_at(t[0]).await;
    let running = h.claim_one().await;
    assert_eq!(h.end(&running, Outcome::fail("not yet")).await, JobState::Retrying);
    h.fire_at(t[1]).await;
    h.promote().await;
    let running = h.claim_one().await;
    assert_eq!(h.end(&running, fatal("no use")).await, JobState::Dead);
    h.fire_at(t[2]).await;
    h.store.cancel_job(h.job_of(t[2]).await.id).await.expect("a waiting job");
    h.fire_at(t[3]).await;
    assert_eq!(h.lines().await, [fired(t[0]), overlapped(t[1]), fired(t[2]), fired(t[3])]);
}

pub(super) async fn a_triggered_job_counts_as_unfinished(h: &Harness) {
    let t = times(h.begin(with(Overlap::Skip)).await);
    h.store.trigger_schedule(None, &schedule_name("s")).await.expect("a schedule");
    h.fire_at(t[0]).await;
    assert_eq!(h.lines().await[1..], [overlapped(t[0])]);
    let running = h.claim_one().await;
    h.end(&running, Outcome::DONE).await;
    h.fire_at(t[1]).await;
    assert_eq!(h.lines().await[2..], [fired(t[1])]);
}

pub(super) async fn overlap_allow_runs_all(h: &Harness) {
    let t = times(h.begin(with(Overlap::Allow)).await);
    for time in t {
        h.fire_at(time).await;
    }
    assert_eq!(h.lines().await, t.map(fired));
    assert_eq!(h.claim_all().await.len(), 5);
}

pub(super) async fn unfinished_jobs_under_overlap_allow_count_for_a_stricter_policy(h: &Harness) {
    let t = times(h.begin(with(Overlap::Allow)).await);
    h.fire_at(t[0]).await;
    let running = h.claim_one().await;
    let range = |overlap| Backfill { from: t[0] - secs(60), to: t[0], overlap: Some(overlap) };
    let name = schedule_name("s");
    h.advance(secs(1)).await;
    assert_eq!(h.store.backfill_schedule(None, &name, &range(Overlap::Skip)).await.expect("a valid range"), 0);
    h.put(with(Overlap::Skip)).await;
    h.fire_at(t[1]).await;
    assert_eq!(h.lines().await, [overlapped(t[0] - secs(60)), fired(t[0]), overlapped(t[1])]);
    h.end(&running, Outcome::DONE).await;
    h.fire_at(t[2]).await;
    assert_eq!(h.lines().await[3], fired(t[2]));
}

pub(super) async fn overlap_allow_tracks_a_bounded_number_of_open_jobs(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(60) }).await;
    let name = schedule_name("s");
    let fill = async |until: u64, times: u64| {
        let to = first - secs(60 * until);
        let range = Backfill { from: to - secs(60 * times), to, overlap: None };
        assert_eq!(h.store.backfill_schedule(None, &name, &range).await.expect("a valid range") as u64, times);
    };
    fill(10, Schedule::MAX_UNCHECKED as u64).await;
    for claimed in h.claim_all().await {
        h.end(&claimed, Outcome::DONE).await;
    }
    fill(5, 1).await;
    assert_eq!(h.schedule().await.open_jobs.len(), Schedule::MAX_UNCHECKED + 1, "finished jobs were not checked");
    fill(4, 1).await;
    let unfinished = h.claim_all().await.len();
    assert_eq!((unfinished, h.schedule().await.open_jobs.len()), (2, 2));
    fill(1_000, Schedule::MAX_OPEN as u64 + 50).await;
    let open = h.schedule().await.open_jobs;
    assert_eq!(open.len(), Schedule::MAX_OPEN);
    let newest = h.listed(&JobFilter::default()).await;
    assert_eq!(newest_first(open), newest[..Schedule::MAX_OPEN]);
}

async fn assert_buffered_until_the_earlier_ends(h: &Harness, end: impl AsyncFn(orchestrix_store::ClaimedJob)) {
    let t = times(h.begin(with(Overlap::BufferOne)).await);
    h.fire_at(t[0]).await;
    let running = h.claim_one().await;
    for time in &t[1..3] {
        h.fire_at(*time).await;
    }
    assert_eq!(h.lines().await, [fired(t[0]), fired(t[1]), overlapped(t[2])]);
    let waiting = h.job_of(t[1]).await;
    assert_eq!((waiting.state, waiting.depends_on), (JobState::Blocked, vec![running.id()]));
    end(running).await;
    assert_eq!(h.claim_one().await.id(), waiting.id);
    // That one runs now, so another can be buffered behind it.
    h.fire_at(t[3]).await;
    assert_eq!(h.job_of(t[3]).await.depends_on, [waiting.id]);
}

pub(super) async fn overlap_buffer_one_waits_for_the_earlier_job_to_complete(h: &Harness) {
    assert_buffered_until_the_earlier_ends(h, async |running| {
        h.end(&running, Outcome::DONE).await;
    })
    .await;
}

pub(super) async fn overlap_buffer_one_waits_for_the_earlier_job_to_die(h: &Harness) {
    assert_buffered_until_the_earlier_ends(h, async |running| {
        assert_eq!(h.end(&running, fatal("no use")).await, JobState::Dead);
    })
    .await;
}

pub(super) async fn overlap_buffer_one_waits_for_the_earlier_job_to_be_cancelled(h: &Harness) {
    assert_buffered_until_the_earlier_ends(h, async |running| {
        h.store.cancel_job(running.id()).await.expect("a running job");
        assert_eq!(h.end(&running, Outcome::Cancelled).await, JobState::Cancelled);
    })
    .await;
}

pub(super) async fn overlap_cancel_running_cancels_the_earlier_job(h: &Harness) {
    let t = times(h.begin(with(Overlap::CancelRunning)).await);
    h.fire_at(t[0]).await;
    let running = h.claim_one().await;
    h.fire_at(t[1]).await;
    let asked = h.job(running.id()).await;
    assert_eq!((asked.state, asked.cancel_requested), (JobState::Running, true));
    let status = h.store.extend_leases(&[running.token]).await.expect("a store that answers");
    assert!(matches!(status[..], [LeaseStatus::Cancel(_)]), "{status:?}");
    let waiting = h.job_of(t[1]).await;
    assert_eq!((waiting.state, waiting.depends_on.as_slice()), (JobState::Pending, [].as_slice()));
    h.fire_at(t[2]).await;
    assert_eq!(h.state(waiting.id).await, JobState::Cancelled, "it had not started");
    assert_eq!(h.job_of(t[2]).await.state, JobState::Pending);
    assert_eq!(h.lines().await, [fired(t[0]), fired(t[1]), fired(t[2])]);
    assert_eq!(h.end(&running, Outcome::Cancelled).await, JobState::Cancelled);
}

async fn caught_up(h: &Harness, overlap: Overlap) -> ([Timestamp; 5], Vec<Line>) {
    let t = times(h.begin(NewSchedule { misfire: Misfire::CatchUp, ..with(overlap) }).await);
    h.fire_at(t[4] + secs(45)).await;
    let lines = h.lines().await;
    (t, lines)
}

pub(super) async fn overlap_skip_fires_the_first_of_several_due_at_once(h: &Harness) {
    let (t, lines) = caught_up(h, Overlap::Skip).await;
    let late = fired_for(t[0], Reason::CatchUp);
    assert_eq!(lines, [late, overlapped(t[1]), overlapped(t[2]), overlapped(t[3]), overlapped(t[4])]);
}

pub(super) async fn overlap_buffer_one_buffers_the_second_of_several_due_at_once(h: &Harness) {
    let (t, lines) = caught_up(h, Overlap::BufferOne).await;
    let late = |time| fired_for(time, Reason::CatchUp);
    assert_eq!(lines, [late(t[0]), late(t[1]), overlapped(t[2]), overlapped(t[3]), overlapped(t[4])]);
    let (first, second) = (h.job_of(t[0]).await, h.job_of(t[1]).await);
    assert_eq!((first.state, second.state), (JobState::Pending, JobState::Blocked));
    assert_eq!(second.depends_on, [first.id]);
}

pub(super) async fn overlap_cancel_running_fires_the_last_of_several_due_at_once(h: &Harness) {
    let (t, lines) = caught_up(h, Overlap::CancelRunning).await;
    let late = fired_for(t[4], Reason::CatchUp);
    assert_eq!(lines, [overlapped(t[0]), overlapped(t[1]), overlapped(t[2]), overlapped(t[3]), late]);
    assert_eq!(h.job_of(t[4]).await.state, JobState::Pending);
}
