//! A worker that an operator drains, as a process: it takes nothing more, ends what it runs, and ends.

use std::fs;

use serde_json::{Value, json};

use crate::{
    harness::{TestEnv, each_database},
    server::process::ServerProcess,
    worker::{WorkerProcess, eventually},
};

/// A job that runs until the file is there.
fn enqueue_job_until_file_exists(env: &TestEnv, file: &str) -> String {
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done", env.dir().join(file).display());
    env.enqueue_builtin("command", &json!({"program": "sh", "args": ["-c", script]}), &[])
}

fn list_workers(env: &TestEnv) -> Vec<Value> {
    env.json(&["workers", "list"])["items"].as_array().unwrap().clone()
}

/// Drains a worker in the middle of a job that takes longer than its own drain timeout, and lets it finish.
fn assert_drains(env: &TestEnv, mut worker: WorkerProcess) {
    let running = enqueue_job_until_file_exists(env, "go");
    env.wait_for_state(&running, "running");
    let told = env.json(&["workers", "drain", "w1"]);
    assert_eq!(told, json!({"items": [{"workerId": "w1", "directive": "drain"}]}));
    worker.wait_for_line("the worker was told what to do");
    let late = env.enqueue_builtin("noop", &json!(null), &[]);
    // Three of its heartbeats, and longer than it would wait after a signal.
    let seen = |last: Option<&Value>| {
        eventually("it shows itself", || {
            let worker =
                list_workers(env).pop().filter(|worker| last.is_none_or(|last| worker["lastSeenAt"] != *last))?;
            assert_eq!((&worker["state"], &worker["directive"]), (&json!("live"), &json!("drain")), "{worker:#}");
            Some(worker["lastSeenAt"].clone())
        })
    };
    let mut last = seen(None);
    for _ in 0..3 {
        last = seen(Some(&last));
    }
    assert_eq!(env.job(&running)["state"], "running");
    assert_eq!(env.job(&late)["state"], "pending", "it takes nothing more");
    fs::write(env.dir().join("go"), "").unwrap();
    assert_eq!(worker.wait_for_exit(), Some(0));
    let done = env.job(&running);
    assert_eq!(
        (&done["state"], done["attempts"].as_array().unwrap().len()),
        (&json!("completed"), 1),
        "in its first attempt: {done:#}"
    );
    assert_eq!(env.job(&late)["state"], "pending");
    assert!(list_workers(env).is_empty(), "it has left");
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
fn a_worker_that_is_drained_ends_when_what_it_runs_is_done() {
    for env in each_database() {
        let worker = WorkerProcess::start(&env, &FLAGS);
        assert_drains(&env, worker);
    }
}

#[test]
fn so_does_one_over_a_server() {
    for env in each_database() {
        let server = ServerProcess::start(&env);
        let worker = WorkerProcess::start_over_server(&format!("http://{}", server.address), &FLAGS);
        assert_drains(&env, worker);
    }
}

#[test]
fn one_that_is_idle_ends_at_once_and_the_next_of_its_name_works() {
    for env in each_database() {
        let mut worker = WorkerProcess::start(&env, &FLAGS);
        eventually("it is listed", || list_workers(&env).pop());
        env.run(&["workers", "drain", "w1"]).success();
        assert_eq!(worker.wait_for_exit(), Some(0));
        assert!(list_workers(&env).is_empty());
        let _worker = WorkerProcess::start(&env, &FLAGS);
        let id = env.enqueue_builtin("noop", &json!(null), &[]);
        env.wait_for_state(&id, "completed");
    }
}

#[test]
fn one_that_was_killed_while_it_drained_works_when_it_is_started_again() {
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
            worker.wait_for_line("the worker was told what to do");
            worker.signal("KILL");
            drop(worker);
            assert_eq!(list_workers(&env)[0]["directive"], "drain", "nobody has told yet that it is gone");
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
fn the_worker_of_dev_ends_and_the_rest_goes_on() {
    let env = TestEnv::sqlite();
    let mut command = crate::harness::orchestrix(&["dev", "--listen", "127.0.0.1:0"]);
    command.current_dir(env.dir());
    let server = ServerProcess::spawn(command);
    let name = eventually("its worker is listed", || {
        server.get("/admin/workers").json()["items"]
            .get(0)
            .map(|worker| worker["workerId"].as_str().unwrap().to_owned())
    });
    assert_eq!(server.send("POST", &format!("/admin/workers/{name}/drain"), "").status, 202);
    eventually("it has left", || {
        server.get("/admin/workers").json()["items"].as_array().unwrap().is_empty().then_some(())
    });
    // Somebody leads: what waits for its time becomes claimable.
    let body = json!({"jobType": "orchestrix.echo", "delaySeconds": 0.2});
    let id = server.post("/jobs", &body).accepted_job_id();
    eventually("somebody leads", || {
        (server.get(&format!("/admin/jobs/{id}")).json()["state"] == "pending").then_some(())
    });
    let explained = server.get(&format!("/admin/jobs/{id}/explain")).json();
    assert_eq!(explained["reasons"][0]["code"], "no_worker", "{explained:#}");
}
