//! Start and shutdown of servers.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::json;

use super::process::{ServerProcess, TIMEOUT};
use crate::harness::{CliOutput, TestEnv, orchestrix};

#[test]
fn dev_runs_everything_in_one_process_and_keeps_its_data() {
    let env = TestEnv::sqlite();
    let command = || {
        let mut command = orchestrix(&["dev", "--listen", "127.0.0.1:0"]);
        command.current_dir(env.dir());
        command
    };
    let mut server = ServerProcess::spawn(command());
    assert!(server.wait_for_line("curl").contains("orchestrix.echo"));
    let id =
        server.post("/jobs", &json!({"jobType": "orchestrix.echo", "payload": {"hello": "world"}})).accepted_job_id();
    server.wait_for_status(&id, "COMPLETED");
    assert_eq!(server.get(&format!("/jobs/{id}/result")).json(), json!({"result": {"hello": "world"}}));
    assert_eq!(server.get("/readyz").json()["status"], "ok");
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().code(), Some(0));
    assert!(env.dir().join("orchestrix-data/orchestrix.db").exists());
    let server = ServerProcess::spawn(command());
    assert_eq!(server.get(&format!("/jobs/{id}")).json()["status"], "COMPLETED");
}

#[test]
fn an_address_in_use_is_named() {
    let env = TestEnv::sqlite();
    let server = ServerProcess::start(&env);
    let taken: CliOutput = env.run(&["server", "--no-auth", "--listen", &server.address]);
    assert_eq!(taken.code, Some(5), "{}", taken.stderr);
    assert!(taken.stderr.contains(&server.address), "{}", taken.stderr);
}

#[test]
fn a_signal_drains_requests_and_ends_long_polls() {
    let env = TestEnv::sqlite();
    let mut server = ServerProcess::start(&env);
    let ask = json!({"workerId": "w", "queues": ["*"], "max": 1, "waitSeconds": 50});
    let answer = std::thread::scope(|scope| {
        let waits = scope.spawn(|| server.post("/worker/leases", &ask));
        // The worker is registered, so its request is in progress.
        let deadline = Instant::now() + TIMEOUT;
        while server.get("/readyz").json()["components"]["workers"]["status"] != "ok" {
            assert!(Instant::now() < deadline, "the worker is not registered");
        }
        server.signal("TERM");
        waits.join().unwrap()
    });
    assert_eq!((answer.status, &answer.json()["leases"]), (200, &json!([])));
    assert_eq!(server.wait_for_exit().code(), Some(0));
}

#[test]
fn the_health_check_of_the_image_probes_the_server_only() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/Dockerfile");
    let text = fs::read_to_string(files).unwrap();
    let check = text.split_once("HEALTHCHECK").unwrap().1.split_once("CMD ").unwrap().1.lines().next().unwrap();
    let arguments: Vec<String> = serde_json::from_str(check).unwrap();
    let env = TestEnv::sqlite();
    let mut server = ServerProcess::start_with_auth(&env, &[]);
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    let healthy = || {
        let arguments: Vec<String> = arguments.iter().map(|argument| argument.replace("8080", &port)).collect();
        Command::new(&arguments[0]).args(&arguments[1..]).stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(healthy());
    server.signal("TERM");
    server.wait_for_exit();
    assert!(!healthy());
}
