//! Schedules: put, edit, pause, resume, delete.

use std::time::Duration;

use orchestrix_core::{
    Cadence, IdempotencyKey, Json, LimitKey, Misfire, NewJob, NewSchedule, OnDependencyFailure, Overlap, Resources,
    RetryPolicy, Start, Tag, Tenant, Timestamp,
    schedule::{OccurrenceOutcome, Reason},
    tzdb_version,
};

use super::{Harness, fixture::*};
use orchestrix_store::{Backfill, JobFilter, PageRequest, PutResult, Result, StoreError};

// Every field differs from its default.
fn full(now: Timestamp) -> NewSchedule {
    let mut resources = Resources::default();
    resources.set(LimitKey::trusted("gpu"), 0.5).expect("a valid amount");
    let job = NewJob {
        payload: Json::trusted(r#"{ "a": [1, 2.50] }"#),
        queue: queue("reports"),
        priority: priority(7),
        start: Start::After(Duration::from_millis(1500)),
        max_attempts: 9,
        timeout: Some(secs(77)),
        lease: secs(99),
        concurrency_key: Some(LimitKey::trusted("one-at-a-time")),
        rate_limit_key: Some(LimitKey::trusted("ten-a-minute")),
        resources,
        tenant: Tenant::trusted("acme"),
        retry: RetryPolicy { base: secs(3), ..RetryPolicy::default() },
        tags: vec![Tag::trusted("nightly")],
        correlation_id: Some("mine".into()),
        traceparent: Some("00-1-2-3".into()),
        hold: true,
        ..job("report")
    };
    NewSchedule {
        overlap: Overlap::BufferOne,
        misfire: Misfire::CatchUp,
        catch_up_limit: 7,
        jitter: Duration::from_micros(1_500_001),
        start_at: Some(now + secs(3600)),
        end_at: Some(now + secs(1_000_000)),
        paused: true,
        note: Some("not yet: é".into()),
        ..NewSchedule::new(schedule_name("s"), Cadence::cron("30 2 * * 1-5", "Europe/Berlin").expect("valid"), job)
    }
}

pub(super) async fn a_schedule_is_stored_as_it_was_put(h: &Harness) {
    assert_eq!(h.store.schedule(None, &schedule_name("s")).await.expect("a store that answers"), None);
    let start = h.now().await;
    let definition = full(start);
    assert_eq!(h.put(definition.clone()).await, PutResult::Created);
    let kept = h.schedule().await;
    assert_eq!(kept.definition, definition);
    assert_eq!((kept.created_at, kept.updated_at, kept.last_fired_at), (start, start, None));
    assert_eq!((kept.next_nominal, kept.next_fire_at), (None, None), "it is paused");
    assert_eq!(kept.tzdb, tzdb_version());
    let active = NewSchedule { paused: false, note: None, ..definition.clone() };
    assert_eq!(h.put(active.clone()).await, PutResult::Unchanged, "a paused schedule stays paused until it is resumed");
    assert_eq!(h.schedule().await, kept);
    let edited = NewSchedule { jitter: Duration::ZERO, ..active };
    assert_eq!(h.put(edited.clone()).await, PutResult::Updated);
    let kept = h.schedule().await;
    assert_eq!(kept.definition, NewSchedule { paused: true, note: definition.note, ..edited.clone() });
    assert_eq!((kept.next_nominal, kept.next_fire_at), (None, None));
    assert!(h.store.resume_schedule(None, &schedule_name("s")).await.expect("a store that answers"));
    let next = edited.timing().upcoming(start, 1).pop();
    let kept = h.schedule().await;
    assert_eq!((kept.next_nominal, kept.next_fire_at), (next, next));
    assert_eq!(h.ledger().await, []);
}

pub(super) async fn putting_the_same_definition_again_changes_nothing(h: &Harness) {
    let first = h.begin(every(60)).await;
    h.fire_at(first).await;
    let before = h.schedule().await;
    h.advance(secs(300)).await;
    assert_eq!(h.put(every(60)).await, PutResult::Unchanged);
    assert_eq!(h.schedule().await, before);
}

pub(super) async fn an_edit_of_the_times_counts_from_now_and_records_the_missed_old_ones(h: &Harness) {
    let first = h.begin(every(60)).await;
    h.fire_at(first).await;
    // Five more are due, and no sweep fired them.
    h.advance(secs(300)).await;
    let now = h.now().await;
    let edited = NewSchedule { misfire: Misfire::CatchUp, job: job("other"), ..every(120) };
    assert_eq!(h.put(edited.clone()).await, PutResult::Updated);
    assert_eq!(h.fire().await.count, 0, "an edit fires nothing by itself");
    let ledger = h.ledger().await;
    assert_eq!(h.lines().await, [fired(first), missed(first + secs(60))], "its ledger is kept");
    let passed = &ledger[1];
    assert_eq!((passed.until, passed.count, passed.at), (first + secs(300), 5, now));
    let after = h.schedule().await;
    assert_eq!((after.created_at < now, after.updated_at, after.last_fired_at), (true, now, Some(first)));
    let next = after.next_nominal.expect("a next time");
    assert_eq!(Some(next), edited.cadence.next_after(now));
    h.store.cancel_job(h.job_of(first).await.id).await.expect("a waiting job");
    h.fire_at(next).await;
    assert_eq!(h.job_of(next).await.job_type, job_type("other"));
}

pub(super) async fn an_edit_of_anything_else_misses_no_occurrence(h: &Harness) {
    let first = h.begin(NewSchedule { overlap: Overlap::Allow, ..every(60) }).await;
    h.fire_at(first).await;
    let before = h.schedule().await;
    // Three more are due, and no sweep fired them.
    h.advance(secs(185)).await;
    let edited = NewSchedule { misfire: Misfire::CatchUp, overlap: Overlap::Allow, job: job("other"), ..every(60) };
    assert_eq!(h.put(edited).await, PutResult::Updated);
    let after = h.schedule().await;
    assert_eq!((after.counted_from, after.next_nominal), (before.counted_from, before.next_nominal));
    assert_eq!(after.updated_at, h.now().await);
    h.fire().await;
    let late = |seconds| fired_for(first + secs(seconds), Reason::CatchUp);
    assert_eq!(h.lines().await, [fired(first), late(60), late(120), fired(first + secs(180))]);
    assert_eq!(h.job_of(first + secs(60)).await.job_type, job_type("other"));
}

pub(super) async fn an_edit_during_a_pause_records_the_skipped_times(h: &Harness) {
    let name = schedule_name("s");
    let first = h.begin(every(60)).await;
    h.fire_at(first).await;
    h.store.pause_schedule(None, &name, None).await.expect("a schedule");
    h.advance(secs(200)).await;
    h.put(every(3600)).await;
    let line = h.ledger().await.pop().expect("a line");
    assert_eq!((line.nominal, line.until, line.count), (first + secs(60), first + secs(180), 3));
    assert_eq!((line.outcome, line.reason), (OccurrenceOutcome::Skipped, Some(Reason::Paused)));
    h.store.resume_schedule(None, &name).await.expect("a schedule");
    assert_eq!(h.ledger().await.len(), 2, "no time is recorded twice");
}

pub(super) async fn an_edit_keeps_an_occurrence_that_waits_for_its_jitter(h: &Harness) {
    let jittered = NewSchedule { jitter: secs(50), overlap: Overlap::Allow, ..every(60) };
    let first = h.begin(jittered.clone()).await;
    let due = jittered.timing().due(first);
    assert!(due > first, "the test needs a jitter, not {due}");
    h.pass_until(first).await;
    h.put(NewSchedule { job: job("other"), ..jittered.clone() }).await;
    assert_eq!(h.schedule().await.next_fire_at, Some(due));
    h.fire_at(due).await;
    assert_eq!(h.lines().await, [fired(first)]);
    assert_eq!(h.job_of(first).await.job_type, job_type("other"));
    let second = first + secs(60);
    assert!(jittered.timing().due(second) > second, "the test needs a jitter");
    h.pass_until(second).await;
    h.put(NewSchedule { jitter: secs(10), ..jittered }).await;
    assert_eq!(h.lines().await, [fired(first), missed(second)], "it is recorded as missed");
}

pub(super) async fn every_bad_field_of_a_schedule_is_named_and_nothing_is_stored(h: &Harness) {
    let now = h.now().await;
    let bad = NewSchedule {
        catch_up_limit: 0,
        jitter: secs(61),
        start_at: Some(now),
        end_at: Some(now),
        note: Some("x".repeat(1_001)),
        job: NewJob {
            idempotency_key: Some(IdempotencyKey::trusted("k")),
            max_attempts: 0,
            on_dependency_failure: OnDependencyFailure::Run,
            ..child_of([unknown_id()])
        },
        ..every(60)
    };
    let mut fields = bad_fields(h.store.put_schedule(None, bad.clone()).await);
    fields.sort_unstable();
    let expected =
        ["catchUpLimit", "endAt", "jitterSeconds", "job.dependsOn", "job.idempotencyKey", "job.maxAttempts", "note"];
    assert_eq!(fields, expected);
    assert_eq!(h.store.list_schedules(None, &PageRequest::first(10)).await.expect("a valid page").items, []);
    h.begin(every(60)).await;
    let before = h.schedule().await;
    bad_fields(h.store.put_schedule(None, bad).await);
    assert_eq!(h.schedule().await, before);
}

pub(super) async fn a_paused_schedule_does_not_fire_and_keeps_its_note(h: &Harness) {
    let name = schedule_name("s");
    let first = h.begin(every(60)).await;
    assert!(h.store.pause_schedule(None, &name, Some("broken".into())).await.expect("a schedule"));
    let paused = h.schedule().await;
    assert_eq!((paused.definition.paused, paused.definition.note.as_deref()), (true, Some("broken")));
    assert_eq!((paused.next_nominal, paused.next_fire_at), (None, None));
    assert_eq!(h.fire_at(first + secs(120)).await.count, 0);
    assert_eq!((h.ledger().await, h.listed(&JobFilter::default()).await), (vec![], vec![]));
    assert!(!h.store.pause_schedule(None, &name, None).await.expect("a schedule"), "it was not active");
    assert_eq!(h.schedule().await, paused, "nothing changed");
    assert!(!h.store.pause_schedule(None, &name, Some("still".into())).await.expect("a schedule"));
    assert_eq!(h.schedule().await.definition.note.as_deref(), Some("still"));
}

pub(super) async fn a_note_that_is_too_long_is_refused(h: &Harness) {
    h.begin(every(60)).await;
    let before = h.schedule().await;
    let long = Some("x".repeat(NewSchedule::MAX_NOTE + 1));
    assert_eq!(bad_fields(h.store.pause_schedule(None, &schedule_name("s"), long).await), ["note"]);
    assert_eq!(h.schedule().await, before);
}

pub(super) async fn nominal_times_of_a_pause_are_one_skipped_occurrence(h: &Harness) {
    let name = schedule_name("s");
    let first = h.begin(NewSchedule { misfire: Misfire::CatchUp, ..every(60) }).await;
    h.fire_at(first).await;
    h.store.pause_schedule(None, &name, Some("broken".into())).await.expect("a schedule");
    h.advance(secs(200)).await;
    assert!(h.store.resume_schedule(None, &name).await.expect("a schedule"));
    assert_eq!(h.fire().await.count, 0, "a resume fires nothing by itself");
    let line = h.ledger().await.pop().expect("a line");
    assert_eq!((line.nominal, line.until, line.count), (first + secs(60), first + secs(180), 3));
    assert_eq!((line.outcome, line.reason, line.job), (OccurrenceOutcome::Skipped, Some(Reason::Paused), None));
    assert_eq!(line.at, h.now().await);
    let resumed = h.schedule().await;
    assert_eq!((resumed.definition.paused, resumed.definition.note), (false, None));
    assert_eq!(resumed.next_nominal, Some(first + secs(240)));
    assert!(!h.store.resume_schedule(None, &name).await.expect("a schedule"), "it ran");
    h.store.cancel_job(h.job_of(first).await.id).await.expect("a waiting job");
    h.fire_at(first + secs(240)).await;
    assert_eq!(h.lines().await.last(), Some(&fired(first + secs(240))));
}

pub(super) async fn a_pause_between_two_nominal_times_records_nothing(h: &Harness) {
    let name = schedule_name("s");
    let first = h.begin(every(60)).await;
    h.fire_at(first).await;
    h.store.pause_schedule(None, &name, None).await.expect("a schedule");
    h.advance(secs(59)).await;
    h.store.resume_schedule(None, &name).await.expect("a schedule");
    assert_eq!(h.lines().await, [fired(first)]);
    assert_eq!(h.schedule().await.next_nominal, Some(first + secs(60)));
}

pub(super) async fn times_backfilled_during_a_pause_are_not_skipped(h: &Harness) {
    let name = schedule_name("s");
    h.put(NewSchedule { paused: true, overlap: Overlap::Allow, ..every(60) }).await;
    let first = every(60).cadence.next_after(h.now().await).expect("an interval never ends");
    h.pass_until(first + secs(150)).await;
    let range = Backfill { from: first, to: first + secs(1), overlap: None };
    assert_eq!(h.store.backfill_schedule(None, &name, &range).await.expect("a valid range"), 1);
    h.store.resume_schedule(None, &name).await.expect("a schedule");
    let ledger = h.ledger().await;
    assert_eq!((ledger[0].nominal, ledger[0].outcome, ledger[0].count), (first, OccurrenceOutcome::Fired, 1));
    assert_eq!((ledger[1].nominal, ledger[1].until, ledger[1].count), (first + secs(60), first + secs(120), 2));
    assert_eq!((ledger[1].outcome, ledger.len()), (OccurrenceOutcome::Skipped, 2));
}

pub(super) async fn deleting_a_schedule_deletes_its_ledger_and_keeps_its_jobs(h: &Harness) {
    let name = schedule_name("s");
    let first = h.begin(every(60)).await;
    h.fire_at(first).await;
    let id = h.job_of(first).await.id;
    assert!(h.store.delete_schedule(None, &name).await.expect("a store that answers"));
    assert!(!h.store.delete_schedule(None, &name).await.expect("a store that answers"));
    assert_eq!(h.store.schedule(None, &name).await.expect("a store that answers"), None);
    h.advance(secs(600)).await;
    assert_eq!(h.fire().await, orchestrix_store::SweepResult::default());
    assert_eq!(h.listed(&JobFilter::default()).await, [id]);
    // A new schedule with the same name starts with an empty ledger, and unfinished jobs of the old one are not its
    // own.
    let again = h.begin(every(60)).await;
    assert_eq!(h.ledger().await, []);
    h.fire_at(again).await;
    assert_eq!(h.lines().await, [fired(again)]);
}

pub(super) async fn calls_on_an_unknown_schedule_name_it(h: &Harness) {
    h.begin(every(60)).await;
    let name = schedule_name("unknown");
    let now = h.now().await;
    let range = Backfill { from: now, to: now + secs(60), overlap: None };
    let unknown = |answer: Result<()>| match answer {
        Err(StoreError::ScheduleNotFound(unknown)) => assert_eq!(unknown, name),
        other => panic!("not refused as unknown: {other:?}"),
    };
    unknown(h.store.pause_schedule(None, &name, None).await.map(drop));
    unknown(h.store.resume_schedule(None, &name).await.map(drop));
    unknown(h.store.trigger_schedule(None, &name).await.map(drop));
    unknown(h.store.backfill_schedule(None, &name, &range).await.map(drop));
    unknown(h.store.list_occurrences(None, &name, &PageRequest::first(10)).await.map(drop));
}

pub(super) async fn schedules_are_listed_by_name_page_by_page(h: &Harness) {
    for name in ["b", "C", "a.1", "a-1", "d"] {
        h.put(NewSchedule { name: schedule_name(name), ..every(60) }).await;
    }
    let mut names = Vec::new();
    let mut page = PageRequest::first(2);
    loop {
        let part = h.store.list_schedules(None, &page).await.expect("a valid page");
        names.extend(part.items.into_iter().map(|schedule| schedule.definition.name.to_string()));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 2);
    }
    assert_eq!(names, ["C", "a-1", "a.1", "b", "d"], "sorted by bytes");
    assert_eq!(bad_fields(h.store.list_schedules(None, &PageRequest::first(0)).await), ["limit"]);
    assert_eq!(bad_fields(h.store.list_schedules(None, &PageRequest::first(1_001)).await), ["limit"]);
}
