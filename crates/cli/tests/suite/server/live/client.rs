//! Clients of live updates: WebSocket and server-sent events.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket, protocol::frame::coding::CloseCode};

use crate::server::process::{ServerProcess, TIMEOUT};

pub(super) struct WebSocketClient {
    socket: WebSocket<TcpStream>,
    /// Every status event so far.
    pub(super) status_events: Vec<Value>,
    /// The last `synced` event that was not yet read.
    synced: Option<Value>,
}

impl WebSocketClient {
    pub(super) fn open(server: &ServerProcess) -> Self {
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (socket, _) = tungstenite::client(format!("ws://{}/ws", server.address), stream).unwrap();
        Self { socket, status_events: Vec::new(), synced: None }
    }

    /// Opens a socket and subscribes.
    pub(super) fn subscribed(server: &ServerProcess, wanted: &Value) -> Self {
        let mut socket = Self::open(server);
        socket.send(&json!({"subscribe": wanted}).to_string());
        socket.ping();
        socket
    }

    pub(super) fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    /// Waits until the server has processed everything sent so far.
    pub(super) fn ping(&mut self) {
        self.socket.send(Message::Ping(Default::default())).unwrap();
        loop {
            match self.socket.read().unwrap() {
                Message::Pong(_) => return,
                Message::Text(text) => drop(self.record(&text)),
                _ => {}
            }
        }
    }

    /// The next message.
    pub(super) fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return self.record(&text);
            }
        }
    }

    fn record(&mut self, text: &str) -> Value {
        let event: Value = serde_json::from_str(text).unwrap();
        match event["event"].as_str() {
            Some("status") => self.status_events.push(event.clone()),
            Some("synced") => self.synced = Some(event.clone()),
            _ => {}
        }
        event
    }

    /// Returns the event with this status of a job, whether it came already or comes now.
    pub(super) fn wait_for_status(&mut self, id: &str, status: &str) -> Value {
        let is = |event: &Value| event["jobId"] == id && event["status"] == status;
        if let Some(event) = self.status_events.iter().find(|event| is(event)) {
            return event.clone();
        }
        loop {
            let event = self.next();
            if is(&event) {
                return event;
            }
        }
    }

    /// Waits for `synced`.
    pub(super) fn wait_until_synced(&mut self) -> Value {
        loop {
            if let Some(synced) = self.synced.take() {
                return synced;
            }
            self.next();
        }
    }

    /// Waits until this is the job's latest status, after at least one other.
    pub(super) fn wait_for_new_status(&mut self, id: &str, status: &str) {
        while self.statuses(id).last() != Some(&status) || self.statuses(id).len() < 2 {
            self.next();
        }
    }

    /// The statuses of a job so far.
    pub(super) fn statuses(&self, id: &str) -> Vec<&str> {
        self.status_events
            .iter()
            .filter(|event| event["jobId"] == id)
            .filter_map(|event| event["status"].as_str())
            .collect()
    }

    /// Waits for the close frame; returns its code.
    pub(super) fn wait_for_close(&mut self) -> Option<u16> {
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => return frame.map(|frame| CloseCode::into(frame.code)),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// The server-sent events of one job.
pub(super) struct EventStream {
    lines: std::io::Lines<BufReader<TcpStream>>,
    pub(super) last_id: String,
}

impl EventStream {
    pub(super) fn open(server: &ServerProcess, id: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        let request =
            format!("GET /jobs/{id}/events HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{last}\r\n", server.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        let mut head = lines.by_ref().map(Result::unwrap).take_while(|line| !line.is_empty());
        assert_eq!(head.next().unwrap(), "HTTP/1.1 200 OK");
        assert!(head.any(|line| line == "content-type: text/event-stream"));
        Self { lines, last_id: String::new() }
    }

    fn read(&mut self) -> Option<(String, Value)> {
        let mut kind = None;
        let mut data = None;
        // Other lines are the chunk sizes of the response.
        for line in self.lines.by_ref().map(Result::unwrap) {
            match line.split_once(": ") {
                Some(("event", text)) => kind = Some(text.to_owned()),
                Some(("data", text)) => data = Some(serde_json::from_str(text).unwrap()),
                Some(("id", text)) => self.last_id = text.to_owned(),
                _ if line.is_empty() && data.is_some() => return Some((kind?, data?)),
                _ => {}
            }
        }
        None
    }

    /// The next event, which must be of this kind.
    pub(super) fn next(&mut self, kind: &str) -> Value {
        let (event, data) = self.read().expect("another event");
        assert_eq!(event, kind, "{data}");
        data
    }

    /// Counts the events until the stream ends.
    pub(super) fn count_until_end(&mut self) -> usize {
        std::iter::from_fn(|| self.read()).count()
    }
}
