//! `jobs explain` over a server, with a leader, a worker and a key.

use serde_json::json;

use super::{run_with_key, start_server_with_auth};
use crate::{
    harness::each_database,
    worker::{WorkerProcess, eventually},
};

#[test]
fn an_operator_sees_why_a_job_is_not_running() {
    for env in each_database() {
        let [client, operator] = ["client", "operator"].map(|role| env.create_key(role, &[]));
        let server = start_server_with_auth(&env);
        let post = |body: serde_json::Value| {
            server.request_with_key(&client, "POST", "/jobs", &body.to_string()).accepted_job_id()
        };
        let first_line = |id: &str| {
            let text = run_with_key(&server, &operator, &["jobs", "explain", id]).success().stdout;
            text.lines().next().unwrap().to_owned()
        };
        // Workers and the leader become visible shortly after they start.
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
        says(&parent, "It is held until somebody releases it; no worker is alive.", "");
        says(&child, "It waits for 1 job to finish; no worker is alive.", "");
        says(&later, "It is not to start before 20", "Z; no worker is alive.");
        says(&sleeper, "No worker is alive.", "");

        let mut worker = WorkerProcess::start(&env, &["--queues", "mail", "--concurrency", "1", "--worker-name", "w1"]);
        says(&sleeper, "Worker w1 has been running attempt 1 of 10 since 20", "Z.");
        says(&parent, "It is held until somebody releases it.", "");
        says(&post(sleep), "Every worker that takes orchestrix.sleep from mail is busy.", "");
        let unknown = post(json!({"jobType": "SEND", "queue": "mail"}));
        says(&unknown, "No live worker of queue mail knows SEND.", "");
        says(&post(json!({"jobType": "SEND"})), "No live worker takes jobs from queue default.", "");
        run_with_key(&server, &operator, &["queues", "pause", "mail"]).success();
        says(&unknown, "Its queue mail is paused; no live worker of queue mail knows SEND.", "");
        run_with_key(&server, &operator, &["jobs", "cancel", &unknown]).success();
        says(&unknown, "It was cancelled at 20", "Z on request.");
        run_with_key(&server, &client, &["jobs", "explain", &unknown])
            .exits_with(1, "the key's role, client, does not allow this");
        worker.signal("KILL");
        worker.wait_for_exit();
    }
}
