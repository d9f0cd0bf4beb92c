//! Firing: each due occurrence fires once, with its job; late ones follow the misfire policy.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{
    JobState, Json, Misfire, NewJob, NewSchedule, NodeName, Overlap, Start, Timestamp,
    schedule::{OccurrenceOutcome, Plan, Reason},
};

use super::{Harness, fixture::*};
use orchestrix_store::{Epoch, Fence, JobFilter, Leadership, Schedule, StoreError, SweepResult};

const MICRO: Duration = Duration::from_micros(1);

pub(super) async fn a_due_occurrence_has_a_job_and_a_ledger_entry(h: &Harness) {
    let template = NewJob {
        payload: Json::trusted(r#"{ "n": 1.0 }"#),
        queue: queue("reports"),
        priority: priority(5),
        ..job("report")
    };
    let first = h.begin(NewSchedule { job: template.clone(), ..every(60) }).await;
    assert_eq!(h.fire_at(first - MICRO).await, SweepResult { count: 0, next_in: Some(MICRO) });
    assert_eq!((h.ledger().await, h.listed(&JobFilter::default()).await), (vec![], vec![]));
    assert_eq!(h.fire_at(first).await, SweepResult { count: 1, next_in: Some(secs(60)) });
    assert_eq!(h.lines().await, [fired(first)]);
    let line = h.ledger().await.remove(0);
    assert_eq!((line.until, line.count, line.at), (first, 1, first));
    let job = h.job_of(first).await;
    assert_eq!((job.payload, job.queue, job.priority), (template.payload, template.queue, template.priority));
    assert_eq!((job.state, job.created_at), (JobState::Pending, first));
    assert_eq!(job.correlation_id, Some(format!("s@{first}")));
    assert_eq!(h.listed(&JobFilter::default()).await, [job.id]);
    let after = h.schedule().await;
    assert_eq!((after.next_nominal, after.next_fire_at), (Some(first + secs(60)), Some(first + secs(60))));
    assert_eq!((after.counted_from, after.last_fired_at), (first, Some(first)));
}

pub(super) async fn the_job_of_an_occurrence_follows_its_template(h: &Harness) {
    let template = NewJob { correlation_id: Some("mine".into()), start: Start::After(secs(5)), ..job("later") };
    let first = h.begin(NewSchedule { job: template, ..every(60) }).await;
    h.fire_at(first).await;
    let job = h.job_of(first).await;
    assert_eq!(job.correlation_id.as_deref(), Some("mine"));
    assert_eq!((job.state, job.eligible_at), (JobState::Scheduled, first + secs(5)));
}

pub(super) async fn repeated_sweeps_fire_a_nominal_time_once(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(60) }).await;
    for n in 0..3 {
        assert_eq!(h.fire_at(first + secs(60 * n)).await.count, 1);
        assert_eq!(h.fire().await, SweepResult { count: 0, next_in: Some(secs(60)) });
    }
    assert_eq!(h.lines().await, [fired(first), fired(first + secs(60)), fired(first + secs(120))]);
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 3);
}

pub(super) async fn concurrent_sweeps_fire_a_nominal_time_once(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(60) }).await;
    for n in 1..=5 {
        h.pass_until(first + secs(60 * n)).await;
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let store = Arc::clone(&h.store);
                tokio::spawn(async move { store.fire_schedules(Fence::NONE, 10).await })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic").expect("a valid limit");
        }
        h.fire().await;
    }
    let jobs: Vec<_> = h.ledger().await.into_iter().filter_map(|line| line.job).collect();
    assert_eq!(newest_first(jobs.clone()), h.listed(&JobFilter::default()).await);
    assert_eq!(jobs.len(), 5, "all but the first, which was late while the second was on time");
}

pub(super) async fn schedules_fire_longest_due_first_up_to_the_limit(h: &Harness) {
    let start = h.now().await;
    for (name, wait) in [("a", 30), ("b", 10), ("c", 20)] {
        h.put(NewSchedule { name: schedule_name(name), start_at: Some(start + secs(wait)), ..every(1) }).await;
    }
    h.advance(secs(60)).await;
    for name in ["b", "c", "a"] {
        let before =
            h.store.schedule(None, &schedule_name(name)).await.expect("a store that answers").expect("a schedule");
        assert!(before.next_nominal.expect("a next time") <= h.now().await, "{name} waits its turn");
        assert_eq!(h.store.fire_schedules(Fence::NONE, 1).await.expect("a valid limit").count, 1);
        let after =
            h.store.schedule(None, &schedule_name(name)).await.expect("a store that answers").expect("a schedule");
        assert!(after.next_nominal.expect("a next time") > h.now().await, "{name} was the longest due");
    }
    for limit in [0, 10_001] {
        assert_eq!(bad_fields(h.store.fire_schedules(Fence::NONE, limit).await), ["limit"]);
    }
}

// Ten nominal times pass without a sweep. The sweep comes `late` after the last of them.
async fn after_downtime(h: &Harness, misfire: Misfire, limit: u32, late: Duration) -> (Vec<Timestamp>, Vec<Line>) {
    let schedule = NewSchedule { misfire, catch_up_limit: limit, overlap: Overlap::Allow, ..every(60) };
    let first = h.begin(schedule).await;
    let times: Vec<Timestamp> = (0..10).map(|n| first + secs(60 * n)).collect();
    assert_eq!(h.fire_at(times[9] + late).await.count, 1);
    let lines = h.lines().await;
    let jobs = lines.iter().filter(|(_, outcome, _)| *outcome == OccurrenceOutcome::Fired).count();
    assert_eq!(h.listed(&JobFilter::default()).await.len(), jobs);
    assert_eq!(h.schedule().await.next_nominal, Some(times[9] + secs(60)));
    assert_eq!(h.fire().await.count, 0);
    (times, lines)
}

const LATE: Duration = secs(45);
const ON_TIME: Duration = secs(10);

pub(super) async fn misfire_skip_records_late_occurrences_as_missed(h: &Harness) {
    let (times, lines) = after_downtime(h, Misfire::Skip, 100, LATE).await;
    assert_eq!(lines, times.into_iter().map(missed).collect::<Vec<_>>());
    assert_eq!(h.schedule().await.last_fired_at, None);
}

pub(super) async fn misfire_skip_fires_occurrences_on_time(h: &Harness) {
    let (times, lines) = after_downtime(h, Misfire::Skip, 100, ON_TIME).await;
    let expected: Vec<Line> = times[..9].iter().copied().map(missed).chain([fired(times[9])]).collect();
    assert_eq!(lines, expected);
}

pub(super) async fn by_default_the_latest_late_occurrence_fires_once(h: &Harness) {
    assert_eq!(Misfire::default(), Misfire::FireOnce);
    let (times, lines) = after_downtime(h, Misfire::FireOnce, 100, LATE).await;
    let last = fired_for(times[9], Reason::CatchUp);
    assert_eq!(lines, times[..9].iter().copied().map(missed).chain([last]).collect::<Vec<_>>());
}

pub(super) async fn by_default_no_late_occurrence_fires_beside_one_on_time(h: &Harness) {
    let (times, lines) = after_downtime(h, Misfire::FireOnce, 100, ON_TIME).await;
    assert_eq!(lines, times[..9].iter().copied().map(missed).chain([fired(times[9])]).collect::<Vec<_>>());
}

pub(super) async fn misfire_catch_up_fires_late_occurrences_up_to_its_limit(h: &Harness) {
    let (times, lines) = after_downtime(h, Misfire::CatchUp, 3, LATE).await;
    let caught_up = times[7..].iter().map(|time| fired_for(*time, Reason::CatchUp));
    assert_eq!(lines, times[..7].iter().copied().map(missed).chain(caught_up).collect::<Vec<_>>());
}

pub(super) async fn long_missed_times_are_one_occurrence_and_the_newest_one_each(h: &Harness) {
    let first = h.begin(NewSchedule { misfire: Misfire::Skip, ..every(60) }).await;
    h.fire_at(first + secs(60 * 99 + 45)).await;
    let ledger = h.ledger().await;
    let listed = usize::try_from(Plan::MISSED_LISTED).expect("a few");
    assert_eq!(ledger.len(), listed + 1);
    let span = &ledger[0];
    assert_eq!((span.nominal, span.until, span.count), (first, first + secs(60 * 75), 76));
    assert_eq!((span.outcome, span.reason), (OccurrenceOutcome::Missed, Some(Reason::Late)));
    assert!(ledger[1..].iter().all(|line| line.count == 1 && line.nominal == line.until));
    assert_eq!(ledger[listed].nominal, first + secs(60 * 99));
}

pub(super) async fn a_long_backlog_fires_in_several_steps(h: &Harness) {
    let all = Schedule::MAX_FIRED * 2 + 5;
    let schedule =
        NewSchedule { misfire: Misfire::CatchUp, catch_up_limit: 1_000, overlap: Overlap::Allow, ..every(60) };
    let first = h.begin(schedule).await;
    let times: Vec<Timestamp> = (0..all as u64).map(|n| first + secs(60 * n)).collect();
    assert_eq!(h.fire_at(times[all - 1] + LATE).await, SweepResult { count: 1, next_in: Some(Duration::ZERO) });
    assert_eq!(h.ledger().await.len(), Schedule::MAX_FIRED);
    assert_eq!(h.fire().await, SweepResult { count: 1, next_in: Some(Duration::ZERO) });
    assert_eq!(h.fire().await, SweepResult { count: 1, next_in: Some(secs(15)) });
    let lines = h.ledger().await;
    assert_eq!(lines.iter().map(|line| line.nominal).collect::<Vec<_>>(), times);
    let jobs: Vec<_> = lines.iter().filter_map(|line| line.job).collect();
    assert_eq!(newest_first(jobs), h.listed(&JobFilter::default()).await);
}

pub(super) async fn a_backlog_delays_no_other_schedule(h: &Harness) {
    let behind = NewSchedule {
        name: schedule_name("behind"),
        misfire: Misfire::CatchUp,
        catch_up_limit: 1_000,
        overlap: Overlap::Allow,
        ..every(1)
    };
    h.put(behind).await;
    h.advance(secs(Schedule::MAX_FIRED as u64 * 3)).await;
    let first = h.begin(every(60)).await;
    h.pass_until(first + secs(1)).await;
    let step = async || h.store.fire_schedules(Fence::NONE, 1).await.expect("a valid limit").count;
    assert_eq!((step().await, h.lines().await), (1, vec![]), "the other schedule was due long before");
    let waiting =
        h.store.schedule(None, &schedule_name("behind")).await.expect("a store that answers").expect("a schedule");
    assert!(waiting.next_nominal.is_some_and(|time| time < first), "its backlog is not done");
    assert_eq!((step().await, h.lines().await), (1, vec![fired(first)]), "the backlog waits behind the other schedule");
}

pub(super) async fn jitter_delays_an_occurrence_and_keeps_its_nominal_time(h: &Harness) {
    let schedule = NewSchedule { jitter: secs(50), ..every(60) };
    let first = h.begin(schedule.clone()).await;
    let due = schedule.timing().due(first);
    assert!(first < due && due < first + secs(50), "{due}");
    assert_eq!(h.schedule().await.next_fire_at, Some(due));
    assert_eq!(h.fire_at(due - MICRO).await, SweepResult { count: 0, next_in: Some(MICRO) });
    assert_eq!(h.fire_at(due).await.count, 1);
    assert_eq!(h.lines().await, [fired(first)]);
    assert_eq!(h.ledger().await[0].at, due);
    let job = h.job_of(first).await;
    assert_eq!((job.created_at, job.correlation_id), (due, Some(format!("s@{first}"))));
}

pub(super) async fn nothing_fires_before_the_start_or_at_and_after_the_end(h: &Harness) {
    let now = h.now().await;
    let first = every(60).cadence.next_after(now + secs(200)).expect("an interval never ends");
    let (start_at, end_at) = (Some(first), Some(first + secs(120)));
    let schedule = NewSchedule { start_at, end_at, misfire: Misfire::CatchUp, overlap: Overlap::Allow, ..every(60) };
    assert_eq!(h.begin(schedule).await, first, "the start is inclusive");
    assert_eq!(h.fire_at(first - MICRO).await.count, 0);
    assert_eq!(h.fire_at(first).await.count, 1);
    assert_eq!(h.fire_at(first + secs(60)).await, SweepResult { count: 1, next_in: None });
    assert_eq!(h.fire_at(first + secs(600)).await, SweepResult::default());
    assert_eq!(h.lines().await, [fired(first), fired(first + secs(60))]);
    assert_eq!(h.schedule().await.next_nominal, None);
}

async fn lead(h: &Harness, name: &str) -> Epoch {
    let answer = h.store.campaign_for_leadership(&NodeName::trusted(name), secs(1), None).await.expect("a valid term");
    let Leadership::Leading(epoch) = answer else { panic!("{name} should lead: {answer:?}") };
    epoch
}

pub(super) async fn a_deposed_leader_fires_nothing(h: &Harness) {
    let first = h.begin(every(60)).await;
    let old = lead(h, "a").await;
    h.pass_until(first + secs(2)).await;
    let new = lead(h, "b").await;
    let before = h.schedule().await;
    match h.store.fire_schedules(Fence::of(old, secs(2)), 10).await {
        Err(StoreError::Deposed { epoch, current }) => assert_eq!((epoch, current), (old, new)),
        other => panic!("a deposed leader was not refused: {other:?}"),
    }
    assert_eq!((h.schedule().await, h.ledger().await), (before, vec![]));
    assert_eq!(h.listed(&JobFilter::default()).await, []);
    assert_eq!(h.store.fire_schedules(Fence::of(new, secs(2)), 10).await.expect("the leader's sweep").count, 1);
    assert_eq!(h.lines().await, [fired(first)]);
}

pub(super) async fn next_sweep_times_report_when_a_schedule_is_due(h: &Harness) {
    let next = || async { h.store.next_sweep_times().await.expect("a store that answers").fire };
    assert_eq!(next().await, None);
    let first = h.begin(every(3600)).await;
    let wait: Duration = first.duration_since(h.now().await).try_into().expect("a later time");
    assert_eq!(next().await, Some(wait));
    h.advance(wait + secs(1)).await;
    assert_eq!(next().await, Some(Duration::ZERO));
    h.fire().await;
    assert_eq!(next().await, Some(secs(3599)));
    h.store.pause_schedule(None, &schedule_name("s"), None).await.expect("a schedule");
    assert_eq!(next().await, None);
    h.store.resume_schedule(None, &schedule_name("s")).await.expect("a schedule");
    assert_eq!(next().await, Some(secs(3599)));
    h.store.delete_schedule(None, &schedule_name("s")).await.expect("a store that answers");
    assert_eq!(next().await, None);
}
