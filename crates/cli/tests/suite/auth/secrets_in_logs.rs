//! Logs hold no secrets and no payloads: a canary is planted wherever secrets and payloads go, at log level `trace`,
//! and no output may contain it. Log lines and error texts that a job writes itself are exempt.

mod entry_points;

use std::{
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    process::Command,
};

use orchestrix_testkit::TestDatabase;
use serde_json::{Value, json};

use super::{forged_key, key_id, key_secret, run_with_key};
use crate::{
    harness::{CliOutput, TestEnv, orchestrix},
    server::process::ServerProcess,
    worker::WorkerProcess,
};

/// A random text, so that nothing else can match it.
fn canary() -> String {
    format!("canary{:016x}", RandomState::new().hash_one(()))
}

/// Everything that the processes under test wrote.
#[derive(Default)]
struct CapturedOutput(Vec<String>);

impl CapturedOutput {
    fn push(&mut self, ran: CliOutput) {
        self.0.extend([ran.stdout, ran.stderr]);
    }

    #[track_caller]
    fn assert_contains_none(&self, secrets: &[&str]) {
        for secret in secrets {
            let lines: Vec<&String> = self.0.iter().filter(|line| line.contains(secret)).collect();
            assert!(lines.is_empty(), "{secret} in {lines:#?}");
        }
    }
}

/// Logs at level `trace`, with standard output redirected to a file.
fn with_trace_log(mut command: Command, env: &TestEnv, name: &str, format: &str) -> Command {
    command.args(["--log", "trace", "--log-format", format]);
    command.stdout(File::create(env.dir().join(name)).unwrap());
    command
}

/// Runs jobs of every kind in a queue, each with the canary in it.
fn run_jobs(server: &ServerProcess, client: &str, operator: &str, canary: &str, queue: &str) {
    let of = |mut job: Value| {
        job["queue"] = queue.into();
        job
    };
    let post = |body: Value| server.request_with_key(client, "POST", "/jobs", &of(body).to_string()).accepted_job_id();
    let until = |id: &str, status: &str| {
        let look = || server.request_with_key(client, "GET", &format!("/jobs/{id}?waitSeconds=5"), "").json();
        crate::worker::eventually(&format!("{id} is {status}"), || Some(look()).filter(|job| job["status"] == status));
    };
    let retry = json!({"baseSeconds": 0.01});
    let key = format!("{canary}-{queue}");
    let echoed = post(json!({"jobType": "orchestrix.echo", "payload": {canary: [canary]}, "idempotencyKey": key}));
    until(&echoed, "COMPLETED");
    let result = server.request_with_key(client, "GET", &format!("/jobs/{echoed}/result"), "").json();
    assert_eq!(result, json!({"result": {canary: [canary]}}), "the canary reached the job");
    server
        .request_with_key(
            client,
            "POST",
            "/jobs",
            &json!({"jobType": "orchestrix.echo", "idempotencyKey": key}).to_string(),
        )
        .problem(422, "idempotency_key_reused");
    let batch = [1, 2].map(|_| of(json!({"jobType": "orchestrix.echo", "payload": canary})));
    let batch = json!({"jobs": batch});
    let batch = server.request_with_key(client, "POST", "/jobs/batch", &batch.to_string()).json();
    for job in batch["jobs"].as_array().unwrap() {
        until(job["jobId"].as_str().unwrap(), "COMPLETED");
    }
    let again = json!({"message": canary, "untilAttempt": 3});
    until(&post(json!({"jobType": "orchestrix.fail", "payload": again, "retry": retry})), "COMPLETED");
    let gone = json!({"message": canary, "retryable": false});
    let dead = post(json!({"jobType": "orchestrix.fail", "payload": gone}));
    until(&dead, "FAILED");
    // Payloads that their handlers reject.
    for (kind, payload) in [
        ("orchestrix.sleep", json!({"seconds": canary})),
        ("orchestrix.sleep", json!({canary: 1})),
        ("orchestrix.http", json!({"url": canary})),
        ("orchestrix.command", json!({"program": canary, "args": [canary]})),
    ] {
        until(&post(json!({"jobType": kind, "payload": payload, "maxAttempts": 1})), "FAILED");
    }
    let command = json!({"program": "cat", "stdin": canary, "env": {"CANARY": canary}});
    until(&post(json!({"jobType": "orchestrix.command", "payload": command})), "COMPLETED");
    let call = json!({"url": format!("http://{}/jobs?{canary}", server.address), "method": "POST", "body": canary,
                      "headers": {"authorization": format!("Bearer {canary}"), "content-type": "application/json"}});
    until(&post(json!({"jobType": "orchestrix.http", "payload": call, "maxAttempts": 1})), "FAILED");

    // Actions of an operator.
    let act = |what: &str, body: Value| {
        let (method, path) = what.split_once(' ').unwrap();
        let answer = server.request_with_key(operator, method, path, &body.to_string());
        assert!(answer.status < 300, "{what}: {answer:?}");
        answer
    };
    act(&format!("POST /admin/jobs/{dead}/retry"), json!({}));
    until(&dead, "FAILED");
    let schedule = json!({"everySeconds": 3600, "job": of(json!({"jobType": "orchestrix.echo", "payload": canary}))});
    act("PUT /schedules/s", schedule);
    let fired = act("POST /schedules/s/trigger", json!({})).json();
    until(fired["jobId"].as_str().unwrap(), "COMPLETED");
    act("POST /admin/dlq/redrive", json!({"jobIds": [dead]}));
    until(&dead, "FAILED");
    act(&format!("GET /admin/jobs/{dead}"), json!({}));
}

/// Leases and completes a job over HTTP, with the canary in its checkpoint and its result.
fn run_job_over_http(server: &ServerProcess, client: &str, worker: &str, canary: &str) {
    let body = json!({"jobType": "by-hand", "payload": canary}).to_string();
    server.request_with_key(client, "POST", "/jobs", &body).accepted_job_id();
    let ask = json!({"workerId": "hand", "queues": ["*"], "jobTypes": ["by-hand"], "max": 1, "waitSeconds": 30});
    let leased = server.request_with_key(worker, "POST", "/worker/leases", &ask.to_string()).json();
    let token = leased["leases"][0]["leaseToken"].as_str().unwrap().to_owned();
    let report = |what: &str, body: &str| {
        server.request_with_key(worker, "POST", &format!("/worker/leases/{token}/{what}"), body)
    };
    assert_eq!(report("progress", &json!({"percent": 5, "checkpoint": {canary: canary}}).to_string()).status, 200);
    assert_eq!(report("complete", &format!("{{\"result\": {canary}")).status, 400);
    assert_eq!(report("complete", &json!({"result": canary}).to_string()).status, 200);
    assert_eq!(report("complete", &json!({"result": [canary]}).to_string()).status, 409);
}

/// Sends requests that are invalid, each with the canary in it.
fn send_invalid_requests(server: &ServerProcess, client: &str, canary: &str) {
    for body in [
        format!("{{\"jobType\": {canary}"),
        json!({"jobType": "t", canary: canary}).to_string(),
        json!({"jobType": [canary], "priority": canary, "runAt": canary, "queue": format!("{canary} {canary}")})
            .to_string(),
        json!({"jobType": "t", "payload": canary.repeat(60_000)}).to_string(),
        canary.repeat(100_000),
    ] {
        assert!(server.request_with_key(client, "POST", "/jobs", &body).status >= 400);
    }
    for path in
        [format!("/jobs/{canary}"), format!("/{canary}"), format!("/schedules?limit={canary}&{canary}={canary}")]
    {
        let answer = server.request_with_key(client, "GET", &path, "");
        assert!(answer.status >= 400, "{path}: {answer:?}");
    }
    // Invalid keys, in every form.
    for authorization in [
        canary.to_owned(),
        format!("Bearer {canary}"),
        format!("Basic {canary}"),
        format!("Bearer {}", forged_key(client)),
    ] {
        let headers = [("authorization", authorization.as_str()), ("cookie", canary), ("x-api-key", canary)];
        server.call("GET", "/schedules", &headers, "").problem(401, "unauthenticated");
    }
    // Bytes that are not HTTP.
    for bytes in [format!("{canary}\r\n\r\n"), format!("GET / HTTP/1.1\r\n{canary} {canary}\r\n\r\n")] {
        assert_eq!(server.send_raw(bytes.as_bytes()).status, 400);
    }
}

fn assert_logs_hold_no_secret(env: &TestEnv, canary: &str, format: &str) {
    let [client, worker, operator, admin] =
        ["client", "worker", "operator", "admin"].map(|role| env.create_key(role, &[]));
    let server = ServerProcess::spawn(with_trace_log(
        env.command(&["server", "--listen", "127.0.0.1:0"]),
        env,
        "server",
        format,
    ));
    let url = format!("http://{}", server.address);
    let flags = ["worker", "--allow-command", "cat", "--allow-private-http"];
    let direct = env.command(&[&flags[..], &["--queues", "direct"]].concat());
    let direct = WorkerProcess::spawn(with_trace_log(direct, env, "direct", format));
    let mut remote = orchestrix(&[&flags[..], &["--queues", "remote", "--server", &url]].concat());
    remote.env("ORCHESTRIX_API_KEY", &worker);
    let remote = WorkerProcess::spawn(with_trace_log(remote, env, "remote", format));

    for queue in ["direct", "remote"] {
        run_jobs(&server, &client, &operator, canary, queue);
    }
    run_job_over_http(&server, &client, &worker, canary);
    send_invalid_requests(&server, &client, canary);
    let ask = |key: &str, method: &str, path: &str| server.request_with_key(key, method, path, "").status;
    entry_points::keys_in_paths(ask, [&client, &worker, &operator, &admin], canary);
    entry_points::keys_in_websockets(|| server.connect(), &client, canary);
    let mut captured = CapturedOutput::default();
    let log = ["--log", "trace", "--log-format", format];
    let payload = json!(canary).to_string();
    for (key, arguments) in [
        (&client, &["jobs", "enqueue", "t", "--payload", &payload, "--idempotency-key", "k"][..]),
        (&operator, &["jobs", "list"]),
        (&admin, &["keys", "list"]),
        (&client, &["keys", "list"]),
    ] {
        captured.push(run_with_key(&server, key, &[arguments, &log].concat()));
    }
    captured.push(run_with_key(&server, canary, &[&["jobs", "list"][..], &log].concat()).exits_with(1, "key"));
    captured.push(env.run(&[&["jobs", "list"][..], &log].concat()).success());
    captured.push(env.run(&[&["doctor"][..], &log].concat()));

    let logs = [direct.shut_down(), remote.shut_down(), server.shut_down()];
    // The trace log was really written.
    for (lines, text) in logs.iter().zip(["jobId", "jobId", "requestId"]) {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
    captured.0.extend(logs.into_iter().flatten());
    captured.0.extend(["server", "direct", "remote"].map(|name| fs::read_to_string(env.dir().join(name)).unwrap()));
    let secrets = [&client, &worker, &operator, &admin].map(|key| key_secret(key));
    captured.assert_contains_none(&[&[canary][..], &secrets, &[key_secret(&forged_key(&client))]].concat());
}

#[test]
fn the_pretty_log_holds_no_payload_and_no_secret() {
    assert_logs_hold_no_secret(&TestEnv::sqlite(), &canary(), "pretty");
}

#[test]
fn the_json_log_holds_no_payload_no_secret_and_no_password() {
    let (database, canary) = (TestDatabase::create("canary").unwrap(), canary());
    let (scheme, rest) = database.url().split_once("://").unwrap();
    let (user, host) = rest.split_once('@').unwrap();
    // The test server trusts every client, so any password is accepted.
    let user = user.split(':').next().unwrap();
    assert_logs_hold_no_secret(&TestEnv::at_url(format!("{scheme}://{user}:{canary}@{host}")), &canary, "json");
}

#[test]
fn connection_errors_and_invalid_urls_show_no_password() {
    let (env, canary) = (TestEnv::sqlite(), canary());
    let mut captured = CapturedOutput::default();
    for (url, code) in [
        (format!("postgres://me:{canary}@127.0.0.1:1/db"), 5),
        (format!("postgres://me:{canary}@127.0.0.1:port/db"), 2),
        (format!("postgres://me:{canary}@[::/db?{canary}"), 2),
        (format!("mysql://me:{canary}@127.0.0.1/db"), 2),
        (format!("host=127.0.0.1 password={canary} nonsense"), 2),
    ] {
        for command in [&["jobs", "list"][..], &["server", "--listen", "127.0.0.1:0"], &["worker"], &["migrate"]] {
            let flags = ["--connect-timeout", "50ms", "--log", "trace"];
            let mut process = orchestrix(&[command, &flags].concat());
            let ran = CliOutput::run(process.env("ORCHESTRIX_DATABASE_URL", &url).current_dir(env.dir()));
            assert_eq!(ran.code, Some(code), "{url}: {ran:?}");
            captured.push(ran);
        }
        fs::write(env.dir().join("orchestrix.toml"), format!("database = {url:?}\n")).unwrap();
        captured
            .push(CliOutput::run(orchestrix(&["jobs", "list", "--connect-timeout", "50ms"]).current_dir(env.dir())));
        fs::remove_file(env.dir().join("orchestrix.toml")).unwrap();
    }
    captured.assert_contains_none(&[&canary]);
}
