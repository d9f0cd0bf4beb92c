//! A proxy that records the messages which a store sends to its server.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A message from a client, as far as the tests need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// The parameters of a new connection, names and values.
    Startup(Vec<String>),
    /// Prepares a statement; the name is empty for an unnamed one.
    Parse { name: String, sql: String },
    /// Binds a prepared statement by its name.
    Bind { statement: String },
    /// A simple query.
    Query(String),
    /// The end of an exchange: outside a transaction, a pooler may lend the session to another client here.
    Sync,
    /// Any other message, by its type.
    Other(char),
}

/// The messages of one connection so far.
type Messages = Arc<Mutex<Vec<Message>>>;

/// A proxy in front of a server.
pub(crate) struct Recorder {
    port: u16,
    connections: Arc<Mutex<Vec<Messages>>>,
}

impl Recorder {
    /// Listens, and forwards to `server`, a `host:port`.
    pub(crate) fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::<Mutex<Vec<Messages>>>::default();
        let (server, recorded) = (server.to_owned(), connections.clone());
        // The threads end with their connections, this one with the process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) else { return };
                let messages = Messages::default();
                recorded.lock().unwrap().push(messages.clone());
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || forward_to_client(from_server, to_client));
                thread::spawn(move || forward_to_server(client, server, &messages));
            }
        });
        Self { port, connections }
    }

    /// The same database behind the proxy.
    pub(crate) fn url(&self, url: &str) -> String {
        let (before, after) = url.split_once('@').unwrap();
        let (_, database) = after.split_once('/').unwrap();
        format!("{before}@127.0.0.1:{}/{database}", self.port)
    }

    /// The messages of every connection so far.
    pub(crate) fn connections(&self) -> Vec<Vec<Message>> {
        self.connections.lock().unwrap().iter().map(|messages| messages.lock().unwrap().clone()).collect()
    }
}

fn forward_to_client(mut server: TcpStream, mut client: TcpStream) {
    // Either side may close first; the other is closed then.
    let _ = io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
}

fn forward_to_server(mut client: TcpStream, mut server: TcpStream, messages: &Mutex<Vec<Message>>) {
    let mut first = true;
    while let Ok((tag, body)) = read(&mut client, first) {
        messages.lock().unwrap().push(parse(tag, &body));
        let mut bytes: Vec<u8> = tag.into_iter().collect();
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend(body);
        if server.write_all(&bytes).is_err() {
            break;
        }
        first = false;
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// Reads one message; the first of a connection has no type tag.
fn read(client: &mut TcpStream, first: bool) -> io::Result<(Option<u8>, Vec<u8>)> {
    let mut tag = [0];
    if !first {
        client.read_exact(&mut tag)?;
    }
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut body)?;
    Ok(((!first).then_some(tag[0]), body))
}

fn parse(tag: Option<u8>, body: &[u8]) -> Message {
    // Strings end with a zero byte, the parameter list with one more. The list starts with a version of four bytes.
    let texts = |bytes: &[u8]| -> Vec<String> {
        bytes.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    };
    match tag.map(char::from) {
        None => Message::Startup(texts(&body[4..])),
        Some('P') => {
            let texts = texts(body);
            Message::Parse { name: texts[0].clone(), sql: texts[1].clone() }
        }
        // The portal's name comes first.
        Some('B') => Message::Bind { statement: texts(body)[1].clone() },
        Some('Q') => Message::Query(texts(body)[0].clone()),
        Some('S') => Message::Sync,
        Some(other) => Message::Other(other),
    }
}
