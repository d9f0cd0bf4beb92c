//! Those who follow jobs with keys, or do not listen.

mod tenants;

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, NewJob, Queue, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_server::{App, Auth, Local, ServerOptions, serve};
use orchestrix_store::{
    ClaimRequest, Clock, LogLevel, LogLine, ManualClock, Outcome, OutcomeReport, Store,
    changes::{ENQUEUED_FACTOR, MAX_CHANGES},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::block_in_place};
use tungstenite::{
    Message, WebSocket,
    client::IntoClientRequest,
    handshake::client::Response,
    http::{HeaderValue, header},
    protocol::frame::coding::CloseCode,
};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(40);

/// A server on its socket, until the test ends.
struct Place {
    store: Arc<dyn Store>,
    local: Local,
    address: SocketAddr,
}

impl Place {
    async fn new(options: ServerOptions) -> Self {
        Self::on(MemoryStore::new(), options).await
    }

    async fn on(store: MemoryStore, options: ServerOptions) -> Self {
        let store: Arc<dyn Store> = Arc::new(store);
        let local = Local::new(Arc::clone(&store), "local:test");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(App::new(Arc::clone(&store), options), listener, std::future::pending()));
        Self { store, local, address }
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, body) = self.local.call(method.parse().unwrap(), path, Some(body.to_string())).await.unwrap();
        assert!(status.is_success(), "{status}");
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// A new key, and its id.
    async fn key(&self, role: &str) -> (String, String) {
        let made = self.call("POST", "/admin/keys", json!({"name": "n", "role": role})).await;
        let key = made["key"].as_str().unwrap().to_owned();
        let id = key.split('_').nth(1).unwrap().to_owned();
        (key, id)
    }

    async fn job(&self) -> String {
        self.store.enqueue_job(NewJob::new(JobType::new("t").unwrap())).await.unwrap().id.to_string()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A WebSocket that is asked for with this header.
    fn socket(&self, name: header::HeaderName, value: &str) -> Result<(WebSocket<TcpStream>, Response), u16> {
        let mut request = format!("ws://{}/ws", self.address).into_client_request().unwrap();
        request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        let refused = |error| match error {
            tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response)) => response.status().as_u16(),
            error => panic!("{error}"),
        };
        block_in_place(|| tungstenite::client(request, self.connect()).map_err(refused))
    }

    /// Asks for the events of a job; with which status it is answered.
    fn events(&self, job: &str, key: Option<&str>) -> (u16, BufReader<TcpStream>) {
        block_in_place(|| {
            let mut stream = self.connect();
            let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
            write!(
                stream,
                "GET /jobs/{job}/events HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{key}\r\n",
                self.address
            )
            .unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            (line.split(' ').nth(1).unwrap().parse().unwrap(), stream)
        })
    }

    /// Waits until there is a place.
    async fn let_in(&self, job: &str, key: Option<&str>) -> BufReader<TcpStream> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.events(job, key) {
                (200, stream) => return stream,
                (status, _) => assert_eq!(status, 429),
            }
            assert!(Instant::now() < deadline, "no place became free");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

// Keys are looked at as often as sockets are pinged, and a socket that a test does not read for three pings is cut off.
fn with_keys() -> ServerOptions {
    ServerOptions { auth: Auth::Keys, live_ping: Duration::from_secs(2), ..ServerOptions::default() }
}

/// The next message that is one, and no ping.
fn read(socket: &mut WebSocket<TcpStream>) -> Message {
    let deadline = Instant::now() + PATIENCE;
    block_in_place(|| {
        loop {
            assert!(Instant::now() < deadline, "nothing is said but that the server is there");
            match socket.read().unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    })
}

fn next(socket: &mut WebSocket<TcpStream>) -> Value {
    serde_json::from_str(read(socket).to_text().unwrap()).unwrap()
}

fn closed(socket: &mut WebSocket<TcpStream>) -> Option<CloseCode> {
    match read(socket) {
        Message::Close(frame) => frame.map(|frame| frame.code),
        message => panic!("{message}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_taken_back_follows_nothing_any_more() {
    let place = Place::new(with_keys()).await;
    let (job, (key, id), (other, _)) = (place.job().await, place.key("client").await, place.key("client").await);
    let bearer = |key: &str| format!("Bearer {key}");
    let (mut socket, _) = place.socket(header::AUTHORIZATION, &bearer(&key)).unwrap();
    let (mut stays, _) = place.socket(header::AUTHORIZATION, &bearer(&other)).unwrap();
    let (status, mut events) = place.events(&job, Some(&key));
    assert_eq!(status, 200);
    place.local.call("DELETE".parse().unwrap(), &format!("/admin/keys/{id}"), None).await.unwrap();
    block_in_place(|| {
        std::thread::scope(|scope| {
            let ends = scope.spawn(|| {
                assert_eq!(closed(&mut socket), Some(CloseCode::Policy));
                let mut rest = String::new();
                events.read_to_string(&mut rest).unwrap();
                assert!(rest.ends_with("0\r\n\r\n"), "the answer ends as it should");
            });
            // Meanwhile the other answers when it is asked whether it is there.
            stays.get_ref().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            while !ends.is_finished() {
                match stays.read() {
                    Ok(message) => assert!(message.is_ping(), "{message}"),
                    Err(tungstenite::Error::Io(error)) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    Err(error) => panic!("{error}"),
                }
            }
            stays.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        });
    });
    block_in_place(|| stays.send(Message::text("{}"))).unwrap();
    assert_eq!(next(&mut stays)["code"], "validation_failed", "another's key is as good as before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_ends_follows_nothing_any_more() {
    let place = Place::new(with_keys()).await;
    let end = orchestrix_core::Timestamp::now() + Duration::from_secs(2);
    let made = place.call("POST", "/admin/keys", json!({"name": "n", "role": "client", "expiresAt": end})).await;
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());
    let (mut socket, _) = place.socket(header::AUTHORIZATION, &bearer).unwrap();
    assert_eq!(closed(&mut socket), Some(CloseCode::Policy));
    assert!(orchestrix_core::Timestamp::now() >= end);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_its_key_as_a_protocol_and_is_not_answered_with_it() {
    let place = Place::new(with_keys()).await;
    let (key, id) = place.key("client").await;
    let ask = |protocols: &str| place.socket(header::SEC_WEBSOCKET_PROTOCOL, protocols);
    let (mut socket, response) = ask(&format!("orchestrix, orchestrix.key.{key}")).unwrap();
    assert_eq!(response.headers()[header::SEC_WEBSOCKET_PROTOCOL], "orchestrix");
    assert!(response.headers().values().all(|value| !value.to_str().unwrap().contains(&key)));
    for bad in ["orchestrix", "orchestrix, orchestrix.key.ox_nonsense", &format!("orchestrix, orchestrix.key.{key}0")] {
        assert_eq!(ask(bad).err(), Some(401), "{bad}");
    }
    let (worker, _) = place.key("worker").await;
    assert_eq!(ask(&format!("orchestrix, orchestrix.key.{worker}")).err(), Some(403));
    place.local.call("DELETE".parse().unwrap(), &format!("/admin/keys/{id}"), None).await.unwrap();
    assert_eq!(closed(&mut socket), Some(CloseCode::Policy));
    // Wrong ones are counted like those in the other header.
    let wrong = format!("orchestrix, orchestrix.key.ox_{id}_{}", "0".repeat(64));
    let statuses: Vec<Option<u16>> = (0..40).map(|_| ask(&wrong).err()).collect();
    assert_eq!(statuses.last(), Some(&Some(429)), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_does_not_take_the_places_of_others() {
    let place = Place::new(ServerOptions { live: 4, live_share: 2, ..with_keys() }).await;
    let (job, (greedy, _), (other, _)) = (place.job().await, place.key("client").await, place.key("client").await);
    let first = place.events(&job, Some(&greedy));
    let second = place.socket(header::AUTHORIZATION, &format!("Bearer {greedy}")).unwrap();
    assert_eq!(first.0, 200);
    assert_eq!(place.events(&job, Some(&greedy)).0, 429);
    let others = [place.events(&job, Some(&other)), place.events(&job, Some(&other))];
    assert!(others.iter().all(|(status, _)| *status == 200));
    drop(second);
    place.let_in(&job, Some(&greedy)).await;
    drop((first, others));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_takes_nothing_of_his_events_loses_his_place() {
    let options = ServerOptions { live: 1, write_timeout: Duration::from_millis(500), ..ServerOptions::default() };
    let place = Place::new(options).await;
    let job = place.job().await;
    let claimed = place.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1)).await.unwrap();
    // More than all buffers between here and there hold.
    let line = LogLine { at: None, level: LogLevel::Info, message: "x".repeat(4_000) };
    for _ in 0..10 {
        place.store.append_logs(claimed[0].token, vec![line.clone(); 1_000]).await.unwrap();
    }
    let (status, silent) = place.events(&job, None);
    assert_eq!(status, 200);
    assert_eq!(place.events(&job, None).0, 429);
    place.let_in(&job, None).await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_does_not_say_that_he_is_there_loses_his_place() {
    let place =
        Place::new(ServerOptions { live: 1, live_ping: Duration::from_millis(100), ..Default::default() }).await;
    let job = place.job().await;
    let (silent, _) = place.socket(header::USER_AGENT, "test").unwrap();
    assert_eq!(place.events(&job, None).0, 429);
    place.let_in(&job, None).await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_takes_nothing_of_what_he_follows_loses_his_place() {
    let patience = Duration::from_millis(300);
    let place = Place::new(ServerOptions { live: 1, live_patience: patience, ..Default::default() }).await;
    let job = place.job().await;
    let (mut silent, _) = place.socket(header::USER_AGENT, "test").unwrap();
    block_in_place(|| silent.send(Message::text(r#"{"subscribe": {"all": true}}"#))).unwrap();
    assert_eq!(next(&mut silent)["jobId"], *job);
    assert_eq!(place.events(&job, None).0, 429);
    // More than all buffers between here and there hold.
    let long = NewJob::new(JobType::new("x".repeat(128)).unwrap());
    let long = NewJob { queue: Queue::new("q".repeat(128)).unwrap(), ..long };
    for _ in 0..4 {
        place.store.enqueue_jobs(vec![long.clone(); MAX_CHANGES]).await.unwrap();
    }
    place.let_in(&job, None).await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_at_once_is_told_as_a_lag_and_then_how_things_stand() {
    // The clock stands still, so that all of it is of one moment however long it takes.
    let clock = Arc::new(ManualClock::new(orchestrix_core::Timestamp::now()));
    let store = MemoryStore::with_clock(clock as Arc<dyn Clock>);
    let place = Place::on(store, ServerOptions::default()).await;
    let job = place.job().await;
    let claimed = place.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1)).await.unwrap();
    let (mut socket, _) = place.socket(header::USER_AGENT, "test").unwrap();
    block_in_place(|| socket.send(Message::text(r#"{"subscribe": {"all": true}}"#))).unwrap();
    let mut until = |is: &dyn Fn(&Value) -> bool| while !is(&next(&mut socket)) {};
    until(&|news| news["jobId"] == *job && news["status"] == "RUNNING");
    for _ in 0..=ENQUEUED_FACTOR {
        place.store.enqueue_jobs(vec![NewJob::new(JobType::new("x").unwrap()); MAX_CHANGES]).await.unwrap();
    }
    until(&|news| news["event"] == "lagged");
    until(&|news| news["jobId"] == *job && news["status"] == "RUNNING");
    until(&|news| news["event"] == "synced");
    place.store.finish_attempts(vec![OutcomeReport { token: claimed[0].token, outcome: Outcome::DONE }]).await.unwrap();
    until(&|news| news["jobId"] == *job && news["status"] == "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_asks_for_more_than_he_may_hears_of_jobs_meanwhile() {
    let place = Place::new(ServerOptions::default()).await;
    let (mut socket, _) = place.socket(header::USER_AGENT, "test").unwrap();
    // Each costs something, and all of them more than may be had in seconds.
    block_in_place(|| {
        for _ in 0..100 {
            socket.send(Message::text(r#"{"subscribe": {"all": true}}"#)).unwrap();
        }
        socket.send(Message::text("{")).unwrap();
    });
    let job = place.job().await;
    assert_eq!(next(&mut socket)["jobId"], *job, "before what was asked last is answered");
    assert_eq!(next(&mut socket)["event"], "error");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_back_hears_what_he_missed_and_that_this_is_all() {
    let place = Place::new(ServerOptions::default()).await;
    let follow = |wanted: Value| {
        let (mut socket, _) = place.socket(header::USER_AGENT, "test").unwrap();
        block_in_place(|| socket.send(Message::text(json!({ "subscribe": wanted }).to_string()))).unwrap();
        socket
    };
    let mut socket = follow(json!({"queues": ["default"]}));
    let job = place.job().await;
    let last = next(&mut socket);
    assert_eq!((&last["jobId"], &last["status"]), (&json!(job), &json!("PENDING")));
    drop(socket);
    let claimed = place.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1)).await.unwrap();
    place.store.finish_attempts(vec![OutcomeReport { token: claimed[0].token, outcome: Outcome::DONE }]).await.unwrap();
    let mut socket = follow(json!({"queues": ["default"], "since": last["at"]}));
    let end = next(&mut socket);
    assert_eq!((&end["jobId"], &end["status"]), (&json!(job), &json!("COMPLETED")));
    assert_eq!(next(&mut socket), json!({"event": "synced", "complete": true}));
    let mut socket = follow(json!({"all": true, "since": "2026-01-01T00:00:00Z"}));
    assert_eq!(next(&mut socket)["status"], "COMPLETED");
    let synced = next(&mut socket);
    assert_eq!((&synced["event"], &synced["complete"]), (&json!("synced"), &json!(false)), "that is too long ago");
    assert!(synced["since"].as_str().unwrap() > "2026-01-01T00:00:00Z", "{synced}");
    block_in_place(|| socket.send(Message::text(r#"{"subscribe": {"all": true, "since": "soon"}}"#))).unwrap();
    assert_eq!(next(&mut socket)["code"], "validation_failed");
}
