//! Tests of the checker: it finds planted violations.

use std::collections::BTreeMap;

use super::{
    checker::{CheckReport, Fault, FaultKind, History},
    journal::{JournalContents, Run, RunEnd, Time},
    test_store::{Lease, Row},
    workload::ExpectedStates,
};

const SECOND: Time = 1_000_000;

/// One job. Worker `a` runs it from second 1 and is killed at second 3. Its lease is reaped at second 5. Worker `b`
/// runs it from second 6 to 7.
struct Case {
    row: Row,
    journals: BTreeMap<String, JournalContents>,
    faults: Vec<Fault>,
}

fn lease(counter: i32, worker: &str, outcome: &str, from: Time, until: Time) -> Lease {
    let (from, until) = (from * SECOND, until * SECOND);
    Lease { counter, outcome: outcome.into(), worker: worker.into(), from, until }
}

fn run(lease: i32, start: Time, end: Option<(Time, RunEnd)>) -> Run {
    let end = end.map(|(at, end)| (at * SECOND, end));
    Run { job: "j".into(), lease, kind: "long".into(), start: start * SECOND, end }
}

fn killed(worker: &str, at: Time) -> Fault {
    Fault { kind: FaultKind::Killed, worker: Some(worker.into()), from: at * SECOND, until: at * SECOND }
}

impl Case {
    fn valid() -> Self {
        let contents = |run| JournalContents { runs: vec![run], ..JournalContents::default() };
        Self {
            row: Row {
                job: "j".into(),
                state: "completed".into(),
                attempts: 2,
                max_attempts: 3,
                counter: 2,
                finished: Some(8 * SECOND),
                done_by: Some(2),
                leases: vec![lease(1, "a", "lost", 1, 5), lease(2, "b", "completed", 6, 8)],
            },
            journals: BTreeMap::from([
                ("a".to_owned(), contents(run(1, 1, None))),
                ("b".to_owned(), contents(run(2, 6, Some((7, RunEnd::Succeeded))))),
            ]),
            faults: vec![killed("a", 3)],
        }
    }

    fn check(&self) -> CheckReport {
        let expected = ExpectedStates::from([("j".to_owned(), "completed")]);
        let rows = [self.row.clone()];
        History { expected: &expected, rows: &rows, journals: &self.journals, faults: &self.faults, closed: 9 * SECOND }
            .check()
    }

    fn runs_of(&mut self, worker: &str) -> &mut Vec<Run> {
        &mut self.journals.get_mut(worker).unwrap().runs
    }
}

/// Changes the valid case. The checker must report a violation that contains `text`.
fn assert_violation(text: &str, change: impl FnOnce(&mut Case)) {
    let mut case = Case::valid();
    change(&mut case);
    let violations = case.check().violations;
    assert!(violations.iter().any(|violation| violation.contains(text)), "no `{text}` in {violations:?}");
}

#[test]
fn a_second_run_after_a_kill_is_no_violation() {
    let report = Case::valid().check();
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!((report.jobs, report.runs, report.reruns, report.overlaps), (1, 2, 1, 0));
    assert_eq!(report.reclaimed.len(), 1);
}

#[test]
fn everything_that_no_fault_explains_is_a_violation() {
    assert_violation("acknowledged and is missing", |case| case.row.job = "k".into());
    assert_violation("should be completed", |case| case.row.state = "dead".into());
    assert_violation("has no explanation", |case| case.faults.clear());
    assert_violation("did not end", |case| case.faults.clear());
    // The kill comes after the lease was reaped.
    assert_violation("has no explanation", |case| case.faults = vec![killed("a", 6)]);
    assert_violation("not every lease ended once", |case| drop(case.row.leases.remove(0)));
    assert_violation("attempts do not add up", |case| case.row.attempts = 1);
    assert_violation("attempts do not add up", |case| case.row.max_attempts = 1);
    assert_violation("is not that of its last lease", |case| case.row.done_by = Some(1));
    assert_violation("is not that of b", |case| case.row.leases[1].worker = "a".into());
    assert_violation("has no explanation", |case| drop(case.journals.remove("b")));
    assert_violation("has no explanation", |case| case.runs_of("b")[0].end = Some((7 * SECOND, RunEnd::Failed)));
    assert_violation("has no record", |case| case.runs_of("b").push(run(3, 8, Some((9, RunEnd::Succeeded)))));
    assert_violation("ran by a and b", |case| case.runs_of("b").push(run(1, 8, Some((9, RunEnd::Succeeded)))));
    // Released by a worker that was not terminated.
    assert_violation("has no explanation", |case| {
        case.row.leases[0].outcome = "released".into();
        case.runs_of("a")[0].end = Some((3 * SECOND, RunEnd::Cancelled));
    });
    // Started while the previous run was still running.
    assert_violation("while a was running it", |case| case.faults = vec![killed("a", 7)]);
}

#[test]
fn cancelled_runs_and_disconnected_workers_must_report_their_outcomes() {
    let all = |kind| Fault { kind, worker: None, from: 2 * SECOND, until: 6 * SECOND };
    for (kind, end, excused) in [
        (FaultKind::DatabaseDown, RunEnd::Succeeded, true),
        (FaultKind::DatabaseDown, RunEnd::Cancelled, false),
        (FaultKind::Disconnected, RunEnd::Succeeded, false),
        (FaultKind::Disconnected, RunEnd::Dropped, false),
    ] {
        let mut case = Case::valid();
        case.runs_of("a")[0].end = Some((3 * SECOND, end));
        case.faults = vec![all(kind)];
        assert_eq!(case.check().violations.is_empty(), excused, "{kind:?} {end:?}");
    }
    // The response to a claim was lost.
    let mut case = Case::valid();
    case.journals.remove("a");
    case.faults = vec![all(FaultKind::Disconnected)];
    assert_eq!(case.check().violations, Vec::<String>::new());
}

#[test]
fn overlapping_runs_are_excused_only_if_the_first_could_not_know_that_it_lost_the_lease() {
    let mut case = Case::valid();
    case.runs_of("a")[0].end = Some((7 * SECOND, RunEnd::Succeeded));
    let (from, until) = (2 * SECOND, 6 * SECOND);
    case.faults = vec![Fault { kind: FaultKind::Suspended, worker: Some("a".into()), from, until }];
    let report = case.check();
    assert_eq!((report.violations, report.overlaps), (Vec::new(), 1));
    case.faults[0].worker = Some("b".into());
    assert!(!case.check().violations.is_empty());
}
