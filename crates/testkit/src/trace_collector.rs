//! An OTLP collector for tests: it stores the bodies that are sent to it over HTTP.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// The largest accepted body.
const MAX_BODY: u64 = 16 * 1024 * 1024;

/// A collector on a free loopback port, for the life of the process. It answers every request with 200.
#[derive(Debug, Clone)]
pub struct TraceCollector {
    address: SocketAddr,
    received: Arc<Received>,
}

#[derive(Debug, Default)]
struct Received {
    bodies: Mutex<Vec<String>>,
    arrived: Condvar,
}

impl TraceCollector {
    /// Starts a collector.
    pub fn start() -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::run("bind"))?;
        let collector =
            Self { address: listener.local_addr().map_err(Error::run("getsockname"))?, received: Arc::default() };
        let received = Arc::clone(&collector.received);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let received = Arc::clone(&received);
                // Errors of one connection do not matter to the others.
                thread::spawn(move || drop(received.serve(stream)));
            }
        });
        Ok(collector)
    }

    /// The URL for `--otlp`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until `find` returns something for the bodies received so far; `None` after `timeout`.
    pub fn wait<T>(&self, timeout: Duration, mut find: impl FnMut(&[String]) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + timeout;
        let mut bodies = self.received.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = find(&bodies) {
                return Some(found);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            bodies = self.received.arrived.wait_timeout(bodies, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Received {
    // Serves one request after the other, until the connection is closed.
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut responses = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        loop {
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line)? > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().map_err(io::Error::other)?;
                }
                line.clear();
            }
            if line.is_empty() || length > MAX_BODY {
                return Ok(());
            }
            let mut body = String::new();
            (&mut reader).take(length).read_to_string(&mut body)?;
            self.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
            self.arrived.notify_all();
            responses.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")?;
        }
    }
}
