//! A line to a server that can be cut, frozen and mended.
//!
//! A process that talks through it can be parted from its server while others, who do not, are not. Cut, both sides
//! learn of it at once, as when a cable's end dies with its machine; frozen, neither does, as when a switch drops every packet.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Error;

/// A proxy on a loopback port of its own; gone, with all its connections, when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    line: Arc<Line>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Passing,
    Frozen,
    Cut,
    /// Cut for good.
    Gone,
}

#[derive(Debug)]
struct Line {
    target: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    connections: HashMap<u64, Vec<TcpStream>>,
    accepted: u64,
}

impl Proxy {
    /// Begins to pass connections on to `target`.
    pub fn start(target: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::run("bind"))?;
        let address = listener.local_addr().map_err(Error::run("getsockname"))?;
        let state = State { mode: Mode::Passing, connections: HashMap::new(), accepted: 0 };
        let line = Arc::new(Line { target, state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&line);
        thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, line })
    }

    /// Where to connect to instead of the target.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection, and new ones as soon as they come.
    pub fn cut(&self) {
        self.line.turn(Mode::Cut);
    }

    /// Takes whatever comes, new connections too, and passes nothing on until the line is restored or cut.
    pub fn freeze(&self) {
        self.line.turn(Mode::Frozen);
    }

    /// Passes on again, first of all what was held back.
    pub fn restore(&self) {
        self.line.turn(Mode::Passing);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.line.turn(Mode::Gone);
        // Whoever accepts is woken by this, and sees that it is over.
        drop(TcpStream::connect(self.address));
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, mode: Mode) {
        let mut state = self.state();
        state.mode = mode;
        if matches!(mode, Mode::Cut | Mode::Gone) {
            for (_, streams) in state.connections.drain() {
                hang_up(&streams);
            }
        }
        self.changed.notify_all();
    }

    /// Waits while the line is frozen; fails for a connection that was ended meanwhile.
    fn open(&self, id: u64) -> io::Result<()> {
        let mut state = self.state();
        while state.mode == Mode::Frozen {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.connections.contains_key(&id) { Ok(()) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
    }

    /// Takes a connection in, unless the line is cut.
    fn admit(&self, client: &TcpStream) -> io::Result<u64> {
        let mut state = self.state();
        if matches!(state.mode, Mode::Cut | Mode::Gone) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        state.accepted += 1;
        let id = state.accepted;
        state.connections.insert(id, vec![client.try_clone()?]);
        Ok(id)
    }

    /// Adds the server's side, unless the connection was ended meanwhile.
    fn join(&self, id: u64, server: &TcpStream) -> io::Result<()> {
        match self.state().connections.get_mut(&id) {
            Some(streams) => streams.push(server.try_clone()?),
            None => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        Ok(())
    }

    fn end(&self, id: u64) {
        if let Some(streams) = self.state().connections.remove(&id) {
            hang_up(&streams);
        }
    }
}

// A side that is gone already needs no more.
fn hang_up(streams: &[TcpStream]) {
    for stream in streams {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn accept(listener: &TcpListener, line: &Arc<Line>) {
    for client in listener.incoming() {
        if line.state().mode == Mode::Gone {
            return;
        }
        let Ok(client) = client else { continue };
        let line = Arc::clone(line);
        thread::spawn(move || {
            if let Ok(id) = line.admit(&client) {
                // However it ends: to both sides it looks like the end of the connection.
                let _ = carry(&line, id, &client);
                line.end(id);
            }
        });
    }
}

fn carry(line: &Arc<Line>, id: u64, client: &TcpStream) -> io::Result<()> {
    line.open(id)?;
    let server = TcpStream::connect(line.target)?;
    line.join(id, &server)?;
    for stream in [client, &server] {
        stream.set_nodelay(true)?;
    }
    let (to_client, from_server) = (client.try_clone()?, server.try_clone()?);
    let back = Arc::clone(line);
    thread::spawn(move || {
        let _ = pass(&back, id, from_server, to_client);
        back.end(id);
    });
    pass(line, id, client.try_clone()?, server)
}

fn pass(line: &Line, id: u64, mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer)?;
        line.open(id)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read])?;
    }
}
