//! A collector of traces: takes what is sent to it over HTTP, and keeps it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// The largest body that is taken.
const MAX_BODY: u64 = 16 * 1024 * 1024;

/// A collector on a loopback port of its own, for as long as the process lives. Every request is answered with 200.
#[derive(Debug, Clone)]
pub struct Collector {
    address: SocketAddr,
    kept: Arc<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bodies: Mutex<Vec<String>>,
    more: Condvar,
}

impl Collector {
    /// Starts one.
    pub fn start() -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::run("bind"))?;
        let collector =
            Self { address: listener.local_addr().map_err(Error::run("getsockname"))?, kept: Arc::default() };
        let kept = Arc::clone(&collector.kept);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                // Whoever sends nonsense, or no more, is no loss.
                thread::spawn(move || drop(kept.take(stream)));
            }
        });
        Ok(collector)
    }

    /// Where it is: what `--otlp` takes.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until what was sent so far is enough for `found`; `None` if that takes longer than `patience`.
    pub fn wait<T>(&self, patience: Duration, mut found: impl FnMut(&[String]) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience;
        let mut bodies = self.kept.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = found(&bodies) {
                return Some(found);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            bodies = self.kept.more.wait_timeout(bodies, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Kept {
    // One request after the other, until the line is closed.
    fn take(&self, stream: TcpStream) -> io::Result<()> {
        let mut answers = stream.try_clone()?;
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
            self.more.notify_all();
            answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")?;
        }
    }
}
