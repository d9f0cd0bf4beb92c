//! WebSockets and event streams: API keys, quotas, slow subscribers and resyncs.

mod tenants;

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, NewJob, Queue, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_server::{App, Auth, InProcessApi, ServerOptions, serve};
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

/// The longest wait of any test.
const TIMEOUT: Duration = Duration::from_secs(40);

/// A server that listens until the test ends.
struct LiveServer {
    store: Arc<dyn Store>,
    local: InProcessApi,
    address: SocketAddr,
}

impl LiveServer {
    async fn new(options: ServerOptions) -> Self {
        Self::with_store(MemoryStore::new(), options).await
    }

    async fn with_store(store: MemoryStore, options: ServerOptions) -> Self {
        let store: Arc<dyn Store> = Arc::new(store);
        let local = InProcessApi::new(Arc::clone(&store), "local:test");
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

    /// Creates an API key. Returns the key and its id.
    async fn create_key(&self, role: &str) -> (String, String) {
        let created = self.call("POST", "/admin/keys", json!({"name": "n", "role": role})).await;
        let key = created["key"].as_str().unwrap().to_owned();
        let id = key.split('_').nth(1).unwrap().to_owned();
        (key, id)
    }

    /// Enqueues a job.
    async fn enqueue_job(&self) -> String {
        self.store.enqueue_job(NewJob::new(JobType::new("t").unwrap())).await.unwrap().id.to_string()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Opens a WebSocket with this header. Returns the status if the server refuses.
    fn open_socket(&self, name: header::HeaderName, value: &str) -> Result<(WebSocket<TcpStream>, Response), u16> {
        let mut request = format!("ws://{}/ws", self.address).into_client_request().unwrap();
        request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        let refused = |error| match error {
            tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response)) => response.status().as_u16(),
            error => panic!("{error}"),
        };
        block_in_place(|| tungstenite::client(request, self.connect()).map_err(refused))
    }

    /// Opens the event stream of a job. Returns the status and the stream.
    fn open_events(&self, job: &str, key: Option<&str>) -> (u16, BufReader<TcpStream>) {
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

    /// Retries until the quota has a free subscription.
    async fn open_events_when_free(&self, job: &str, key: Option<&str>) -> BufReader<TcpStream> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.open_events(job, key) {
                (200, stream) => return stream,
                (status, _) => assert_eq!(status, 429),
            }
            assert!(Instant::now() < deadline, "the quota stayed full");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

// Keys are rechecked at every ping. A test that does not read a socket for three pings loses it, so the interval is
// not too short.
fn with_keys() -> ServerOptions {
    ServerOptions { auth: Auth::Keys, ping_interval: Duration::from_secs(2), ..ServerOptions::default() }
}

/// The next message other than a ping.
fn read(socket: &mut WebSocket<TcpStream>) -> Message {
    let deadline = Instant::now() + TIMEOUT;
    block_in_place(|| {
        loop {
            assert!(Instant::now() < deadline, "only pings arrived");
            match socket.read().unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    })
}

fn next_message(socket: &mut WebSocket<TcpStream>) -> Value {
    serde_json::from_str(read(socket).to_text().unwrap()).unwrap()
}

fn close_code(socket: &mut WebSocket<TcpStream>) -> Option<CloseCode> {
    match read(socket) {
        Message::Close(frame) => frame.map(|frame| frame.code),
        message => panic!("{message}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_key_ends_its_subscriptions() {
    let server = LiveServer::new(with_keys()).await;
    let (job, (key, id), (other, _)) =
        (server.enqueue_job().await, server.create_key("client").await, server.create_key("client").await);
    let bearer = |key: &str| format!("Bearer {key}");
    let (mut socket, _) = server.open_socket(header::AUTHORIZATION, &bearer(&key)).unwrap();
    let (mut other_socket, _) = server.open_socket(header::AUTHORIZATION, &bearer(&other)).unwrap();
    let (status, mut events) = server.open_events(&job, Some(&key));
    assert_eq!(status, 200);
    server.local.call("DELETE".parse().unwrap(), &format!("/admin/keys/{id}"), None).await.unwrap();
    block_in_place(|| {
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| {
                assert_eq!(close_code(&mut socket), Some(CloseCode::Policy));
                let mut rest = String::new();
                events.read_to_string(&mut rest).unwrap();
                assert!(rest.ends_with("0\r\n\r\n"), "the chunked response ends properly");
            });
            // Meanwhile the other socket answers pings.
            other_socket.get_ref().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            while !closing.is_finished() {
                match other_socket.read() {
                    Ok(message) => assert!(message.is_ping(), "{message}"),
                    Err(tungstenite::Error::Io(error)) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    Err(error) => panic!("{error}"),
                }
            }
            other_socket.get_ref().set_read_timeout(Some(TIMEOUT)).unwrap();
        });
    });
    block_in_place(|| other_socket.send(Message::text("{}"))).unwrap();
    assert_eq!(next_message(&mut other_socket)["code"], "validation_failed", "the other key is still valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_expiry_of_a_key_ends_its_subscriptions() {
    let server = LiveServer::new(with_keys()).await;
    let end = orchestrix_core::Timestamp::now() + Duration::from_secs(2);
    let created = server.call("POST", "/admin/keys", json!({"name": "n", "role": "client", "expiresAt": end})).await;
    let bearer = format!("Bearer {}", created["key"].as_str().unwrap());
    let (mut socket, _) = server.open_socket(header::AUTHORIZATION, &bearer).unwrap();
    assert_eq!(close_code(&mut socket), Some(CloseCode::Policy));
    assert!(orchestrix_core::Timestamp::now() >= end);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_sends_its_key_as_a_subprotocol_and_the_response_does_not_repeat_it() {
    let server = LiveServer::new(with_keys()).await;
    let (key, id) = server.create_key("client").await;
    let open = |protocols: &str| server.open_socket(header::SEC_WEBSOCKET_PROTOCOL, protocols);
    let (mut socket, response) = open(&format!("orchestrix, orchestrix.key.{key}")).unwrap();
    assert_eq!(response.headers()[header::SEC_WEBSOCKET_PROTOCOL], "orchestrix");
    assert!(response.headers().values().all(|value| !value.to_str().unwrap().contains(&key)));
    for bad in ["orchestrix", "orchestrix, orchestrix.key.ox_nonsense", &format!("orchestrix, orchestrix.key.{key}0")] {
        assert_eq!(open(bad).err(), Some(401), "{bad}");
    }
    let (worker, _) = server.create_key("worker").await;
    assert_eq!(open(&format!("orchestrix, orchestrix.key.{worker}")).err(), Some(403));
    server.local.call("DELETE".parse().unwrap(), &format!("/admin/keys/{id}"), None).await.unwrap();
    assert_eq!(close_code(&mut socket), Some(CloseCode::Policy));
    // Failed attempts count as with the Authorization header.
    let wrong = format!("orchestrix, orchestrix.key.ox_{id}_{}", "0".repeat(64));
    let statuses: Vec<Option<u16>> = (0..40).map(|_| open(&wrong).err()).collect();
    assert_eq!(statuses.last(), Some(&Some(429)), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quota_of_one_key_does_not_affect_other_keys() {
    let server =
        LiveServer::new(ServerOptions { max_subscriptions: 4, max_subscriptions_per_key: 2, ..with_keys() }).await;
    let (job, (busy, _), (other, _)) =
        (server.enqueue_job().await, server.create_key("client").await, server.create_key("client").await);
    let first = server.open_events(&job, Some(&busy));
    let second = server.open_socket(header::AUTHORIZATION, &format!("Bearer {busy}")).unwrap();
    assert_eq!(first.0, 200);
    assert_eq!(server.open_events(&job, Some(&busy)).0, 429);
    let others = [server.open_events(&job, Some(&other)), server.open_events(&job, Some(&other))];
    assert!(others.iter().all(|(status, _)| *status == 200));
    drop(second);
    server.open_events_when_free(&job, Some(&busy)).await;
    drop((first, others));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_that_is_not_read_is_closed() {
    let options =
        ServerOptions { max_subscriptions: 1, write_timeout: Duration::from_millis(500), ..ServerOptions::default() };
    let server = LiveServer::new(options).await;
    let job = server.enqueue_job().await;
    let claimed = server.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1)).await.unwrap();
    // More than all network buffers hold.
    let line = LogLine { at: None, level: LogLevel::Info, message: "x".repeat(4_000) };
    for _ in 0..10 {
        server.store.append_logs(claimed[0].token, vec![line.clone(); 1_000]).await.unwrap();
    }
    let (status, silent) = server.open_events(&job, None);
    assert_eq!(status, 200);
    assert_eq!(server.open_events(&job, None).0, 429);
    server.open_events_when_free(&job, None).await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_does_not_answer_pings_is_closed() {
    let server = LiveServer::new(ServerOptions {
        max_subscriptions: 1,
        ping_interval: Duration::from_millis(100),
        ..Default::default()
    })
    .await;
    let job = server.enqueue_job().await;
    let (silent, _) = server.open_socket(header::USER_AGENT, "test").unwrap();
    assert_eq!(server.open_events(&job, None).0, 429);
    server.open_events_when_free(&job, None).await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_is_not_read_is_closed() {
    // Only the subscription's own timeout ends the connection within the test: the other two limits on a silent client
    // are longer.
    let server = LiveServer::new(ServerOptions {
        max_subscriptions: 1,
        subscription_write_timeout: Duration::from_millis(300),
        write_timeout: 10 * TIMEOUT,
        ping_interval: 10 * TIMEOUT,
        ..Default::default()
    })
    .await;
    let job = server.enqueue_job().await;
    let (mut silent, _) = server.open_socket(header::USER_AGENT, "test").unwrap();
    block_in_place(|| silent.send(Message::text(r#"{"subscribe": {"all": true}}"#))).unwrap();
    assert_eq!(next_message(&mut silent)["jobId"], *job);
    assert_eq!(server.open_events(&job, None).0, 429);
    // More than all network buffers hold.
    let long = NewJob::new(JobType::new("x".repeat(128)).unwrap());
    let long = NewJob { queue: Queue::new("q".repeat(128)).unwrap(), ..long };
    for _ in 0..4 {
        server.store.enqueue_jobs(vec![long.clone(); MAX_CHANGES]).await.unwrap();
    }
    server.open_events_when_free(&job, None).await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_changes_at_once_cause_lagged_and_a_resync() {
    // The clock stands still, so that all changes have the same time.
    let clock = Arc::new(ManualClock::new(orchestrix_core::Timestamp::now()));
    let store = MemoryStore::with_clock(clock as Arc<dyn Clock>);
    let server = LiveServer::with_store(store, ServerOptions::default()).await;
    let job = server.enqueue_job().await;
    let claimed = server.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1)).await.unwrap();
    let (mut socket, _) = server.open_socket(header::USER_AGENT, "test").unwrap();
    block_in_place(|| socket.send(Message::text(r#"{"subscribe": {"all": true}}"#))).unwrap();
    let mut read_until = |is: &dyn Fn(&Value) -> bool| while !is(&next_message(&mut socket)) {};
    read_until(&|message| message["jobId"] == *job && message["status"] == "RUNNING");
    for _ in 0..=ENQUEUED_FACTOR {
        server.store.enqueue_jobs(vec![NewJob::new(JobType::new("x").unwrap()); MAX_CHANGES]).await.unwrap();
    }
    read_until(&|message| message["event"] == "lagged");
    read_until(&|message| message["jobId"] == *job && message["status"] == "RUNNING");
    read_until(&|message| message["event"] == "synced");
    server
        .store
        .finish_attempts(vec![OutcomeReport { token: claimed[0].token, outcome: Outcome::DONE }])
        .await
        .unwrap();
    read_until(&|message| message["jobId"] == *job && message["status"] == "COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limited_subscriber_still_receives_job_changes() {
    let server = LiveServer::new(ServerOptions::default()).await;
    let start = Instant::now();
    let (mut socket, _) = server.open_socket(header::USER_AGENT, "test").unwrap();
    // The requests cost 20,101 tokens. The burst covers 10,000, and the rate limit of 2,000 a second the rest.
    block_in_place(|| {
        for _ in 0..100 {
            socket.send(Message::text(r#"{"subscribe": {"all": true}}"#)).unwrap();
        }
        socket.send(Message::text("{")).unwrap();
    });
    let job = server.enqueue_job().await;
    assert_eq!(next_message(&mut socket)["jobId"], *job, "before the response to the last request");
    assert_eq!(next_message(&mut socket)["event"], "error");
    assert!(start.elapsed() >= Duration::from_secs(5), "the last request was handled after {:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnecting_subscriber_receives_missed_changes_and_whether_they_are_complete() {
    let server = LiveServer::new(ServerOptions::default()).await;
    let subscribe = |subscription: Value| {
        let (mut socket, _) = server.open_socket(header::USER_AGENT, "test").unwrap();
        block_in_place(|| socket.send(Message::text(json!({ "subscribe": subscription }).to_string()))).unwrap();
        socket
    };
    let mut socket = subscribe(json!({"queues": ["default"]}));
    let job = server.enqueue_job().await;
    let last = next_message(&mut socket);
    assert_eq!((&last["jobId"], &last["status"]), (&json!(job), &json!("PENDING")));
    drop(socket);
    let claimed = server.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1)).await.unwrap();
    server
        .store
        .finish_attempts(vec![OutcomeReport { token: claimed[0].token, outcome: Outcome::DONE }])
        .await
        .unwrap();
    let mut socket = subscribe(json!({"queues": ["default"], "since": last["at"]}));
    let end = next_message(&mut socket);
    assert_eq!((&end["jobId"], &end["status"]), (&json!(job), &json!("COMPLETED")));
    assert_eq!(next_message(&mut socket), json!({"event": "synced", "complete": true}));
    let mut socket = subscribe(json!({"all": true, "since": "2026-01-01T00:00:00Z"}));
    assert_eq!(next_message(&mut socket)["status"], "COMPLETED");
    let synced = next_message(&mut socket);
    assert_eq!(
        (&synced["event"], &synced["complete"]),
        (&json!("synced"), &json!(false)),
        "the replay buffer does not reach that far back"
    );
    assert!(synced["since"].as_str().unwrap() > "2026-01-01T00:00:00Z", "{synced}");
    block_in_place(|| socket.send(Message::text(r#"{"subscribe": {"all": true, "since": "soon"}}"#))).unwrap();
    assert_eq!(next_message(&mut socket)["code"], "validation_failed");
}
