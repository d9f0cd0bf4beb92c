//! What nobody may read in a log: a word that is planted wherever secrets and payloads go, while everything is logged, is seen in none of
//! it. What a job says itself, in its lines and errors, is the job's.

mod ways;

use std::{
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    process::Command,
};

use orchestrix_testkit::TestDatabase;
use serde_json::{Value, json};

use super::{forged, id_of, over, secret_of};
use crate::{
    server::http::Server,
    support::{Place, Ran, bare},
    worker::Running,
};

/// Random in every run, so that nothing else can be it.
fn word() -> String {
    format!("canary{:016x}", RandomState::new().hash_one(()))
}

/// Everything that was said by anybody.
#[derive(Default)]
struct Heard(Vec<String>);

impl Heard {
    fn ran(&mut self, ran: Ran) {
        self.0.extend([ran.stdout, ran.stderr]);
    }

    #[track_caller]
    fn holds_none(&self, secrets: &[&str]) {
        for secret in secrets {
            let lines: Vec<&String> = self.0.iter().filter(|line| line.contains(secret)).collect();
            assert!(lines.is_empty(), "{secret} in {lines:#?}");
        }
    }
}

/// A process that logs all there is, with its standard output in a file.
fn loud(mut command: Command, place: &Place, name: &str, format: &str) -> Command {
    command.args(["--log", "trace", "--log-format", format]);
    command.stdout(File::create(place.folder().join(name)).unwrap());
    command
}

/// Has jobs of every kind come and go in a queue, with the word in all of them.
fn jobs(server: &Server, client: &str, operator: &str, word: &str, queue: &str) {
    let of = |mut job: Value| {
        job["queue"] = queue.into();
        job
    };
    let post = |body: Value| server.with(client, "POST", "/jobs", &of(body).to_string()).accepted();
    let until = |id: &str, status: &str| {
        let look = || server.with(client, "GET", &format!("/jobs/{id}?waitSeconds=5"), "").json();
        crate::worker::eventually(&format!("{id} is {status}"), || Some(look()).filter(|job| job["status"] == status));
    };
    let retry = json!({"baseSeconds": 0.01});
    let key = format!("{word}-{queue}");
    let echoed = post(json!({"jobType": "orchestrix.echo", "payload": {word: [word]}, "idempotencyKey": key}));
    until(&echoed, "COMPLETED");
    let result = server.with(client, "GET", &format!("/jobs/{echoed}/result"), "").json();
    assert_eq!(result, json!({"result": {word: [word]}}), "it was there to be seen");
    server
        .with(client, "POST", "/jobs", &json!({"jobType": "orchestrix.echo", "idempotencyKey": key}).to_string())
        .problem(422, "idempotency_key_reused");
    let batch = [1, 2].map(|_| of(json!({"jobType": "orchestrix.echo", "payload": word})));
    let batch = json!({"jobs": batch});
    let batch = server.with(client, "POST", "/jobs/batch", &batch.to_string()).json();
    for job in batch["jobs"].as_array().unwrap() {
        until(job["jobId"].as_str().unwrap(), "COMPLETED");
    }
    let again = json!({"message": word, "untilAttempt": 3});
    until(&post(json!({"jobType": "orchestrix.fail", "payload": again, "retry": retry})), "COMPLETED");
    let gone = json!({"message": word, "retryable": false});
    let dead = post(json!({"jobType": "orchestrix.fail", "payload": gone}));
    until(&dead, "FAILED");
    // Payloads that their handlers cannot read.
    for (kind, payload) in [
        ("orchestrix.sleep", json!({"seconds": word})),
        ("orchestrix.sleep", json!({word: 1})),
        ("orchestrix.http", json!({"url": word})),
        ("orchestrix.command", json!({"program": word, "args": [word]})),
    ] {
        until(&post(json!({"jobType": kind, "payload": payload, "maxAttempts": 1})), "FAILED");
    }
    let command = json!({"program": "cat", "stdin": word, "env": {"CANARY": word}});
    until(&post(json!({"jobType": "orchestrix.command", "payload": command})), "COMPLETED");
    let call = json!({"url": format!("http://{}/jobs?{word}", server.address), "method": "POST", "body": word,
                      "headers": {"authorization": format!("Bearer {word}"), "content-type": "application/json"}});
    until(&post(json!({"jobType": "orchestrix.http", "payload": call, "maxAttempts": 1})), "FAILED");

    // Operators act.
    let act = |what: &str, body: Value| {
        let (method, path) = what.split_once(' ').unwrap();
        let answer = server.with(operator, method, path, &body.to_string());
        assert!(answer.status < 300, "{what}: {answer:?}");
        answer
    };
    act(&format!("POST /admin/jobs/{dead}/retry"), json!({}));
    until(&dead, "FAILED");
    let schedule = json!({"everySeconds": 3600, "job": of(json!({"jobType": "orchestrix.echo", "payload": word}))});
    act("PUT /schedules/s", schedule);
    let fired = act("POST /schedules/s/trigger", json!({})).json();
    until(fired["jobId"].as_str().unwrap(), "COMPLETED");
    act("POST /admin/dlq/redrive", json!({"jobIds": [dead]}));
    until(&dead, "FAILED");
    act(&format!("GET /admin/jobs/{dead}"), json!({}));
}

/// Does a job by hand, with the word in its checkpoint and its result.
fn by_hand(server: &Server, client: &str, worker: &str, word: &str) {
    let body = json!({"jobType": "by-hand", "payload": word}).to_string();
    server.with(client, "POST", "/jobs", &body).accepted();
    let ask = json!({"workerId": "hand", "queues": ["*"], "jobTypes": ["by-hand"], "max": 1, "waitSeconds": 30});
    let leased = server.with(worker, "POST", "/worker/leases", &ask.to_string()).json();
    let token = leased["leases"][0]["leaseToken"].as_str().unwrap().to_owned();
    let tell = |what: &str, body: &str| server.with(worker, "POST", &format!("/worker/leases/{token}/{what}"), body);
    assert_eq!(tell("progress", &json!({"percent": 5, "checkpoint": {word: word}}).to_string()).status, 200);
    assert_eq!(tell("complete", &format!("{{\"result\": {word}")).status, 400);
    assert_eq!(tell("complete", &json!({"result": word}).to_string()).status, 200);
    assert_eq!(tell("complete", &json!({"result": [word]}).to_string()).status, 409);
}

/// Asks what is no request, with the word in it.
fn nonsense(server: &Server, client: &str, word: &str) {
    for body in [
        format!("{{\"jobType\": {word}"),
        json!({"jobType": "t", word: word}).to_string(),
        json!({"jobType": [word], "priority": word, "runAt": word, "queue": format!("{word} {word}")}).to_string(),
        json!({"jobType": "t", "payload": word.repeat(60_000)}).to_string(),
        word.repeat(100_000),
    ] {
        assert!(server.with(client, "POST", "/jobs", &body).status >= 400);
    }
    for path in [format!("/jobs/{word}"), format!("/{word}"), format!("/schedules?limit={word}&{word}={word}")] {
        let answer = server.with(client, "GET", &path, "");
        assert!(answer.status >= 400, "{path}: {answer:?}");
    }
    // Keys that are none, in all the ways in which they can be.
    for authorization in
        [word.to_owned(), format!("Bearer {word}"), format!("Basic {word}"), format!("Bearer {}", forged(client))]
    {
        let headers = [("authorization", authorization.as_str()), ("cookie", word), ("x-api-key", word)];
        server.call("GET", "/schedules", &headers, "").problem(401, "unauthenticated");
    }
    // Nor are these HTTP.
    for bytes in [format!("{word}\r\n\r\n"), format!("GET / HTTP/1.1\r\n{word} {word}\r\n\r\n")] {
        assert_eq!(server.raw(bytes.as_bytes()).status, 400);
    }
}

fn nothing_is_said(place: &Place, word: &str, format: &str) {
    let [client, worker, operator, admin] = ["client", "worker", "operator", "admin"].map(|role| place.key(role, &[]));
    let server = Server::of(loud(place.command(&["server", "--listen", "127.0.0.1:0"]), place, "server", format));
    let url = format!("http://{}", server.address);
    let flags = ["worker", "--allow-command", "cat", "--allow-private-http"];
    let direct = place.command(&[&flags[..], &["--queues", "direct"]].concat());
    let direct = Running::of(loud(direct, place, "direct", format));
    let mut remote = bare(&[&flags[..], &["--queues", "remote", "--server", &url]].concat());
    remote.env("ORCHESTRIX_API_KEY", &worker);
    let remote = Running::of(loud(remote, place, "remote", format));

    for queue in ["direct", "remote"] {
        jobs(&server, &client, &operator, word, queue);
    }
    by_hand(&server, &client, &worker, word);
    nonsense(&server, &client, word);
    let ask = |key: &str, method: &str, path: &str| server.with(key, method, path, "").status;
    ways::in_paths(ask, [&client, &worker, &operator, &admin], word);
    ways::by_sockets(|| server.connect(), &client, word);
    let mut heard = Heard::default();
    let log = ["--log", "trace", "--log-format", format];
    let payload = json!(word).to_string();
    for (key, arguments) in [
        (&client, &["jobs", "enqueue", "t", "--payload", &payload, "--idempotency-key", "k"][..]),
        (&operator, &["jobs", "list"]),
        (&admin, &["keys", "list"]),
        (&client, &["keys", "list"]),
    ] {
        heard.ran(over(&server, key, &[arguments, &log].concat()));
    }
    heard.ran(over(&server, word, &[&["jobs", "list"][..], &log].concat()).ended(1, "key"));
    heard.ran(place.run(&[&["jobs", "list"][..], &log].concat()).done());
    heard.ran(place.run(&[&["doctor"][..], &log].concat()));

    let said = [direct.last_words(), remote.last_words(), server.last_words()];
    // All there is was said.
    for (lines, text) in said.iter().zip(["attempt started", "attempt started", "answered"]) {
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
    heard.0.extend(said.into_iter().flatten());
    heard.0.extend(["server", "direct", "remote"].map(|name| fs::read_to_string(place.folder().join(name)).unwrap()));
    let secrets = [&client, &worker, &operator, &admin].map(|key| secret_of(key));
    heard.holds_none(&[&[word][..], &secrets, &[secret_of(&forged(&client))]].concat());
}

#[test]
fn a_log_for_people_holds_no_payload_and_no_secret() {
    nothing_is_said(&Place::sqlite(), &word(), "pretty");
}

#[test]
fn a_log_for_programs_holds_no_payload_and_no_secret_and_no_password() {
    let (database, word) = (TestDatabase::create("canary").unwrap(), word());
    let (scheme, rest) = database.url().split_once("://").unwrap();
    let (user, host) = rest.split_once('@').unwrap();
    // The server lets everybody in, so any password will do.
    let user = user.split(':').next().unwrap();
    nothing_is_said(&Place::at(format!("{scheme}://{user}:{word}@{host}")), &word, "json");
}

#[test]
fn a_password_is_not_said_of_a_database_that_is_away_or_an_address_that_is_none() {
    let (place, word) = (Place::sqlite(), word());
    let mut heard = Heard::default();
    for (url, code) in [
        (format!("postgres://me:{word}@127.0.0.1:1/db"), 5),
        (format!("postgres://me:{word}@127.0.0.1:port/db"), 2),
        (format!("postgres://me:{word}@[::/db?{word}"), 2),
        (format!("mysql://me:{word}@127.0.0.1/db"), 2),
        (format!("host=127.0.0.1 password={word} nonsense"), 2),
    ] {
        for command in [&["jobs", "list"][..], &["server", "--listen", "127.0.0.1:0"], &["worker"], &["migrate"]] {
            let flags = ["--connect-timeout", "50ms", "--log", "trace"];
            let mut process = bare(&[command, &flags].concat());
            let ran = Ran::of(process.env("ORCHESTRIX_DATABASE_URL", &url).current_dir(place.folder()));
            assert_eq!(ran.code, Some(code), "{url}: {ran:?}");
            heard.ran(ran);
        }
        fs::write(place.folder().join("orchestrix.toml"), format!("database = {url:?}\n")).unwrap();
        heard.ran(Ran::of(bare(&["jobs", "list", "--connect-timeout", "50ms"]).current_dir(place.folder())));
        fs::remove_file(place.folder().join("orchestrix.toml")).unwrap();
    }
    heard.holds_none(&[&word]);
}
