//! The other ways by which a secret comes in: as a protocol of a WebSocket, in a path, on a secret connection, and with a request during
//! which the database fails.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use orchestrix_testkit::Proxy;
use tungstenite::{HandshakeError, Message, WebSocket, client::IntoClientRequest, http::HeaderValue};

use super::*;
use crate::{
    auth::tls::Certified,
    server::http::{Answer, LIMIT},
};

/// Asks for a WebSocket as a page does, with its key among the protocols.
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

/// Follows jobs over WebSockets, and says there what is no message.
pub(super) fn by_sockets<S: Read + Write>(connect: impl Fn() -> S, client: &str, word: &str) {
    for wrong in [word, &forged(client), &format!("{client}{word}")] {
        assert_eq!(socket(connect(), wrong).err(), Some(401));
    }
    let mut socket = socket(connect(), client).unwrap();
    for text in [
        word.to_owned(),
        json!({word: word}).to_string(),
        json!({"subscribe": {"jobs": [word, client]}}).to_string(),
        json!({"subscribe": {"queues": [format!("{word} {word}"), client], "all": word}}).to_string(),
    ] {
        socket.send(Message::text(text)).unwrap();
        let told = std::iter::repeat_with(|| socket.read().unwrap()).find(Message::is_text).unwrap();
        assert!(told.to_text().unwrap().contains("error"), "{told}");
    }
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
}

/// Puts whole keys where ids and names belong; `ask` says with what status a request is answered.
pub(super) fn in_paths(
    ask: impl Fn(&str, &str, &str) -> u16,
    [client, worker, operator, admin]: [&str; 4],
    word: &str,
) {
    for key in [client.to_owned(), forged(client), format!("ox_{}_{word}", id_of(client))] {
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
fn a_log_of_secret_connections_holds_no_payload_and_no_secret() {
    let (place, word) = (Place::sqlite(), word());
    let keys = ["client", "worker", "operator", "admin"].map(|role| place.key(role, &[]));
    let [client, worker, operator, admin] = keys.each_ref().map(String::as_str);
    let ours = Certified::new(&place, "ours");
    let arguments = [&["server", "--listen", "127.0.0.1:0"][..], &ours.flags()].concat();
    let server = Server::speaking("https://", loud(place.command(&arguments), &place, "server", "pretty"));
    let url = format!("https://{}", server.address);
    let trusting = |arguments: &[&str], key: &str, roots: &Path| {
        let mut command = bare(&[arguments, &["--server", &url]].concat());
        command.env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR").env("ORCHESTRIX_API_KEY", key);
        command
    };
    let remote = Running::of(loud(trusting(&["worker"], worker, &ours.root_file), &place, "remote", "pretty"));

    let raw = |bytes: &[u8]| {
        let mut stream = ours.connect(&server);
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // It may end without a goodbye.
        let _ = stream.read_to_end(&mut answer);
        Answer::read(&answer)
    };
    let ask = |key: &str, method: &str, path: &str, body: &str| {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nauthorization: Bearer {key}\r\n"
        );
        raw(format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())
    };
    let body = json!({"jobType": "orchestrix.echo", "payload": word, "idempotencyKey": word}).to_string();
    let id = ask(client, "POST", "/jobs", &body).accepted();
    crate::worker::eventually("it is done", || {
        let look = ask(client, "GET", &format!("/jobs/{id}?waitSeconds=5"), "").json();
        Some(()).filter(|()| look["status"] == "COMPLETED")
    });
    assert_eq!(ask(&forged(client), "POST", "/jobs", &body).status, 401);
    assert_eq!(ask(client, "POST", "/jobs", &word).status, 400);
    assert_eq!(raw(format!("{word}\r\n\r\n").as_bytes()).status, 400);
    in_paths(|key, method, path| ask(key, method, path, "").status, [client, worker, operator, admin], &word);
    by_sockets(|| ours.connect(&server), client, &word);
    // In plain words to where secrets are expected, and to somebody who is not trusted.
    let mut plain = TcpStream::connect(&server.address).unwrap();
    plain.set_read_timeout(Some(LIMIT)).unwrap();
    plain
        .write_all(format!("GET /{word} HTTP/1.1\r\nauthorization: Bearer {client}\r\n\r\n{word}").as_bytes())
        .unwrap();
    let _ = plain.read_to_end(&mut Vec::new());
    let mut heard = Heard::default();
    let theirs = Certified::new(&place, "theirs");
    let log = ["--log", "trace", "--connect-timeout", "2s"];
    heard.ran(Ran::of(&mut trusting(&[&["jobs", "list"][..], &log].concat(), operator, &ours.root_file)).done());
    heard.ran(Ran::of(&mut trusting(&[&["jobs", "list"][..], &log].concat(), &word, &ours.root_file)).ended(1, "key"));
    heard.ran(
        Ran::of(&mut trusting(&[&["jobs", "list"][..], &log].concat(), operator, &theirs.root_file))
            .ended(5, "certificate"),
    );

    let said = [remote.last_words(), server.last_words()];
    for (lines, text) in said.iter().zip(["attempt started", "answered"]) {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
    heard.0.extend(said.into_iter().flatten());
    heard.0.extend(["server", "remote"].map(|name| fs::read_to_string(place.folder().join(name)).unwrap()));
    let secrets = keys.each_ref().map(|key| secret_of(key));
    let certified = fs::read_to_string(&ours.key).unwrap();
    let certified: Vec<&str> = certified.lines().filter(|line| !line.starts_with('-')).collect();
    heard.holds_none(&[&[word.as_str()][..], &secrets, &[secret_of(&forged(client))], &certified].concat());
}

#[test]
fn a_log_of_requests_during_which_the_database_fails_holds_no_payload_and_no_secret() {
    let (database, word) = (TestDatabase::create("canary").unwrap(), word());
    let direct = Place::at(database.url());
    let config: tokio_postgres::Config = database.url().parse().unwrap();
    let port = config.get_ports()[0];
    let proxy = Proxy::start(([127, 0, 0, 1], port).into()).unwrap();
    let through = Place::at(database.url().replace(&format!(":{port}/"), &format!(":{}/", proxy.address().port())));
    let keys = ["client", "worker", "operator", "admin"].map(|role| direct.key(role, &[]));
    let [client, worker, operator, _] = keys.each_ref().map(String::as_str);
    let server = through.command(&["server", "--listen", "127.0.0.1:0", "--connect-timeout", "1s"]);
    let server = Server::of(loud(server, &through, "server", "json"));
    let arguments = ["worker", "--allow-command", "cat", "--heartbeat-interval", "300ms"];
    let running = Running::of(loud(through.command(&arguments), &through, "worker", "json"));

    // Two that somebody works on, with the word in all that is known of them.
    let post = |queue: &str, kind: &str, payload: Value| {
        let job = json!({"jobType": kind, "queue": queue, "payload": payload, "tags": ["t"], "correlationId": "c"});
        server.with(client, "POST", "/jobs", &job.to_string())
    };
    post("default", "by-hand", json!(word)).accepted();
    let lease = json!({"workerId": "hand", "queues": ["*"], "jobTypes": ["by-hand"], "max": 1, "waitSeconds": 30});
    let leased = server.with(worker, "POST", "/worker/leases", &lease.to_string()).json();
    let token = leased["leases"][0]["leaseToken"].as_str().unwrap().to_owned();
    let tell = |what: &str, body: Value| {
        server.with(worker, "POST", &format!("/worker/leases/{token}/{what}"), &body.to_string())
    };
    let slow = post("default", "orchestrix.sleep", json!({"seconds": 2.5})).accepted();
    post("default", "orchestrix.echo", json!({ word.clone(): word })).accepted();
    server.with(client, "GET", &format!("/jobs/{slow}?waitSeconds=10"), "");

    // All that carries a secret, whether the database is away, refuses it or is too slow.
    let everything = |status: std::ops::Range<u16>| {
        let keyed = json!({"jobType": "t", "queue": "refused", "payload": word, "idempotencyKey": word});
        let batch = json!({"jobs": [keyed, {"jobType": "t", "queue": "refused", "payload": word}]});
        let schedule = json!({"everySeconds": 3600, "job": {"jobType": "t", "queue": "refused", "payload": word}});
        let key = json!({"name": word, "role": "client"});
        for (by, method, path, body) in [
            (client, "POST", "/jobs", keyed),
            (client, "POST", "/jobs", json!({"jobType": "t", "queue": "refused", "payload": [word]})),
            (client, "POST", "/jobs/batch", batch),
            (operator, "PUT", "/schedules/s", schedule),
            (&keys[3], "POST", "/admin/keys", key),
            (client, "GET", "/jobs/0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70", json!({})),
        ] {
            let answer = server.with(by, method, path, &body.to_string());
            assert!(status.contains(&answer.status) || answer.status == 404, "{method} {path}: {answer:?}");
        }
        for answer in [
            tell("progress", json!({"percent": 5, "checkpoint": {word.clone(): word}})),
            tell("complete", json!({"result": word})),
        ] {
            assert!(status.contains(&answer.status), "{answer:?}");
        }
        let forged = server.with(&forged(client), "GET", "/schedules", "");
        assert!(forged.status == 401 || status.contains(&forged.status), "{forged:?}");
    };
    let tables = ["job", "history", "schedule", "api_key", "idempotency"];
    for table in tables {
        // The server names the whole row in what it says of this.
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
        Some(()).filter(|()| server.with(client, "GET", &format!("/jobs/{slow}"), "").status == 200)
    });

    let mut heard = Heard::default();
    let said = [running.last_words(), server.last_words()];
    for (lines, text) in said.iter().zip(["attempt started", "the store failed"]) {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
    assert!(said[1].iter().any(|line| line.contains("the store is away")));
    heard.0.extend(said.into_iter().flatten());
    heard.0.extend(["server", "worker"].map(|name| fs::read_to_string(through.folder().join(name)).unwrap()));
    let secrets = keys.each_ref().map(|key| secret_of(key));
    heard.holds_none(&[&[word.as_str()][..], &secrets, &[secret_of(&forged(client))]].concat());
}
