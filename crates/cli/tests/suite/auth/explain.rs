//! Why a job is not running, in the words that an operator reads: a server that leads, a worker that works, and a key.

use serde_json::json;

use super::{guarded, over};
use crate::{
    support::places,
    worker::{Running, eventually},
};

#[test]
fn an_operator_reads_why_a_job_is_not_running() {
    for place in places() {
        let [client, operator] = ["client", "operator"].map(|role| place.key(role, &[]));
        let server = guarded(&place);
        let post = |body: serde_json::Value| server.with(&client, "POST", "/jobs", &body.to_string()).accepted();
        let first_line = |id: &str| {
            let text = over(&server, &operator, &["jobs", "explain", id]).done().stdout;
            text.lines().next().unwrap().to_owned()
        };
        // Workers and leaders are seen a moment after they begin.
        let says = |id: &str, begin: &str, end: &str| {
            eventually(&format!("{begin:?}…{end:?} of {id}"), || {
                Some(first_line(id)).filter(|line| line.starts_with(begin) && line.ends_with(end))
            });
        };
        let parent = post(json!({"jobType": "orchestrix.noop", "hold": true, "queue": "mail"}));
        let child = post(json!({"jobType": "orchestrix.noop", "dependsOn": [parent], "queue": "mail"}));
        let later = post(json!({"jobType": "orchestrix.noop", "delaySeconds": 3600, "queue": "mail"}));
        let sleep = json!({"jobType": "orchestrix.sleep", "payload": {"seconds": 600}, "queue": "mail"});
        let sleeper = post(sleep.clone());
        says(&parent, "It is held until it is released; no worker is alive.", "");
        says(&child, "It waits for 1 job to finish; no worker is alive.", "");
        says(&later, "It cannot start before 20", "Z; no worker is alive.");
        says(&sleeper, "No worker is alive.", "");

        let mut worker = Running::start(&place, &["--queues", "mail", "--concurrency", "1", "--worker-name", "w1"]);
        says(&sleeper, "Worker w1 has been running attempt 1 of 10 since 20", "Z.");
        says(&parent, "It is held until it is released.", "");
        says(&post(sleep), "Every worker that serves orchestrix.sleep in mail is busy.", "");
        let unknown = post(json!({"jobType": "SEND", "queue": "mail"}));
        says(&unknown, "No live worker of queue mail handles SEND.", "");
        says(&post(json!({"jobType": "SEND"})), "No live worker serves queue default.", "");
        over(&server, &operator, &["queues", "pause", "mail"]).done();
        says(&unknown, "Its queue mail is paused; no live worker of queue mail handles SEND.", "");
        over(&server, &operator, &["jobs", "cancel", &unknown]).done();
        says(&unknown, "It was cancelled at 20", "Z on request.");
        over(&server, &client, &["jobs", "explain", &unknown]).ended(1, "the key's role, client, does not allow this");
        worker.signal("KILL");
        worker.ended();
    }
}
