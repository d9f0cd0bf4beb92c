//! The judge finds what it is there to find.

use std::collections::BTreeMap;

use super::{
    ground::{Lease, Row},
    journal::{Run, Time, Word, Written},
    judge::{Blow, Evidence, Fault, Judgement},
    stream::Ledger,
};

const SECOND: Time = 1_000_000;

/// One job, by worker `a` from second 1 to 3 and, as its lease was lost at second 5, by `b` from second 6 to 7.
struct Case {
    row: Row,
    runs: BTreeMap<String, Written>,
    faults: Vec<Fault>,
}

fn lease(counter: i32, worker: &str, outcome: &str, from: Time, until: Time) -> Lease {
    let (from, until) = (from * SECOND, until * SECOND);
    Lease { counter, outcome: outcome.into(), worker: worker.into(), from, until }
}

fn run(lease: i32, start: Time, end: Option<(Time, Word)>) -> Run {
    let end = end.map(|(at, word)| (at * SECOND, word));
    Run { job: "j".into(), lease, kind: "long".into(), start: start * SECOND, end }
}

fn killed(worker: &str, at: Time) -> Fault {
    Fault { blow: Blow::Killed, worker: Some(worker.into()), from: at * SECOND, until: at * SECOND }
}

impl Case {
    fn sound() -> Self {
        let written = |run| Written { runs: vec![run], ..Written::default() };
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
            runs: BTreeMap::from([
                ("a".to_owned(), written(run(1, 1, None))),
                ("b".to_owned(), written(run(2, 6, Some((7, Word::Done))))),
            ]),
            faults: vec![killed("a", 3)],
        }
    }

    fn judge(&self) -> Judgement {
        let ledger = Ledger::from([("j".to_owned(), "completed")]);
        let rows = [self.row.clone()];
        Evidence { ledger: &ledger, rows: &rows, written: &self.runs, faults: &self.faults, closed: 9 * SECOND }.judge()
    }

    fn runs_of(&mut self, worker: &str) -> &mut Vec<Run> {
        &mut self.runs.get_mut(worker).unwrap().runs
    }
}

/// Changes the sound case; the judge must name what is wrong.
fn finds(words: &str, change: impl FnOnce(&mut Case)) {
    let mut case = Case::sound();
    change(&mut case);
    let violations = case.judge().violations;
    assert!(violations.iter().any(|violation| violation.contains(words)), "no `{words}` in {violations:?}");
}

#[test]
fn a_second_run_after_a_kill_is_no_violation() {
    let found = Case::sound().judge();
    assert_eq!(found.violations, Vec::<String>::new());
    assert_eq!((found.jobs, found.runs, found.doubles, found.overlaps), (1, 2, 1, 0));
    assert_eq!(found.reclaimed.len(), 1);
}

#[test]
fn whatever_has_no_explanation_is_a_violation() {
    finds("acknowledged and is gone", |case| case.row.job = "k".into());
    finds("should be completed", |case| case.row.state = "dead".into());
    finds("has no explanation", |case| case.faults.clear());
    finds("never ended", |case| case.faults.clear());
    // Killed only after the lease was taken from it.
    finds("has no explanation", |case| case.faults = vec![killed("a", 6)]);
    finds("not every lease ended once", |case| drop(case.row.leases.remove(0)));
    finds("attempts do not add up", |case| case.row.attempts = 1);
    finds("attempts do not add up", |case| case.row.max_attempts = 1);
    finds("is not that of its last lease", |case| case.row.done_by = Some(1));
    finds("is not that of b", |case| case.row.leases[1].worker = "a".into());
    finds("has no explanation", |case| drop(case.runs.remove("b")));
    finds("has no explanation", |case| case.runs_of("b")[0].end = Some((7 * SECOND, Word::Failed)));
    finds("knows nothing", |case| case.runs_of("b").push(run(3, 8, Some((9, Word::Done)))));
    finds("ran by a and b", |case| case.runs_of("b").push(run(1, 8, Some((9, Word::Done)))));
    // Handed back by one that nobody asked to end.
    finds("has no explanation", |case| {
        case.row.leases[0].outcome = "released".into();
        case.runs_of("a")[0].end = Some((3 * SECOND, Word::Stopped));
    });
    // Begun while the one before was alive and well.
    finds("while a was at it", |case| case.faults = vec![killed("a", 7)]);
}

#[test]
fn what_was_given_up_or_disconnected_must_be_told() {
    let all = |blow| Fault { blow, worker: None, from: 2 * SECOND, until: 6 * SECOND };
    for (blow, word, excused) in [
        (Blow::Away, Word::Done, true),
        (Blow::Away, Word::Stopped, false),
        (Blow::Disconnected, Word::Done, false),
        (Blow::Disconnected, Word::Dropped, false),
    ] {
        let mut case = Case::sound();
        case.runs_of("a")[0].end = Some((3 * SECOND, word));
        case.faults = vec![all(blow)];
        assert_eq!(case.judge().violations.is_empty(), excused, "{blow:?} {word:?}");
    }
    // The answer to a claim that never arrived.
    let mut case = Case::sound();
    case.runs.remove("a");
    case.faults = vec![all(Blow::Disconnected)];
    assert_eq!(case.judge().violations, Vec::<String>::new());
}

#[test]
fn two_at_once_are_excused_only_where_the_first_could_not_know() {
    let mut case = Case::sound();
    case.runs_of("a")[0].end = Some((7 * SECOND, Word::Done));
    let (from, until) = (2 * SECOND, 6 * SECOND);
    case.faults = vec![Fault { blow: Blow::Stopped, worker: Some("a".into()), from, until }];
    let found = case.judge();
    assert_eq!((found.violations, found.overlaps), (Vec::new(), 1));
    case.faults[0].worker = Some("b".into());
    assert!(!case.judge().violations.is_empty());
}
