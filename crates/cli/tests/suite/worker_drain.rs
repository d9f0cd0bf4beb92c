//! Draining a worker process by an operator: it claims no more, finishes its running jobs, and exits.

use std::fs;

use serde_json::{Value, json};

use crate::{
    harness::{TestEnv, each_database},
    server::process::ServerProcess,
    worker::{WorkerProcess, eventually},
};

/// Enqueues a job that runs until the file exists.
fn enqueue_job_until_file_exists(env: &TestEnv, file: &str) -> String {
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done", env.dir().join(file).display());
    env.enqueue_builtin("command", &json!({"program": "sh", "args": ["-c", script]}), &[])
}

fn list_workers(env: &TestEnv) -> Vec<Value> {
    env.json(&["workers", "list"])["items"].as_array().unwrap().clone()
}

/// Drains a worker during a job that takes longer than its drain timeout, and lets the job finish.
fn assert_drains(env: &TestEnv, mut worker: WorkerProcess) {
    let running = enqueue_job_until_file_exists(env, "go");
    env.wait_for_state(&running, "running");
    let drained = env.json(&["workers", "drain", "w1"]);
    assert_eq!(drained, json!({"items": [{"workerId": "w1", "directive": "drain"}]}));
    worker.wait_for_line("directive");
    let late = env.enqueue_builtin("noop", &json!(null), &[]);
    // Waits for three heartbeats, which takes longer than the drain timeout.
    let next_heartbeat = |last: Option<&Value>| {
        eventually("the worker sends a heartbeat", || {
            let worker =
                list_workers(env).pop().filter(|worker| last.is_none_or(|last| worker["lastSeenAt"] != *last))?;
            assert_eq!((&worker["state"], &worker["directive"]), (&json!("live"), &json!("drain")), "{worker:#}");
            Some(worker["lastSeenAt"].clone())
        })
    };
    let mut last = next_heartbeat(None);
    for _ in 0..3 {
        last = next_heartbeat(Some(&last));
    }
    assert_eq!(env.job(&running)["state"], "running");
    assert_eq!(env.job(&late)["state"], "pending", "a draining worker claims nothing");
    fs::write(env.dir().join("go"), "").unwrap();
    assert_eq!(worker.wait_for_exit(), Some(0));
    let done = env.job(&running);
    assert_eq!(
        (&done["state"], done["attempts"].as_array().unwrap().len()),
        (&json!("completed"), 1),
        "in its first attempt: {done:#}"
    );
    assert_eq!(env.job(&late)["state"], "pending");
    assert!(list_workers(env).is_empty(), "the worker is removed");
}

const FLAGS: [&str; 10] = [
    "--worker-name",
    "w1",
    "--allow-command",
    "sh",
    "--heartbeat-interval",
    "100ms",
    "--drain-timeout",
    "100ms",
    "--log",
    "info",
];

#[test]
fn a_drained_worker_exits_when_its_jobs_are_done() {
    for env in each_database() {
        let worker = WorkerProcess::start(&env, &FLAGS);
        assert_drains(&env, worker);
    }
}

#[test]
fn a_drained_remote_worker_exits_when_its_jobs_are_done() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let worker = WorkerProcess::start_over_server(&format!("http://{}", server.address), &FLAGS);
        assert_drains(&env, worker);
    }
}

#[test]
fn an_idle_worker_exits_at_once_and_its_successor_works() {
    for env in each_database() {
        let mut worker = WorkerProcess::start(&env, &FLAGS);
        eventually("the worker is listed", || list_workers(&env).pop());
        env.run(&["workers", "drain", "w1"]).success();
        assert_eq!(worker.wait_for_exit(), Some(0));
        assert!(list_workers(&env).is_empty());
        let _worker = WorkerProcess::start(&env, &FLAGS);
        let id = env.enqueue_builtin("noop", &json!(null), &[]);
        env.wait_for_state(&id, "completed");
    }
}

#[test]
fn a_worker_killed_during_its_drain_works_after_a_restart() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let address = format!("http://{}", server.address);
        for over in [true, false] {
            let start = || {
                if over {
                    WorkerProcess::start_over_server(&address, &FLAGS)
                } else {
                    WorkerProcess::start(&env, &FLAGS)
                }
            };
            let worker = start();
            let file = format!("never-{over}");
            let id = enqueue_job_until_file_exists(&env, &file);
            env.wait_for_state(&id, "running");
            env.run(&["workers", "drain", "w1"]).success();
            worker.wait_for_line("directive");
            worker.signal("KILL");
            drop(worker);
            assert_eq!(list_workers(&env)[0]["directive"], "drain", "its death is not noticed yet");
            let mut worker = start();
            let next = env.enqueue_builtin("noop", &json!(null), &[]);
            env.wait_for_state(&next, "completed");
            assert_eq!(list_workers(&env)[0]["directive"], "run");
            fs::write(env.dir().join(&file), "").unwrap();
            worker.signal("TERM");
            assert_eq!(worker.wait_for_exit(), Some(0));
        }
    }
}

#[test]
fn draining_the_worker_of_dev_leaves_the_server_running() {
    let env = TestEnv::sqlite();
    let mut command = crate::harness::orchestrix(&["dev", "--listen", "127.0.0.1:0"]);
    command.current_dir(env.dir());
    let server = ServerProcess::spawn(command);
    let name = eventually("the worker is listed", || {
        server.get("/admin/workers").json()["items"]
            .get(0)
            .map(|worker| worker["workerId"].as_str().unwrap().to_owned())
    });
    assert_eq!(server.send("POST", &format!("/admin/workers/{name}/drain"), "").status, 202);
    eventually("the worker is removed", || {
        server.get("/admin/workers").json()["items"].as_array().unwrap().is_empty().then_some(())
    });
    // A node leads: the delayed job becomes claimable.
    let body = json!({"jobType": "orchestrix.echo", "delaySeconds": 0.2});
    let id = server.post("/jobs", &body).accepted_job_id();
    eventually("a node leads", || {
        (server.get(&format!("/admin/jobs/{id}")).json()["state"] == "pending").then_some(())
    });
    let explained = server.get(&format!("/admin/jobs/{id}/explain")).json();
    assert_eq!(explained["reasons"][0]["code"], "no_worker", "{explained:#}");
}
