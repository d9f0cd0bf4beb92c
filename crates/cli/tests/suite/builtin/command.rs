//! `orchestrix.command` with real programs, and what is left of them.

use std::{collections::BTreeSet, fs, path::PathBuf, time::Instant};

use serde_json::{Value, json};

use super::GRACE;
use crate::{
    support::{Place, places},
    worker::{Running, eventually},
};

const ALLOWED: [&str; 4] = ["--allow-command", "sh", "--heartbeat-interval", "50ms"];

/// Longer than any test, but not for ever: a test that fails leaves it behind.
const LONG: &str = "for i in $(seq 300); do sleep 1; done";

fn sh(script: &str) -> Value {
    json!({"program": "sh", "args": ["-c", script]})
}

/// A program, and one that it starts; neither ends by itself, and the second minds no SIGTERM. Both tell who they are.
struct Family {
    script: String,
    pids: PathBuf,
}

impl Family {
    fn new(place: &Place) -> Self {
        let pids = place.folder().join("pids");
        let path = pids.display();
        let child = format!("trap \"\" TERM; echo $$ >> {path}; {LONG}");
        let script = format!("sh -c '{child}' & echo $$ >> {path}; wait; wait; {LONG}");
        Self { script, pids }
    }

    /// Waits until both run.
    fn born(&self) -> Vec<u32> {
        eventually("both run", || {
            let text = fs::read_to_string(&self.pids).unwrap_or_default();
            let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
            (pids.len() == 2 && text.ends_with('\n')).then_some(pids)
        })
    }
}

/// Waits until none of these runs; what has ended and was not waited for yet does not.
#[track_caller]
fn gone(pids: &[u32]) {
    eventually("they are gone", || pids.iter().all(|pid| !runs(*pid)).then_some(()));
}

fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_program_that_is_not_allowed_is_not_run() {
    let place = Place::sqlite();
    let witness = place.folder().join("witness");
    let script = sh(&format!("touch {}", witness.display()));
    for flags in [&[][..], &["--allow-command", "true,/bin/sh"]] {
        let _worker = Running::start(&place, flags);
        let error = place.dies_at_once(&place.builtin("command", &script, &[]));
        assert!(error.contains("--allow-command sh"), "{error}");
    }
    assert!(!witness.exists());
    let _worker = Running::start(&place, &["--allow-command", "no-such-program"]);
    let error = place.dies_at_once(&place.builtin("command", &json!({"program": "no-such-program"}), &[]));
    assert!(error.contains("there is no program"), "{error}");
}

#[test]
fn a_program_gets_what_it_was_given_and_leaves_its_words() {
    for place in places() {
        let _worker = Running::start(&place, &ALLOWED);
        let script = "cat; echo \"$GREETING $0 $1\"; echo careful >&2; env | sed 's/=.*//' | sort | tr '\\n' ' '";
        let payload = json!({
            "program": "sh", "args": ["-c", script, "zero", "one; two"],
            "env": {"GREETING": "hello"}, "stdin": "from stdin\n",
        });
        let id = place.builtin("command", &payload, &[]);
        let job = place.reaches(&id, "completed");
        assert_eq!(job["result"]["exitCode"], 0);
        let stdout = job["result"]["stdout"].as_str().unwrap();
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines[..2], ["from stdin", "hello zero one; two"]);
        let known = [
            "GREETING",
            "HOME",
            "LANG",
            "ORCHESTRIX_ATTEMPT",
            "ORCHESTRIX_JOB_ID",
            "PATH",
            "PWD",
            "OLDPWD",
            "SHLVL",
            "TZ",
            "_",
        ];
        for name in lines[2].split_whitespace() {
            assert!(known.contains(&name), "{name}");
        }
        assert!(lines[2].contains("GREETING ") && lines[2].contains("ORCHESTRIX_ATTEMPT ORCHESTRIX_JOB_ID PATH"));
        let log = place.json(&["jobs", "logs", &id]);
        let line = |text: &str| log["items"].as_array().unwrap().iter().find(|line| line["message"] == text).cloned();
        assert_eq!(line("from stdin").unwrap()["level"], "info");
        assert_eq!(line("careful").unwrap()["level"], "warn");
    }
}

#[test]
fn a_program_that_fails_is_tried_again_with_its_last_words() {
    let place = Place::sqlite();
    let _worker = Running::start(&place, &ALLOWED);
    for (script, text) in [
        ("echo first >&2; echo last >&2; echo >&2; exit 3", "sh exited with code 3: last"),
        ("kill -KILL $$", "sh was killed by signal 9"),
    ] {
        let job = place.reaches(&place.builtin("command", &sh(script), &["--max-attempts", "2"]), "dead");
        assert_eq!(job["attempts"].as_array().unwrap().len(), 2);
        assert_eq!(job["attempts"][1]["error"], text);
    }
    let mends = sh("[ $ORCHESTRIX_ATTEMPT = 2 ]");
    place.reaches(&place.builtin("command", &mends, &[]), "completed");
}

#[test]
fn every_line_of_much_output_is_in_the_log() {
    for place in places() {
        let _worker = Running::start(&place, &ALLOWED);
        let script = "i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; \
                      head -c 40000 /dev/zero | tr '\\0' x";
        let id = place.builtin("command", &sh(script), &[]);
        let job = place.reaches(&id, "completed");
        assert_eq!(job["result"]["stdout"], "x".repeat(4096));
        let shown = place.run(&["jobs", "logs", &id, "--output", "jsonl"]).done().stdout;
        let lines: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let messages: BTreeSet<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
        for i in 0..3000 {
            assert!(messages.contains(&*format!("out {i}")) && messages.contains(&*format!("err {i}")), "{i}");
        }
        let long: usize = messages.iter().filter(|line| line.starts_with('x')).count();
        let bytes: usize = lines
            .iter()
            .filter_map(|line| line["message"].as_str())
            .filter(|line| line.starts_with('x'))
            .map(str::len)
            .sum();
        assert!(long >= 2 && bytes == 40_000 && lines.len() == 6_003, "{long} {bytes} {}", lines.len());
    }
}

#[test]
fn a_timeout_kills_the_program_and_whom_it_started() {
    for place in places() {
        let _worker = Running::start(&place, &ALLOWED);
        let family = Family::new(&place);
        // Long enough for both to begin, on a slow machine too.
        let id = place.builtin("command", &sh(&family.script), &["--timeout", "5s", "--max-attempts", "1"]);
        let pids = family.born();
        let job = place.reaches(&id, "dead");
        assert_eq!(job["attempts"][0]["outcome"], "timed_out", "{job:#}");
        gone(&pids);
    }
}

#[test]
fn a_cancel_ends_the_program_and_whom_it_started() {
    for place in places() {
        let _worker = Running::start(&place, &ALLOWED);
        let family = Family::new(&place);
        let id = place.builtin("command", &sh(&family.script), &[]);
        let pids = family.born();
        place.run(&["jobs", "cancel", &id]).done();
        place.reaches(&id, "cancelled");
        gone(&pids);
    }
}

#[test]
fn a_program_has_time_to_end_well_but_its_job_is_cancelled_all_the_same() {
    let place = Place::sqlite();
    let _worker = Running::start(&place, &ALLOWED);
    let ready = place.folder().join("ready");
    let script = format!("trap 'echo cleaned up; exit 0' TERM; touch {}; {LONG}", ready.display());
    let id = place.builtin("command", &sh(&script), &[]);
    eventually("it is ready", || ready.exists().then_some(()));
    place.run(&["jobs", "cancel", &id]).done();
    place.reaches(&id, "cancelled");
    assert!(place.run(&["jobs", "logs", &id]).done().stdout.contains("cleaned up"));
}

#[test]
fn a_program_that_does_not_want_to_end_is_killed_while_its_job_is_still_ours() {
    let place = Place::sqlite();
    let _worker = Running::start(&place, &ALLOWED);
    let ready = place.folder().join("ready");
    let id = place.builtin("command", &sh(&format!("trap '' TERM; touch {}; {LONG}", ready.display())), &[]);
    eventually("it is ready", || ready.exists().then_some(()));
    let told = Instant::now();
    place.run(&["jobs", "cancel", &id]).done();
    place.reaches(&id, "cancelled");
    assert!(told.elapsed() < GRACE, "it was killed only with its handler");
}

#[test]
fn the_end_of_the_worker_is_the_end_of_the_program_and_costs_no_attempt() {
    for place in places() {
        let mut worker = Running::start(&place, &[&ALLOWED[..], &["--drain-timeout", "2s"]].concat());
        let family = Family::new(&place);
        let id = place.builtin("command", &sh(&family.script), &[]);
        let pids = family.born();
        worker.signal("TERM");
        assert_eq!(worker.ended(), Some(0));
        gone(&pids);
        let job = place.job(&id);
        assert_eq!((&job["state"], &job["attemptsUsed"]), (&json!("pending"), &json!(0)), "{job:#}");
    }
}

#[test]
fn a_worker_that_is_stopped_at_once_leaves_no_program_behind() {
    let place = Place::sqlite();
    let mut worker = Running::start(&place, &[&ALLOWED[..], &["--drain-timeout", "10m", "--log", "info"]].concat());
    let family = Family::new(&place);
    place.builtin("command", &sh(&family.script), &[]);
    let pids = family.born();
    worker.signal("TERM");
    worker.says("shutting down");
    worker.signal("TERM");
    assert_eq!(worker.ended(), Some(1));
    gone(&pids);
}

#[test]
fn what_a_program_leaves_running_is_killed_when_it_is_done() {
    let place = Place::sqlite();
    let _worker = Running::start(&place, &ALLOWED);
    let (pid, ready) = (place.folder().join("pid"), place.folder().join("ready"));
    let script = format!(
        "sh -c 'trap \"\" TERM HUP; echo $$ > {}; touch {}; {LONG}' & \
         while [ ! -e {} ]; do sleep 0.02; done; echo done",
        pid.display(),
        ready.display(),
        ready.display()
    );
    let job = place.reaches(&place.builtin("command", &sh(&script), &[]), "completed");
    assert_eq!(job["result"]["stdout"], "done\n");
    gone(&[fs::read_to_string(pid).unwrap().trim().parse().unwrap()]);
}
