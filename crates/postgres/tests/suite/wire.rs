//! What a store says to its server, word for word: a proxy that passes everything on and notes what clients send.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A message from a client, as far as the tests look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// The parameters of a new connection, names and values.
    Startup(Vec<String>),
    /// A statement to be prepared; the name is empty unless it is to be kept.
    Parse { name: String, sql: String },
    /// A statement to be carried out by its name.
    Bind { statement: String },
    /// Text carried out at once.
    Query(String),
    /// The end of what belongs together: a pooler may hand the connection on here, outside a transaction.
    Sync,
    /// Anything else, by its letter.
    Other(char),
}

/// What one connection has said so far.
type Said = Arc<Mutex<Vec<Message>>>;

/// A proxy in front of a server.
pub(crate) struct Recorder {
    port: u16,
    connections: Arc<Mutex<Vec<Said>>>,
}

impl Recorder {
    /// Listens, and passes on to `server`, a `host:port`.
    pub(crate) fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::<Mutex<Vec<Said>>>::default();
        let (server, noted) = (server.to_owned(), connections.clone());
        // The threads end with their connections, this one with the test's process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) else { return };
                let messages = Said::default();
                noted.lock().unwrap().push(messages.clone());
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || pass_back(from_server, to_client));
                thread::spawn(move || pass_on(client, server, &messages));
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

    /// What every connection has said so far.
    pub(crate) fn connections(&self) -> Vec<Vec<Message>> {
        self.connections.lock().unwrap().iter().map(|messages| messages.lock().unwrap().clone()).collect()
    }
}

fn pass_back(mut server: TcpStream, mut client: TcpStream) {
    // Either side may hang up first; what matters is that the other learns of it.
    let _ = io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
}

fn pass_on(mut client: TcpStream, mut server: TcpStream, messages: &Mutex<Vec<Message>>) {
    let mut first = true;
    while let Ok((letter, body)) = read(&mut client, first) {
        messages.lock().unwrap().push(understand(letter, &body));
        let mut bytes: Vec<u8> = letter.into_iter().collect();
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend(body);
        if server.write_all(&bytes).is_err() {
            break;
        }
        first = false;
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// Reads one message; the first of a connection has no letter.
fn read(client: &mut TcpStream, first: bool) -> io::Result<(Option<u8>, Vec<u8>)> {
    let mut letter = [0];
    if !first {
        client.read_exact(&mut letter)?;
    }
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut body)?;
    Ok(((!first).then_some(letter[0]), body))
}

fn understand(letter: Option<u8>, body: &[u8]) -> Message {
    // Texts end with a zero byte, the list of parameters with one more; the first four bytes of it are a version.
    let texts = |bytes: &[u8]| -> Vec<String> {
        bytes.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    };
    match letter.map(char::from) {
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
