use crate::schedule::{Cron, ZoneName, tzdb_version};

fn refusal(text: &str) -> String {
    let error = Cron::new(text).expect_err(text);
    assert_eq!(error.field, "cron");
    error.message
}

#[test]
fn an_error_names_the_field_the_character_and_what_is_allowed() {
    let cases = [
        ("60 * * * *", "minute (character 1): 60 is out of range; 0-59"),
        ("0 24 * * *", "hour (character 3): 24 is out of range; 0-23"),
        ("0 0 0 * *", "day of month (character 5): 0 is out of range; 1-31"),
        ("0 0 1 13 *", "month (character 7): 13 is out of range; 1-12 or JAN-DEC"),
        ("0 0 * * 8", "day of week (character 9): 8 is out of range; 0-7 or SUN-SAT"),
        ("61 0 0 * * *", "second (character 1): 61 is out of range; 0-59"),
        ("  0   9-x * * *", "hour (character 9): found 'x', expected 0-23"),
        ("0 9- * * *", "hour (character 5): ends too early, expected 0-23"),
        ("0 1,, * * *", "hour (character 5): found ',', expected 0-23"),
        ("0 22-2 * * *", "hour (character 3): 22-2 runs backwards; write 22-23,0-2"),
        ("*/0 * * * *", "minute (character 3): 0 is out of range; a step is 1-59"),
        ("*/90 * * * *", "minute (character 3): 90 is out of range; a step is 1-59"),
        ("*/ * * * *", "minute (character 3): ends too early, expected a step from 1 to 59"),
        (
            "0 0 * * MONDAY",
            "day of week (character 12): found 'D', expected a comma, a range, a step or the end of the field",
        ),
        ("0 0 * MÄR *", "month (character 7): found 'M', expected 1-12 or JAN-DEC"),
        ("0 0 * * FRI#6", "day of week (character 13): 6 is out of range; the count after # is 1-5"),
        ("? * * * *", "minute (character 1): found '?', expected 0-59"),
        ("0 0 L-31 * *", "day of month (character 7): 31 is out of range; the count after L- is 1-30"),
        ("99999999999 * * * *", "minute (character 1): 99999999999 is out of range; 0-59"),
        (
            "0 0 * * ",
            "character 8: must have 5 fields (minute, hour, day of month, month, day of week), or 6 with the second first, has 4",
        ),
        (
            "0 0 0 * * * é x",
            "character 13: must have 5 fields (minute, hour, day of month, month, day of week), or 6 with the second first, has 8",
        ),
        (
            "  @reboot",
            "character 3: @reboot is not a known name; use one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(refusal(text), message, "{text}");
    }
    assert!(refusal("").starts_with("character 1: ") && refusal("").contains("has 0"));
    assert_eq!(refusal(&"0".repeat(300)), "character 257: must have at most 256 characters, has 300");
}

#[test]
fn equivalent_spellings_match_the_same_times() {
    let alike = [
        ("0 0 * * 0", "0 0 * * 7"),
        ("0 0 * * sun", "0 0 * * SUN"),
        ("0 0 * * 5-7", "0 0 * * FRI-SUN"),
        ("0 0 * * SUN-SAT", "0 0 * * *"),
        ("0 0 1 jan-MAR *", "0 0 1 1,2,3 *"),
        ("10/20 * * * *", "10,30,50 * * * *"),
        ("0 0 * * */2", "0 0 * * 0,2,4,6"),
        ("0 0 * * 1/2", "0 0 * * 1,3,5"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 12 * * 1", "0 12 * * 1"),
        ("@midnight", "0 0 * * *"),
        ("@Annually", "@yearly"),
        ("\t0  0 1 *\t* ", "@monthly"),
    ];
    for (one, other) in alike {
        let (one, other) = (Cron::new(one).expect(one), Cron::new(other).expect(other));
        // Whether a day field starts with a star only matters if the other one is restricted.
        let times = |cron: &Cron| {
            let mut times = Vec::new();
            while times.len() < 200 {
                times.extend(cron.matcher().next(times.last().map_or(0, |last| last + 1), i64::MAX));
            }
            times
        };
        assert_eq!(times(&one), times(&other), "{one} and {other}");
    }
}

#[test]
fn an_expression_keeps_its_text() {
    let cron = Cron::new(" 0 9 * * mon ").expect("valid");
    assert_eq!(cron.to_string(), " 0 9 * * mon ");
    let json = serde_json::to_string(&cron).expect("JSON");
    assert_eq!(serde_json::from_str::<Cron>(&json).expect("a cron"), cron);
    assert!(serde_json::from_str::<Cron>("\"0 25 * * *\"").is_err());
}

#[test]
fn only_a_star_in_minute_or_hour_follows_real_time() {
    for (text, expected) in [
        ("* 2 * * *", true),
        ("*/15 2 * * *", true),
        ("0 * * * *", true),
        ("0 */2 * * *", true),
        ("@hourly", true),
        ("0 0/2 * * *", false),
        ("0-59 2 * * *", false),
        ("* 30 2 * * *", false),
        ("0 * 2 * * *", true),
        ("@daily", false),
    ] {
        assert_eq!(Cron::new(text).expect(text).follows_real_time(), expected, "{text}");
    }
}

#[test]
fn an_expression_that_never_matches_differs_from_a_rare_one() {
    for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 2 *"] {
        assert!(!Cron::new(text).expect(text).ever_matches(), "{text}");
    }
    for text in ["0 0 29 2 *", "0 0 ? 2 MON#5", "0 0 30 2 1", "0 0 31 12 *"] {
        assert!(Cron::new(text).expect(text).ever_matches(), "{text}");
    }
}

#[test]
fn zones_are_found_ignoring_case_and_named_as_in_the_database() {
    assert_eq!(ZoneName::new("europe/berlin").expect("a zone").as_str(), "Europe/Berlin");
    assert_eq!(ZoneName::new("utc").expect("a zone"), ZoneName::utc());
    assert_eq!(ZoneName::new("US/Eastern").expect("a zone").as_str(), "US/Eastern");
    assert_eq!(serde_json::to_string(&ZoneName::new("asia/tokyo").expect("a zone")).expect("JSON"), "\"Asia/Tokyo\"");
    for name in ZoneName::all() {
        assert_eq!(ZoneName::new(name).expect(name).as_str(), name);
    }
}

#[test]
fn a_misspelled_zone_gets_a_suggestion() {
    let refusal = |text: &str| {
        let error = ZoneName::new(text).expect_err(text);
        assert_eq!(error.field, "timezone");
        error.message
    };
    assert_eq!(refusal("Europe/Berln"), "there is no time zone \"Europe/Berln\"; did you mean Europe/Berlin?");
    assert!(refusal("New York").contains("did you mean America/New_York?"));
    assert!(refusal("").contains("use an IANA name"));
    assert!(refusal("Etc/Unknown").contains("no time zone"));
    assert!(refusal(&"Ä".repeat(10_000)).len() < 300);
}

#[test]
fn the_zone_database_has_a_version() {
    let version = tzdb_version();
    assert!(version.len() == 5 && version.starts_with("20"), "{version}");
}
