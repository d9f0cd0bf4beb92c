//! `jobs explain` over a server, with a leader, a worker and a key.

use serde_json::json;

use super::{run_with_key, start_server_with_auth};
use crate::{
    harness::on_each_database,
    worker::{WorkerProcess, eventually},
};

#[test]
fn an_operator_sees_why_a_job_is_not_running() {
    on_each_database(|env| {
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
        let explains = |id: &str, parts: &[&str]| {
            eventually(&format!("{parts:?} are in the explanation of {id}"), || {
                Some(first_line(id)).filter(|line| parts.iter().all(|part| line.contains(part)))
            });
        };
        let parent = post(json!({"jobType": "orchestrix.noop", "hold": true, "queue": "mail"}));
        let child = post(json!({"jobType": "orchestrix.noop", "dependsOn": [parent], "queue": "mail"}));
        let later = post(json!({"jobType": "orchestrix.noop", "delaySeconds": 3600, "queue": "mail"}));
        let sleep = json!({"jobType": "orchestrix.sleep", "payload": {"seconds": 600}, "queue": "mail"});
        let sleeper = post(sleep.clone());
        explains(&parent, &["held", "no worker"]);
        explains(&child, &["1 job", "no worker"]);
        explains(&later, &[" 20", "Z", "no worker"]);
        explains(&sleeper, &["No worker"]);

        let mut worker = WorkerProcess::start(
            &env,
            &["--queues", "mail", "--concurrency", "1", "--worker-name", "w1", "--heartbeat-interval", "100ms"],
        );
        explains(&sleeper, &["w1", "attempt 1 of 10", " 20", "Z"]);
        explains(&parent, &["held"]);
        explains(&post(sleep), &["orchestrix.sleep", "mail", "busy"]);
        let unknown = post(json!({"jobType": "SEND", "queue": "mail"}));
        explains(&unknown, &["mail", "SEND"]);
        explains(&post(json!({"jobType": "SEND"})), &["default"]);
        run_with_key(&server, &operator, &["queues", "pause", "mail"]).success();
        explains(&unknown, &["mail", "paused", "SEND"]);
        run_with_key(&server, &operator, &["jobs", "cancel", &unknown]).success();
        explains(&unknown, &["cancelled", " 20", "Z"]);
        run_with_key(&server, &client, &["jobs", "explain", &unknown]).exits_with(1, "client");
        worker.signal("KILL");
        worker.wait_for_exit();
    });
}
