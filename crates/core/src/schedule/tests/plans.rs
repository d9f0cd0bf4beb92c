use std::time::Duration;

use proptest::prelude::*;

use super::at;
use crate::{
    Timestamp,
    schedule::{Admission, Cadence, Misfire, Overlap, Plan, Reason, ScheduleName, Span, Timing, plan},
};

struct Case {
    name: ScheduleName,
    cadence: Cadence,
}

impl Case {
    fn hourly() -> Self {
        Self::cron("0 * * * *")
    }

    fn cron(text: &str) -> Self {
        Self { name: ScheduleName::trusted("s"), cadence: Cadence::cron(text, "UTC").expect("valid") }
    }

    fn every(seconds: u64) -> Self {
        let cadence = Cadence::every(Duration::from_secs(seconds)).expect("valid");
        Self { name: ScheduleName::trusted("s"), cadence }
    }

    fn timing(&self, misfire: Misfire) -> Timing<'_> {
        Timing {
            name: &self.name,
            cadence: &self.cadence,
            misfire,
            catch_up_limit: 3,
            jitter: Duration::ZERO,
            start_at: None,
            end_at: None,
        }
    }
}

fn clock(text: &str) -> Timestamp {
    at(&format!("2026-05-05T{text}Z"))
}

fn fired(plan: &Plan) -> Vec<(Timestamp, bool)> {
    plan.fire.iter().map(|firing| (firing.nominal, firing.reason == Some(Reason::CatchUp))).collect()
}

fn one(time: &str) -> Span {
    Span { from: clock(time), to: clock(time), count: 1 }
}

#[test]
fn an_occurrence_on_time_fires_without_a_reason_under_every_policy() {
    let case = Case::hourly();
    for misfire in Misfire::ALL {
        let plan = plan(&case.timing(*misfire), clock("09:00:00"), clock("10:00:59"), 100);
        assert_eq!(fired(&plan), [(clock("10:00:00"), false)], "{misfire}");
        assert_eq!(plan.missed, []);
        assert_eq!(plan.counted_from, clock("10:00:00"));
        assert_eq!(plan.next_fire_at, Some(clock("11:00:00")));
    }
}

#[test]
fn nothing_is_due_before_its_time() {
    let case = Case::hourly();
    let plan = plan(&case.timing(Misfire::CatchUp), clock("09:00:00"), clock("09:59:59.999999"), 100);
    assert_eq!((fired(&plan), plan.missed, plan.counted_from), (vec![], vec![], clock("09:00:00")));
    assert_eq!(plan.next_fire_at, Some(clock("10:00:00")));
}

#[test]
fn misfire_skip_fires_only_what_is_on_time() {
    let case = Case::hourly();
    let late = plan(&case.timing(Misfire::Skip), clock("07:00:00"), clock("09:30:00"), 100);
    assert_eq!((fired(&late), late.missed), (vec![], vec![one("08:00:00"), one("09:00:00")]));
    assert_eq!(late.counted_from, clock("09:00:00"));
    let back = plan(&case.timing(Misfire::Skip), clock("07:00:00"), clock("09:00:10"), 100);
    assert_eq!((fired(&back), back.missed), (vec![(clock("09:00:00"), false)], vec![one("08:00:00")]));
}

#[test]
fn misfire_fire_once_fires_the_latest_only() {
    let case = Case::hourly();
    let single = plan(&case.timing(Misfire::FireOnce), clock("08:00:00"), clock("09:30:00"), 100);
    assert_eq!((fired(&single), single.missed), (vec![(clock("09:00:00"), true)], vec![]));
    let several = plan(&case.timing(Misfire::FireOnce), clock("06:00:00"), clock("09:30:00"), 100);
    assert_eq!(fired(&several), [(clock("09:00:00"), true)]);
    assert_eq!(several.missed, [one("07:00:00"), one("08:00:00")]);
    let on_time = plan(&case.timing(Misfire::FireOnce), clock("06:00:00"), clock("09:00:10"), 100);
    assert_eq!(fired(&on_time), [(clock("09:00:00"), false)], "the one on time makes up for the late ones");
    assert_eq!(on_time.missed, [one("07:00:00"), one("08:00:00")]);
}

#[test]
fn misfire_catch_up_fires_the_latest_in_order_up_to_its_limit() {
    let case = Case::hourly();
    let plan = plan(&case.timing(Misfire::CatchUp), clock("04:00:00"), clock("10:00:30"), 100);
    let expected =
        [(clock("07:00:00"), true), (clock("08:00:00"), true), (clock("09:00:00"), true), (clock("10:00:00"), false)];
    assert_eq!(fired(&plan), expected);
    assert_eq!(plan.missed, [one("05:00:00"), one("06:00:00")]);
    assert_eq!(plan.next_fire_at, Some(clock("11:00:00")));
}

#[test]
fn occurrences_beyond_the_limit_are_due_at_once() {
    let case = Case::hourly();
    let timing = case.timing(Misfire::CatchUp);
    let first = plan(&timing, clock("04:00:00"), clock("10:30:00"), 2);
    assert_eq!(fired(&first), [(clock("08:00:00"), true), (clock("09:00:00"), true)]);
    assert_eq!(first.next_fire_at, Some(clock("10:00:00")));
    let second = plan(&timing, first.counted_from, clock("10:30:01"), 2);
    assert_eq!((fired(&second), second.missed), (vec![(clock("10:00:00"), true)], vec![]));
    assert_eq!(second.next_fire_at, Some(clock("11:00:00")));
}

#[test]
fn a_busy_leader_misses_no_occurrence_of_a_frequent_schedule() {
    let case = Case::every(1);
    for misfire in Misfire::ALL {
        let plan = plan(&case.timing(*misfire), clock("10:00:00"), clock("10:00:04.9"), 100);
        assert_eq!((plan.fire.len(), plan.missed), (4, vec![]), "{misfire}");
    }
}

#[test]
fn the_grace_period_is_half_the_time_to_the_next_occurrence() {
    let case = Case::every(60);
    let plan_at = |now: &str| plan(&case.timing(Misfire::Skip), clock("10:00:00"), clock(now), 100);
    assert_eq!(fired(&plan_at("10:01:30")), [(clock("10:01:00"), false)]);
    assert_eq!(plan_at("10:01:30.000001").missed, [one("10:01:00")]);
}

#[test]
fn a_year_of_missed_seconds_is_one_span() {
    for case in [Case::every(1), Case::cron("* * * * * *")] {
        let now = at("2027-05-05T00:00:00Z");
        let plan = plan(&case.timing(Misfire::FireOnce), at("2026-05-05T00:00:00Z"), now, 100);
        let total: u64 = plan.missed.iter().map(|span| span.count).sum();
        // Six occurrences lie within the five seconds of grace.
        assert_eq!((plan.fire.len(), total), (6, 365 * 86_400 - 6));
        assert_eq!(plan.missed.len() as u64, 1 + Plan::MISSED_LISTED);
        assert_eq!(plan.missed[0].from, at("2026-05-05T00:00:01Z"));
        assert_eq!(plan.missed[0].to + Duration::from_secs(1), plan.missed[1].from);
        assert_eq!(plan.next_fire_at, Some(now + Duration::from_secs(1)));
    }
}

#[test]
fn start_is_included_and_end_is_not() {
    let case = Case::hourly();
    let timing = Timing {
        start_at: Some(clock("08:00:00")),
        end_at: Some(clock("10:00:00")),
        catch_up_limit: 100,
        ..case.timing(Misfire::CatchUp)
    };
    let plan_at = |now: &str| plan(&timing, clock("00:00:00"), clock(now), 100);
    assert_eq!(plan_at("07:30:00").next_fire_at, Some(clock("08:00:00")));
    let over = plan_at("12:30:00");
    assert_eq!(fired(&over), [(clock("08:00:00"), true), (clock("09:00:00"), true)]);
    assert_eq!((over.next_nominal, over.next_fire_at), (None, None));
    assert_eq!(timing.upcoming(clock("00:00:00"), 10), [clock("08:00:00"), clock("09:00:00")]);
    let paused = timing.span_between(clock("00:00:00"), clock("23:00:00"));
    assert_eq!(paused, Some(Span { from: clock("08:00:00"), to: clock("09:00:00"), count: 2 }));
    assert_eq!(timing.span_between(clock("08:00:00"), clock("08:30:00")), None);
}

#[test]
fn jitter_delays_an_occurrence_and_lateness_counts_from_then() {
    let case = Case::hourly();
    let timing = Timing { jitter: Duration::from_secs(1800), ..case.timing(Misfire::Skip) };
    let due = timing.due(clock("10:00:00"));
    assert!(due > clock("10:01:30") && due < clock("10:30:00"), "{due} would prove nothing");
    let early = plan(&timing, clock("09:00:00"), due - Duration::from_micros(1), 100);
    assert_eq!((fired(&early), early.next_fire_at), (vec![], Some(due)));
    let on_time = plan(&timing, clock("09:00:00"), due + Duration::from_secs(59), 100);
    assert_eq!(fired(&on_time), [(clock("10:00:00"), false)]);
    let late = plan(&timing, clock("09:00:00"), due + Duration::from_secs(61), 100);
    assert_eq!((fired(&late), late.missed), (vec![], vec![one("10:00:00")]));
}

#[test]
fn a_clock_that_goes_back_fires_nothing_twice() {
    let case = Case::hourly();
    let plan = plan(&case.timing(Misfire::CatchUp), clock("10:00:00"), clock("09:00:30"), 100);
    assert_eq!((fired(&plan), plan.missed, plan.next_fire_at), (vec![], vec![], Some(clock("11:00:00"))));
}

#[test]
fn the_overlap_policy_decides_by_the_number_of_unfinished_jobs() {
    use Admission::*;
    for (overlap, expected) in [
        (Overlap::Skip, [Fire, Skip, Skip]),
        (Overlap::Allow, [Fire, Fire, Fire]),
        (Overlap::BufferOne, [Fire, FireAfter, Skip]),
        (Overlap::CancelRunning, [Fire, CancelAndFire, CancelAndFire]),
    ] {
        assert_eq!([0, 1, 2].map(|unfinished| overlap.admit(unfinished)), expected, "{overlap}");
    }
}

#[test]
fn names_parse_and_an_unknown_name_is_refused_with_the_allowed_ones() {
    for misfire in Misfire::ALL {
        assert_eq!(misfire.as_str().parse(), Ok(*misfire));
        assert_eq!(serde_json::to_value(misfire).expect("JSON"), misfire.as_str());
    }
    for overlap in Overlap::ALL {
        assert_eq!(overlap.as_str().parse(), Ok(*overlap));
        assert_eq!(serde_json::to_value(overlap).expect("JSON"), overlap.as_str());
    }
    let error = "catchup".parse::<Misfire>().expect_err("unknown");
    assert_eq!(error.to_string(), "misfire: must be one of skip, fire_once, catch_up");
}

proptest! {
    // For any policy, jitter, batch size, start and end: each due nominal time is processed once and in order, and no
    // other. No more late occurrences fire than the policy allows.
    #[test]
    fn every_occurrence_is_fired_or_missed_once(
        expression in prop::sample::select(vec!["* * * * *", "*/20 * * * * *", "0,1,30 * * * *", "0 */3 * * *", "0 0 * * *"]),
        misfire in prop::sample::select(Misfire::ALL.to_vec()),
        jitter in prop::sample::select(vec![0u64, 1, 30, 900, 86_400]),
        steps in prop::collection::vec((0i64..20_000, 1usize..6), 1..12),
        catch_up_limit in 1u32..50,
        start in prop::option::of(0u64..40_000),
        end in prop::option::of(1u64..150_000),
    ) {
        let case = Case::cron(expression);
        let begin = clock("00:00:00");
        let start_at = start.map(|seconds| begin + Duration::from_secs(seconds));
        let timing = Timing {
            jitter: Duration::from_secs(jitter),
            catch_up_limit,
            start_at,
            end_at: end.map(|seconds| start_at.unwrap_or(begin) + Duration::from_secs(seconds)),
            ..case.timing(misfire)
        };
        let (mut now, mut counted_from, mut processed) = (begin, begin, begin);
        let mut seen = 0;
        for (seconds, limit) in steps {
            now += Duration::from_secs(seconds.unsigned_abs());
            let mut late = 0;
            loop {
                let plan = plan(&timing, counted_from, now, limit);
                prop_assert!(plan.fire.len() <= limit);
                prop_assert!(plan.missed.len() as u64 <= 1 + Plan::MISSED_LISTED);
                for span in &plan.missed {
                    prop_assert_eq!(timing.span_between(processed, span.to), Some(*span), "no time is lost before it");
                    (seen, processed) = (seen + span.count, span.to);
                }
                for firing in &plan.fire {
                    prop_assert_eq!(timing.upcoming(processed, 1), [firing.nominal]);
                    prop_assert!(timing.due(firing.nominal) <= now);
                    (seen, processed) = (seen + 1, firing.nominal);
                    late += u32::from(firing.reason.is_some());
                }
                counted_from = plan.counted_from;
                prop_assert_eq!(counted_from, processed);
                prop_assert_eq!(plan.next_fire_at, plan.next_nominal.map(|nominal| timing.due(nominal)));
                if plan.next_fire_at.is_none_or(|next| next > now) {
                    break;
                }
                prop_assert!(!plan.fire.is_empty(), "progress, or nothing more to do");
            }
            let most = match misfire {
                Misfire::Skip => 0,
                Misfire::FireOnce => 1,
                Misfire::CatchUp => catch_up_limit,
            };
            prop_assert!(late <= most, "{late} late ones were fired at once under {misfire}, {catch_up_limit}");
        }
        prop_assert_eq!(seen, timing.span_between(begin, processed).map_or(0, |span| span.count));
        let ahead = timing.upcoming(processed, 1).pop();
        prop_assert!(ahead.is_none_or(|next| timing.due(next) > now), "{ahead:?} is due and was left");
    }
}
