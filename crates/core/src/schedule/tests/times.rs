use std::time::{Duration, Instant};

use jiff::{
    civil::date,
    tz::{AmbiguousOffset, TimeZoneDatabase},
};
use proptest::prelude::*;

use super::at;
use crate::{
    Timestamp,
    schedule::{Cadence, ScheduleName, ZoneName, jitter},
};

fn cron(text: &str, zone: &str) -> Cadence {
    Cadence::cron(text, zone).expect("a valid cadence")
}

fn next(text: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    cron(text, zone).after(at(after)).take(count).map(|time| time.to_string()).collect()
}

#[test]
fn a_fixed_time_that_the_clocks_skip_fires_once_at_the_first_instant_after() {
    // New York goes from 02:00 to 03:00, which is 07:00 UTC, on 8 March 2026.
    let expected = ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"];
    assert_eq!(next("30 2 * * *", "America/New_York", "2026-03-07T00:00:00Z", 3), expected);
    let several = ["2026-03-08T06:45:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:15:00Z"];
    assert_eq!(next("15,45 1-3 * * *", "America/New_York", "2026-03-08T06:40:00Z", 3), several);
}

#[test]
fn a_fixed_time_that_the_clocks_repeat_fires_in_the_first_pass() {
    // New York repeats 01:00 to 02:00 on 1 November 2026; the first pass is 05:00 to 06:00 UTC.
    let expected = ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"];
    assert_eq!(next("30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", 2), expected);
    assert_eq!(next("30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", 1), &expected[1..]);
}

#[test]
fn an_expression_that_follows_real_time_fires_in_both_passes_and_not_in_a_gap() {
    let spring = ["2026-03-08T06:45:00Z", "2026-03-09T05:00:00Z"];
    assert_eq!(next("*/15 1 * * *", "America/New_York", "2026-03-08T06:30:00Z", 2), spring);
    assert_eq!(
        next("*/30 2 * * *", "America/New_York", "2026-03-08T00:00:00Z", 1),
        ["2026-03-09T06:00:00Z"],
        "the clocks skip the whole hour"
    );
    let autumn = ["2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z"];
    assert_eq!(next("*/30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", 4), autumn);
}

#[test]
fn a_fixed_time_on_a_skipped_day_fires_at_the_end_of_the_gap() {
    // Samoa had no 30 December 2011.
    let expected = ["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"];
    assert_eq!(next("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3), expected);
}

#[test]
fn a_day_matches_either_day_field_when_both_are_restricted() {
    let expected = ["2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z", "2026-03-20T00:00:00Z"];
    assert_eq!(next("0 0 13 * FRI", "UTC", "2026-03-01T00:00:00Z", 3), expected);
    let both = ["2026-04-13T00:00:00Z", "2026-04-27T00:00:00Z"];
    assert_eq!(next("0 0 */2 * MON", "UTC", "2026-04-01T00:00:00Z", 2), both, "a star does not restrict");
}

#[test]
fn the_next_time_is_strictly_after_whatever_the_fraction() {
    assert_eq!(next("0 12 * * *", "UTC", "2026-01-01T12:00:00Z", 1), ["2026-01-02T12:00:00Z"]);
    assert_eq!(next("0 12 * * *", "UTC", "2026-01-01T11:59:59.999999999Z", 1), ["2026-01-01T12:00:00Z"]);
    assert_eq!(next("0 0 * * *", "UTC", "1969-12-31T23:59:59.5Z", 1), ["1970-01-01T00:00:00Z"]);
}

#[test]
fn leap_days_are_found_across_the_year_2100() {
    let expected = ["2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"];
    assert_eq!(next("0 0 29 2 *", "UTC", "2092-03-01T00:00:00Z", 2), expected);
    // The longest wait of all: a fifth Monday in February.
    assert_eq!(next("0 0 ? 2 MON#5", "Europe/Berlin", "2072-03-01T00:00:00Z", 1), ["2112-02-28T23:00:00Z"]);
}

#[test]
fn every_search_is_fast() {
    let began = Instant::now();
    assert_eq!(cron("0 0 30 2 *", "America/New_York").next_after(at("2026-01-01T00:00:00Z")), None);
    assert_eq!(cron("* * * * * *", "UTC").next_after(Timestamp::MAX), None);
    assert_eq!(cron("0 0 29 2 *", "UTC").next_after(at("9999-01-01T00:00:00Z")), None);
    let ages = cron("* * * * * *", "Europe/Berlin").count(Timestamp::MIN, Timestamp::MAX);
    assert!(ages > 315_000_000_000, "{ages}");
    let first = cron("0 0 * * *", "UTC").next_after(Timestamp::MIN);
    assert_eq!(first, Some(at("0001-01-01T00:00:00Z")));
    assert_eq!(Cadence::Every { interval: Duration::MAX }.next_after(at("2026-01-01T00:00:00Z")), None);
    // Takes milliseconds; the bound allows for a busy machine.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn intervals_are_counted_from_the_epoch() {
    let hourly = Cadence::every(Duration::from_secs(90 * 60)).expect("valid");
    assert_eq!(hourly.next_after(at("2026-01-01T00:10:00Z")), Some(at("2026-01-01T01:30:00Z")));
    assert_eq!(hourly.next_after(at("2026-01-01T01:30:00Z")), Some(at("2026-01-01T03:00:00Z")));
    assert_eq!(hourly.next_after(at("1969-12-31T23:59:59Z")), Some(at("1970-01-01T00:00:00Z")));
    let tenths = Cadence::every(Duration::from_millis(1_100)).expect("valid");
    assert_eq!(tenths.next_after(at("1970-01-01T00:00:02.2Z")), Some(at("1970-01-01T00:00:03.3Z")));
    for bad in [Duration::ZERO, Duration::from_millis(999), Duration::MAX, Duration::from_nanos(1_000_000_001)] {
        assert_eq!(Cadence::every(bad).expect_err("refused").field, "everySeconds");
    }
}

#[test]
fn between_includes_its_start_excludes_its_end_and_respects_its_limit() {
    let daily = cron("0 0 * * *", "UTC");
    let (from, to) = (at("2026-01-01T00:00:00Z"), at("2026-01-04T00:00:00Z"));
    assert_eq!(daily.between(from, to, 100), [from, at("2026-01-02T00:00:00Z"), at("2026-01-03T00:00:00Z")]);
    assert_eq!(daily.between(from, to, 2).len(), 2);
    assert_eq!(daily.between(to, from, 2), []);
}

#[test]
fn jitter_is_deterministic_and_uniform() {
    let name = ScheduleName::trusted("nightly");
    let max = Duration::from_secs(60);
    // A change of this number would make old and new nodes disagree.
    assert_eq!(jitter(&name, at("2026-01-01T00:00:00Z"), max), Duration::from_micros(1_142_692));
    assert_eq!(jitter(&name, at("2026-01-01T00:00:00Z"), Duration::ZERO), Duration::ZERO);
    let mut tenths = [0; 10];
    for hour in 0..10_000 {
        let nominal = at("2026-01-01T00:00:00Z") + Duration::from_secs(3600 * hour);
        let delay = jitter(&name, nominal, max);
        assert!(delay < max);
        tenths[usize::try_from(delay.as_secs() / 6).expect("small")] += 1;
    }
    assert!(tenths.iter().all(|count| (850..1_150).contains(count)), "{tenths:?}");
    let other = ScheduleName::trusted("hourly");
    assert_ne!(jitter(&other, at("2026-01-01T00:00:00Z"), max), jitter(&name, at("2026-01-01T00:00:00Z"), max));
}

fn zone() -> impl Strategy<Value = &'static str> {
    prop::sample::select(ZoneName::all().collect::<Vec<_>>())
}

fn expression() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "* * * * *",
        "*/7 * * * *",
        "0 * * * *",
        "0 0 * * *",
        "30 2 * * *",
        "15,45 0-3 * * *",
        "0 0 1 * *",
        "*/20 30 1-3 * * *",
        "0 9 * * MON-FRI",
        "0 0 13 * FRI",
        "0 0 29 2 *",
        "0 0 L * *",
        "0 0 ? * MON#1",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    // Compares with jiff's resolution of gaps and overlaps, in every zone.
    #[test]
    fn a_fixed_time_fires_where_jiff_resolves_it(
        zone in zone(), year in 1971i16..2100, day in 0i64..365, minute in 0i8..60, hour in 0i8..24,
    ) {
        let civil = date(year, 1, 1).checked_add(jiff::Span::new().days(day)).expect("a date").at(hour, minute, 0, 0);
        let tz = TimeZoneDatabase::bundled().get(zone).expect("a zone");
        let expected = match tz.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).expect("a time"),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(civil).expect("a time"),
            AmbiguousOffset::Gap { after, .. } => {
                let early = after.to_timestamp(civil).expect("a time");
                tz.following(early).next().expect("the end of the gap").timestamp()
            }
        };
        let cadence = cron(&format!("{minute} {hour} * * *"), zone);
        prop_assert_eq!(cadence.next_after(expected - Duration::from_secs(1)), Some(expected), "{} in {}", civil, zone);
    }

    #[test]
    fn count_agrees_with_iteration(
        zone in zone(), expression in expression(), from in 0i64..4_000_000_000, days in 0i64..40, seconds in 0i64..86_400,
    ) {
        let cadence = cron(expression, zone);
        let after = Timestamp::from_second(from).expect("a time");
        let until = Timestamp::from_second(from + days * 86_400 + seconds).expect("a time");
        let times: Vec<Timestamp> = cadence.after(after).take_while(|time| *time <= until).take(5_000).collect();
        if times.len() < 5_000 {
            prop_assert_eq!(cadence.count(after, until), times.len() as u64);
            prop_assert!(times.iter().all(|time| *time > after) && times.is_sorted_by(|a, b| a < b));
            for keep in [0, 1, 7] {
                let bound = cadence.start_of_last(after, until, keep);
                let kept: Vec<Timestamp> = cadence.after(bound).take_while(|time| *time <= until).collect();
                prop_assert_eq!(&kept[..], &times[times.len().saturating_sub(usize::try_from(keep).expect("small"))..]);
            }
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[0-9*/,?LW#A-Za-zé @-]{0,40}") {
        let _ = crate::schedule::Cron::new(&text);
    }

    #[test]
    fn text_that_resembles_an_expression_is_parsed_or_refused(fields in prop::collection::vec("[0-9*/,?LW#-]{1,5}", 5..=6)) {
        if let Ok(cron) = crate::schedule::Cron::new(fields.join(" ")) {
            let cadence = Cadence::Cron { cron: cron.clone(), zone: ZoneName::utc() };
            prop_assert_eq!(cadence.next_after(at("2026-01-01T00:00:00Z")).is_some(), cron.ever_matches());
        }
    }
}
