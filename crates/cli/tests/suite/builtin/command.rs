//! `orchestrix.command` with real programs and their child processes.

use std::{collections::BTreeSet, fs, path::PathBuf, time::Instant};

use serde_json::{Value, json};

use super::GRACE;
use crate::{
    harness::{TestEnv, each_database, on_each_database},
    worker::{WorkerProcess, eventually},
};

const ALLOWED: [&str; 4] = ["--allow-command", "sh", "--heartbeat-interval", "50ms"];

/// Longer than any test, but finite: a failed test leaves the process behind.
const FIVE_MINUTES: &str = "for i in $(seq 300); do sleep 1; done";

fn sh(script: &str) -> Value {
    json!({"program": "sh", "args": ["-c", script]})
}

/// A shell and a child of it. Neither ends by itself, and the child ignores SIGTERM. Both write their pid to a file.
struct ProcessTree {
    script: String,
    pids: PathBuf,
}

impl ProcessTree {
    fn new(env: &TestEnv) -> Self {
        let pids = env.dir().join("pids");
        let path = pids.display();
        let child = format!("trap \"\" TERM; echo $$ >> {path}; {FIVE_MINUTES}");
        let script = format!("sh -c '{child}' & echo $$ >> {path}; wait; wait; {FIVE_MINUTES}");
        Self { script, pids }
    }

    /// Waits until both processes run; returns their pids.
    fn wait_until_running(&self) -> Vec<u32> {
        eventually("both processes run", || {
            let text = fs::read_to_string(&self.pids).unwrap_or_default();
            let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
            (pids.len() == 2 && text.ends_with('\n')).then_some(pids)
        })
    }
}

/// Waits until none of these processes runs; a zombie counts as gone.
#[track_caller]
fn wait_until_gone(pids: &[u32]) {
    eventually("the processes are gone", || pids.iter().all(|pid| !is_running(*pid)).then_some(()));
}

fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_program_that_is_not_allowed_is_not_run() {
    let env = TestEnv::sqlite();
    let witness = env.dir().join("witness");
    let script = sh(&format!("touch {}", witness.display()));
    for flags in [&[][..], &["--allow-command", "true,/bin/sh"]] {
        let _worker = WorkerProcess::start(&env, flags);
        let error = env.wait_for_fatal_error(&env.enqueue_builtin("command", &script, &[]));
        assert!(error.contains("--allow-command sh"), "{error}");
    }
    assert!(!witness.exists());
    let _worker = WorkerProcess::start(&env, &["--allow-command", "no-such-program"]);
    let error = env.wait_for_fatal_error(&env.enqueue_builtin("command", &json!({"program": "no-such-program"}), &[]));
    assert!(error.contains("no-such-program"), "{error}");
}

#[test]
fn a_program_gets_its_arguments_environment_and_input_and_its_output_is_logged() {
    for env in each_database() {
        let _worker = WorkerProcess::start(&env, &ALLOWED);
        let script = "cat; echo \"$GREETING $0 $1\"; echo careful >&2; env | sed 's/=.*//' | sort | tr '\\n' ' '";
        let payload = json!({
            "program": "sh", "args": ["-c", script, "zero", "one; two"],
            "env": {"GREETING": "hello"}, "stdin": "from stdin\n",
        });
        let id = env.enqueue_builtin("command", &payload, &[]);
        let job = env.wait_for_state(&id, "completed");
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
        let log = env.json(&["jobs", "logs", &id]);
        let line = |text: &str| log["items"].as_array().unwrap().iter().find(|line| line["message"] == text).cloned();
        assert_eq!(line("from stdin").unwrap()["level"], "info");
        assert_eq!(line("careful").unwrap()["level"], "warn");
    }
}

#[test]
fn a_failing_program_is_retried_and_its_last_line_is_the_error() {
    let env = TestEnv::sqlite();
    let _worker = WorkerProcess::start(&env, &ALLOWED);
    for (script, text) in [
        ("echo first >&2; echo last >&2; echo >&2; exit 3", "sh exited with code 3: last"),
        ("kill -KILL $$", "sh was killed by signal 9"),
    ] {
        let job = env.wait_for_state(&env.enqueue_builtin("command", &sh(script), &["--max-attempts", "2"]), "dead");
        assert_eq!(job["attempts"].as_array().unwrap().len(), 2);
        assert_eq!(job["attempts"][1]["error"], text);
    }
    let mends = sh("[ $ORCHESTRIX_ATTEMPT = 2 ]");
    env.wait_for_state(&env.enqueue_builtin("command", &mends, &[]), "completed");
}

#[test]
fn every_line_of_long_output_is_logged() {
    for env in each_database() {
        let _worker = WorkerProcess::start(&env, &ALLOWED);
        let script = "i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; \
                      head -c 40000 /dev/zero | tr '\\0' x";
        let id = env.enqueue_builtin("command", &sh(script), &[]);
        let job = env.wait_for_state(&id, "completed");
        assert_eq!(job["result"]["stdout"], "x".repeat(4096));
        let shown = env.run(&["jobs", "logs", &id, "--output", "jsonl"]).success().stdout;
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
fn a_timeout_kills_the_program_and_its_children() {
    on_each_database(|env| {
        let _worker = WorkerProcess::start(&env, &ALLOWED);
        let tree = ProcessTree::new(&env);
        // Long enough for both to start on a slow machine.
        let id = env.enqueue_builtin("command", &sh(&tree.script), &["--timeout", "5s", "--max-attempts", "1"]);
        let pids = tree.wait_until_running();
        let job = env.wait_for_state(&id, "dead");
        assert_eq!(job["attempts"][0]["outcome"], "timed_out", "{job:#}");
        wait_until_gone(&pids);
    });
}

#[test]
fn a_cancel_kills_the_program_and_its_children() {
    for env in each_database() {
        let _worker = WorkerProcess::start(&env, &ALLOWED);
        let tree = ProcessTree::new(&env);
        let id = env.enqueue_builtin("command", &sh(&tree.script), &[]);
        let pids = tree.wait_until_running();
        env.run(&["jobs", "cancel", &id]).success();
        env.wait_for_state(&id, "cancelled");
        wait_until_gone(&pids);
    }
}

#[test]
fn a_program_may_clean_up_on_sigterm_and_its_job_is_still_cancelled() {
    let env = TestEnv::sqlite();
    let _worker = WorkerProcess::start(&env, &ALLOWED);
    let ready = env.dir().join("ready");
    let script = format!("trap 'echo cleaned up; exit 0' TERM; touch {}; {FIVE_MINUTES}", ready.display());
    let id = env.enqueue_builtin("command", &sh(&script), &[]);
    eventually("the program is ready", || ready.exists().then_some(()));
    env.run(&["jobs", "cancel", &id]).success();
    env.wait_for_state(&id, "cancelled");
    assert!(env.run(&["jobs", "logs", &id]).success().stdout.contains("cleaned up"));
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_within_the_grace_period() {
    let env = TestEnv::sqlite();
    let _worker = WorkerProcess::start(&env, &ALLOWED);
    let ready = env.dir().join("ready");
    let id =
        env.enqueue_builtin("command", &sh(&format!("trap '' TERM; touch {}; {FIVE_MINUTES}", ready.display())), &[]);
    eventually("the program is ready", || ready.exists().then_some(()));
    let cancelled_at = Instant::now();
    env.run(&["jobs", "cancel", &id]).success();
    env.wait_for_state(&id, "cancelled");
    assert!(cancelled_at.elapsed() < GRACE, "it was killed only when its handler was dropped");
}

#[test]
fn a_worker_drain_kills_the_program_and_costs_no_attempt() {
    on_each_database(|env| {
        let mut worker = WorkerProcess::start(&env, &[&ALLOWED[..], &["--drain-timeout", "2s"]].concat());
        let tree = ProcessTree::new(&env);
        let id = env.enqueue_builtin("command", &sh(&tree.script), &[]);
        let pids = tree.wait_until_running();
        worker.signal("TERM");
        assert_eq!(worker.wait_for_exit(), Some(0));
        wait_until_gone(&pids);
        let job = env.job(&id);
        assert_eq!((&job["state"], &job["attemptsUsed"]), (&json!("pending"), &json!(0)), "{job:#}");
    });
}

#[test]
fn a_worker_stopped_at_once_leaves_no_program_behind() {
    let env = TestEnv::sqlite();
    let mut worker = WorkerProcess::start(&env, &[&ALLOWED[..], &["--drain-timeout", "10m", "--log", "info"]].concat());
    let tree = ProcessTree::new(&env);
    env.enqueue_builtin("command", &sh(&tree.script), &[]);
    let pids = tree.wait_until_running();
    worker.signal("TERM");
    worker.wait_for_line("shutting down");
    worker.signal("TERM");
    assert_eq!(worker.wait_for_exit(), Some(1));
    wait_until_gone(&pids);
}

#[test]
fn background_processes_of_a_finished_program_are_killed() {
    let env = TestEnv::sqlite();
    let _worker = WorkerProcess::start(&env, &ALLOWED);
    let (pid, ready) = (env.dir().join("pid"), env.dir().join("ready"));
    let script = format!(
        "sh -c 'trap \"\" TERM HUP; echo $$ > {}; touch {}; {FIVE_MINUTES}' & \
         while [ ! -e {} ]; do sleep 0.02; done; echo done",
        pid.display(),
        ready.display(),
        ready.display()
    );
    let job = env.wait_for_state(&env.enqueue_builtin("command", &sh(&script), &[]), "completed");
    assert_eq!(job["result"]["stdout"], "done\n");
    wait_until_gone(&[fs::read_to_string(pid).unwrap().trim().parse().unwrap()]);
}
