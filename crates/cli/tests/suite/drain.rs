//! A worker that an operator drains, as a process: it takes nothing more, ends what it runs, and ends.

use std::fs;

use serde_json::{Value, json};

use crate::{
    server::http::Server,
    support::{Place, places},
    worker::{Running, eventually},
};

/// A job that runs until the file is there.
fn until_there(place: &Place, file: &str) -> String {
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done", place.folder().join(file).display());
    place.builtin("command", &json!({"program": "sh", "args": ["-c", script]}), &[])
}

fn listed(place: &Place) -> Vec<Value> {
    place.json(&["workers", "list"])["items"].as_array().unwrap().clone()
}

/// Drains a worker in the middle of a job that takes longer than its own drain timeout, and lets it finish.
fn drained(place: &Place, mut worker: Running) {
    let running = until_there(place, "go");
    place.reaches(&running, "running");
    let told = place.json(&["workers", "drain", "w1"]);
    assert_eq!(told, json!({"items": [{"workerId": "w1", "directive": "drain"}]}));
    worker.says("worker received a directive");
    let late = place.builtin("noop", &json!(null), &[]);
    // Three of its heartbeats, and longer than it would wait after a signal.
    let seen = |last: Option<&Value>| {
        eventually("it shows itself", || {
            let worker = listed(place).pop().filter(|worker| last.is_none_or(|last| worker["lastSeenAt"] != *last))?;
            assert_eq!((&worker["state"], &worker["directive"]), (&json!("live"), &json!("drain")), "{worker:#}");
            Some(worker["lastSeenAt"].clone())
        })
    };
    let mut last = seen(None);
    for _ in 0..3 {
        last = seen(Some(&last));
    }
    assert_eq!(place.job(&running)["state"], "running");
    assert_eq!(place.job(&late)["state"], "pending", "it takes nothing more");
    fs::write(place.folder().join("go"), "").unwrap();
    assert_eq!(worker.ended(), Some(0));
    let done = place.job(&running);
    assert_eq!(
        (&done["state"], done["attempts"].as_array().unwrap().len()),
        (&json!("completed"), 1),
        "in its first attempt: {done:#}"
    );
    assert_eq!(place.job(&late)["state"], "pending");
    assert!(listed(place).is_empty(), "it has left");
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
    for place in places() {
        let worker = Running::start(&place, &FLAGS);
        drained(&place, worker);
    }
}

#[test]
fn so_does_one_over_a_server() {
    for place in places() {
        let server = Server::start(&place);
        let worker = Running::over(&format!("http://{}", server.address), &FLAGS);
        drained(&place, worker);
    }
}

#[test]
fn one_that_is_idle_ends_at_once_and_the_next_of_its_name_works() {
    for place in places() {
        let mut worker = Running::start(&place, &FLAGS);
        eventually("it is listed", || listed(&place).pop());
        place.run(&["workers", "drain", "w1"]).done();
        assert_eq!(worker.ended(), Some(0));
        assert!(listed(&place).is_empty());
        let _worker = Running::start(&place, &FLAGS);
        let id = place.builtin("noop", &json!(null), &[]);
        place.reaches(&id, "completed");
    }
}

#[test]
fn one_that_was_killed_while_it_drained_works_when_it_is_started_again() {
    for place in places() {
        let server = Server::start(&place);
        let address = format!("http://{}", server.address);
        for over in [true, false] {
            let start = || if over { Running::over(&address, &FLAGS) } else { Running::start(&place, &FLAGS) };
            let worker = start();
            let file = format!("never-{over}");
            let id = until_there(&place, &file);
            place.reaches(&id, "running");
            place.run(&["workers", "drain", "w1"]).done();
            worker.says("worker received a directive");
            worker.signal("KILL");
            drop(worker);
            assert_eq!(listed(&place)[0]["directive"], "drain", "nobody has told yet that it is gone");
            let mut worker = start();
            let next = place.builtin("noop", &json!(null), &[]);
            place.reaches(&next, "completed");
            assert_eq!(listed(&place)[0]["directive"], "run");
            fs::write(place.folder().join(&file), "").unwrap();
            worker.signal("TERM");
            assert_eq!(worker.ended(), Some(0));
        }
    }
}

#[test]
fn the_worker_of_dev_ends_and_the_rest_goes_on() {
    let place = Place::sqlite();
    let mut command = crate::support::bare(&["dev", "--listen", "127.0.0.1:0"]);
    command.current_dir(place.folder());
    let server = Server::of(command);
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
    let id = server.post("/jobs", &body).accepted();
    eventually("somebody leads", || {
        (server.get(&format!("/admin/jobs/{id}")).json()["state"] == "pending").then_some(())
    });
    let explained = server.get(&format!("/admin/jobs/{id}/explain")).json();
    assert_eq!(explained["reasons"][0]["code"], "no_worker", "{explained:#}");
}
