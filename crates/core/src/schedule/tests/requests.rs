use std::time::Duration;

use super::at;
use crate::{
    DependsOn, IdempotencyKey, JobId, JobType, NewJob, Start,
    schedule::{Cadence, Misfire, NewSchedule, Overlap, ScheduleName},
};

fn valid() -> NewSchedule {
    let cadence = Cadence::cron("0 9 * * MON-FRI", "Europe/Berlin").expect("valid");
    NewSchedule::new(ScheduleName::trusted("report"), cadence, NewJob::new(JobType::trusted("REPORT")))
}

fn bad_fields(schedule: &NewSchedule) -> Vec<String> {
    schedule.validate().expect_err("invalid").errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn the_defaults_are_valid_and_as_documented() {
    let schedule = valid();
    assert_eq!(schedule.validate(), Ok(()));
    assert_eq!((schedule.overlap, schedule.misfire), (Overlap::Skip, Misfire::FireOnce));
    assert_eq!((schedule.catch_up_limit, schedule.jitter, schedule.paused), (100, Duration::ZERO, false));
}

#[test]
fn every_bad_field_is_named_at_once() {
    let schedule = NewSchedule {
        cadence: Cadence::Every { interval: Duration::from_millis(500) },
        catch_up_limit: 10_001,
        jitter: Duration::from_secs(1),
        start_at: Some(at("2026-01-02T00:00:00Z")),
        end_at: Some(at("2026-01-02T00:00:00Z")),
        note: Some("x".repeat(1_001)),
        job: NewJob {
            idempotency_key: Some(IdempotencyKey::trusted("k")),
            start: Start::At(at("2026-01-01T00:00:00Z")),
            expires_at: Some(at("2026-01-01T00:00:00Z")),
            depends_on: vec![DependsOn::Job(JobId::from_uuid(uuid::Uuid::nil()))],
            reference: Some("r".into()),
            max_attempts: 0,
            ..NewJob::new(JobType::trusted("t"))
        },
        ..valid()
    };
    assert_eq!(
        bad_fields(&schedule),
        [
            "everySeconds",
            "catchUpLimit",
            "jitterSeconds",
            "endAt",
            "note",
            "job.idempotencyKey",
            "job.runAt",
            "job.expiresAt",
            "job.dependsOn",
            "job.ref",
            "job.maxAttempts",
        ]
    );
}

#[test]
fn a_schedule_that_would_never_fire_is_refused() {
    let cadence = Cadence::cron("0 0 30 2 *", "UTC").expect("well formed");
    assert_eq!(bad_fields(&NewSchedule { cadence, ..valid() }), ["cron"]);
}

#[test]
fn absurd_times_limits_and_jitters_are_refused() {
    let far = NewSchedule { start_at: Some(at("9999-01-01T00:00:00Z")), catch_up_limit: 0, ..valid() };
    assert_eq!(bad_fields(&far), ["catchUpLimit", "startAt"]);
    let wide = NewSchedule { jitter: Duration::from_secs(86_401), ..valid() };
    assert_eq!(bad_fields(&wide), ["jitterSeconds"]);
}

#[test]
fn a_bad_expression_and_a_bad_zone_are_both_named() {
    let errors = Cadence::cron("0 25 * * *", "Europe/Berln").expect_err("invalid").errors;
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["cron", "timezone"]);
}

#[test]
fn names_are_limited_to_their_characters_and_length() {
    assert!(ScheduleName::new("a.b-C_9").is_ok());
    for bad in ["", "a b", "a/b", "é", &"x".repeat(129)] {
        assert_eq!(ScheduleName::new(bad).expect_err(bad).field, "name");
    }
}
