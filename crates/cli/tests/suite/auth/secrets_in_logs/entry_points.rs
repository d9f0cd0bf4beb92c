//! Other entry points for a secret: WebSocket protocols, paths, TLS connections, and requests during which the
//! database fails.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use orchestrix_testkit::FaultProxy;
use tungstenite::{HandshakeError, Message, WebSocket, client::IntoClientRequest, http::HeaderValue};

use super::*;
use crate::{
    auth::tls::TestCertificate,
    server::process::{Response, TIMEOUT},
};

/// Opens a WebSocket as a browser does, with the key among the protocols.
fn socket<S: Read + Write>(stream: S, key: &str) -> Result<WebSocket<S>, u16> {
    let mut request = "ws://127.0.0.1/ws".into_client_request().unwrap();
    let protocols = format!("orchestrix, orchestrix.key.{key}");
    request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_str(&protocols).unwrap());
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(tungstenite::Error::Http(response))) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// Subscribes over WebSockets, and sends invalid messages.
pub(super) fn keys_in_websockets<S: Read + Write>(connect: impl Fn() -> S, client: &str, canary: &str) {
    for wrong in [canary, &forged_key(client), &format!("{client}{canary}")] {
        assert_eq!(socket(connect(), wrong).err(), Some(401));
    }
    let mut socket = socket(connect(), client).unwrap();
    for text in [
        canary.to_owned(),
        json!({canary: canary}).to_string(),
        json!({"subscribe": {"jobs": [canary, client]}}).to_string(),
        json!({"subscribe": {"queues": [format!("{canary} {canary}"), client], "all": canary}}).to_string(),
    ] {
        socket.send(Message::text(text)).unwrap();
        let reply = std::iter::repeat_with(|| socket.read().unwrap()).find(Message::is_text).unwrap();
        assert!(reply.to_text().unwrap().contains("error"), "{reply}");
    }
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
}

/// Sends whole keys where ids and names belong; `ask` returns the status of the response.
pub(super) fn keys_in_paths(
    ask: impl Fn(&str, &str, &str) -> u16,
    [client, worker, operator, admin]: [&str; 4],
    canary: &str,
) {
    for key in [client.to_owned(), forged_key(client), format!("ox_{}_{canary}", key_id(client))] {
        for (by, method, path) in [
            (client, "GET", format!("/jobs/{key}")),
            (client, "GET", format!("/jobs/{key}/events")),
            (client, "POST", format!("/jobs/{key}/cancel")),
            (client, "GET", format!("/{key}")),
            (client, "GET", format!("/schedules/{key}")),
            (client, "GET", format!("/schedules?limit={key}&{key}={key}")),
            (operator, "POST", format!("/schedules/{key}/trigger")),
            (operator, "POST", format!("/admin/jobs/{key}/retry")),
            (operator, "POST", format!("/admin/operations/{key}/abort")),
            (operator, "POST", format!("/admin/workers/{key}/drain")),
            (operator, "PUT", format!("/admin/queues/{key}{}", "x".repeat(128))),
            (operator, "GET", format!("/admin/audit?cursor={key}")),
            (worker, "POST", format!("/worker/leases/{key}/complete")),
            (admin, "DELETE", format!("/admin/keys/{key}")),
            (client, "DELETE", format!("/admin/keys/{key}")),
        ] {
            let status = ask(by, method, &path);
            assert!((400..500).contains(&status), "{method} {path}: {status}");
        }
    }
}

#[test]
fn the_log_of_a_tls_server_holds_no_payload_and_no_secret() {
    let (env, canary) = (TestEnv::sqlite(), canary());
    let keys = ["client", "worker", "operator", "admin"].map(|role| env.create_key(role, &[]));
    let [client, worker, operator, admin] = keys.each_ref().map(String::as_str);
    let ours = TestCertificate::new(&env, "ours");
    let arguments = [&["server", "--listen", "127.0.0.1:0"][..], &ours.flags()].concat();
    let server =
        ServerProcess::spawn_with_scheme("https://", with_trace_log(env.command(&arguments), &env, "server", "pretty"));
    let url = format!("https://{}", server.address);
    let trusting = |arguments: &[&str], key: &str, roots: &Path| {
        let mut command = orchestrix(&[arguments, &["--server", &url]].concat());
        command.env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR").env("ORCHESTRIX_API_KEY", key);
        command
    };
    let remote =
        WorkerProcess::spawn(with_trace_log(trusting(&["worker"], worker, &ours.root_file), &env, "remote", "pretty"));

    let raw = |bytes: &[u8]| {
        let mut stream = ours.connect(&server);
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // The server may close without close_notify.
        let _ = stream.read_to_end(&mut answer);
        Response::read(&answer)
    };
    let ask = |key: &str, method: &str, path: &str, body: &str| {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nauthorization: Bearer {key}\r\n"
        );
        raw(format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())
    };
    let body = json!({"jobType": "orchestrix.echo", "payload": canary, "idempotencyKey": canary}).to_string();
    let id = ask(client, "POST", "/jobs", &body).accepted_job_id();
    crate::worker::eventually("the job is done", || {
        let look = ask(client, "GET", &format!("/jobs/{id}?waitSeconds=5"), "").json();
        Some(()).filter(|()| look["status"] == "COMPLETED")
    });
    assert_eq!(ask(&forged_key(client), "POST", "/jobs", &body).status, 401);
    assert_eq!(ask(client, "POST", "/jobs", &canary).status, 400);
    assert_eq!(raw(format!("{canary}\r\n\r\n").as_bytes()).status, 400);
    keys_in_paths(|key, method, path| ask(key, method, path, "").status, [client, worker, operator, admin], &canary);
    keys_in_websockets(|| ours.connect(&server), client, &canary);
    // Plain HTTP to the TLS port, and a command that does not trust the certificate.
    let mut plain = TcpStream::connect(&server.address).unwrap();
    plain.set_read_timeout(Some(TIMEOUT)).unwrap();
    plain
        .write_all(format!("GET /{canary} HTTP/1.1\r\nauthorization: Bearer {client}\r\n\r\n{canary}").as_bytes())
        .unwrap();
    let _ = plain.read_to_end(&mut Vec::new());
    let mut captured = CapturedOutput::default();
    let theirs = TestCertificate::new(&env, "theirs");
    let log = ["--log", "trace", "--connect-timeout", "2s"];
    captured.push(
        CliOutput::run(&mut trusting(&[&["jobs", "list"][..], &log].concat(), operator, &ours.root_file)).success(),
    );
    captured.push(
        CliOutput::run(&mut trusting(&[&["jobs", "list"][..], &log].concat(), &canary, &ours.root_file))
            .exits_with(1, "key"),
    );
    captured.push(
        CliOutput::run(&mut trusting(&[&["jobs", "list"][..], &log].concat(), operator, &theirs.root_file))
            .exits_with(5, "certificate"),
    );

    let logs = [remote.shut_down(), server.shut_down()];
    for (lines, text) in logs.iter().zip(["jobId", "requestId"]) {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
    captured.0.extend(logs.into_iter().flatten());
    captured.0.extend(["server", "remote"].map(|name| fs::read_to_string(env.dir().join(name)).unwrap()));
    let secrets = keys.each_ref().map(|key| key_secret(key));
    let certified = fs::read_to_string(&ours.key).unwrap();
    let certified: Vec<&str> = certified.lines().filter(|line| !line.starts_with('-')).collect();
    captured.assert_contains_none(
        &[&[canary.as_str()][..], &secrets, &[key_secret(&forged_key(client))], &certified].concat(),
    );
}

#[test]
fn the_log_during_database_failures_holds_no_payload_and_no_secret() {
    let (database, canary) = (TestDatabase::create("canary").unwrap(), canary());
    let direct = TestEnv::at_url(database.url());
    let config: tokio_postgres::Config = database.url().parse().unwrap();
    let port = config.get_ports()[0];
    let proxy = FaultProxy::start(([127, 0, 0, 1], port).into()).unwrap();
    let through =
        TestEnv::at_url(database.url().replace(&format!(":{port}/"), &format!(":{}/", proxy.address().port())));
    let keys = ["client", "worker", "operator", "admin"].map(|role| direct.create_key(role, &[]));
    let [client, worker, operator, _] = keys.each_ref().map(String::as_str);
    let server = through.command(&["server", "--listen", "127.0.0.1:0", "--connect-timeout", "1s"]);
    let server = ServerProcess::spawn(with_trace_log(server, &through, "server", "json"));
    let arguments = ["worker", "--allow-command", "cat", "--heartbeat-interval", "300ms"];
    let running = WorkerProcess::spawn(with_trace_log(through.command(&arguments), &through, "worker", "json"));

    // Two running jobs with the canary in every field.
    let post = |queue: &str, kind: &str, payload: Value| {
        let job = json!({"jobType": kind, "queue": queue, "payload": payload, "tags": ["t"], "correlationId": "c"});
        server.request_with_key(client, "POST", "/jobs", &job.to_string())
    };
    post("default", "by-hand", json!(canary)).accepted_job_id();
    let lease = json!({"workerId": "hand", "queues": ["*"], "jobTypes": ["by-hand"], "max": 1, "waitSeconds": 30});
    let leased = server.request_with_key(worker, "POST", "/worker/leases", &lease.to_string()).json();
    let token = leased["leases"][0]["leaseToken"].as_str().unwrap().to_owned();
    let report = |what: &str, body: Value| {
        server.request_with_key(worker, "POST", &format!("/worker/leases/{token}/{what}"), &body.to_string())
    };
    let slow = post("default", "orchestrix.sleep", json!({"seconds": 2.5})).accepted_job_id();
    post("default", "orchestrix.echo", json!({ canary.clone(): canary })).accepted_job_id();
    server.request_with_key(client, "GET", &format!("/jobs/{slow}?waitSeconds=10"), "");

    // Sends every request that carries a secret, while the database is away or refuses the write.
    let everything = |status: std::ops::Range<u16>| {
        let keyed = json!({"jobType": "t", "queue": "refused", "payload": canary, "idempotencyKey": canary});
        let batch = json!({"jobs": [keyed, {"jobType": "t", "queue": "refused", "payload": canary}]});
        let schedule = json!({"everySeconds": 3600, "job": {"jobType": "t", "queue": "refused", "payload": canary}});
        let key = json!({"name": canary, "role": "client"});
        for (by, method, path, body) in [
            (client, "POST", "/jobs", keyed),
            (client, "POST", "/jobs", json!({"jobType": "t", "queue": "refused", "payload": [canary]})),
            (client, "POST", "/jobs/batch", batch),
            (operator, "PUT", "/schedules/s", schedule),
            (&keys[3], "POST", "/admin/keys", key),
            (client, "GET", "/jobs/0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70", json!({})),
        ] {
            let answer = server.request_with_key(by, method, path, &body.to_string());
            assert!(status.contains(&answer.status) || answer.status == 404, "{method} {path}: {answer:?}");
        }
        for answer in [
            report("progress", json!({"percent": 5, "checkpoint": {canary.clone(): canary}})),
            report("complete", json!({"result": canary})),
        ] {
            assert!(status.contains(&answer.status), "{answer:?}");
        }
        let forged = server.request_with_key(&forged_key(client), "GET", "/schedules", "");
        assert!(forged.status == 401 || status.contains(&forged.status), "{forged:?}");
    };
    let tables = ["job", "history", "schedule", "api_key", "idempotency"];
    for table in tables {
        // PostgreSQL quotes the whole row in the detail of this error.
        direct.sql(&format!("ALTER TABLE orchestrix.{table} ADD CONSTRAINT refused CHECK (random() < 0) NOT VALID"));
    }
    everything(500..501);
    for table in tables {
        direct.sql(&format!("ALTER TABLE orchestrix.{table} DROP CONSTRAINT refused"));
    }
    proxy.cut();
    everything(503..504);
    proxy.restore();
    crate::worker::eventually("the database is back", || {
        Some(()).filter(|()| server.request_with_key(client, "GET", &format!("/jobs/{slow}"), "").status == 200)
    });

    let mut captured = CapturedOutput::default();
    let logs = [running.shut_down(), server.shut_down()];
    for (lines, text) in logs.iter().zip(["jobId", "refused"]) {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
    assert!(logs[1].iter().any(|line| line.contains("\"status\":503")));
    captured.0.extend(logs.into_iter().flatten());
    captured.0.extend(["server", "worker"].map(|name| fs::read_to_string(through.dir().join(name)).unwrap()));
    let secrets = keys.each_ref().map(|key| key_secret(key));
    captured.assert_contains_none(&[&[canary.as_str()][..], &secrets, &[key_secret(&forged_key(client))]].concat());
}
