//! A TCP proxy that injects faults: it can be cut, frozen and restored.
//!
//! It separates one process from its server while others stay connected. A cut closes connections, so both sides
//! notice at once, as when a machine dies. A freeze stops forwarding, so neither side notices, as when a switch drops
//! every packet.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Error;

/// A proxy on a free loopback port; stopped, with all its connections, when dropped.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Passing,
    Frozen,
    Cut,
    /// The proxy was dropped.
    Dropped,
}

#[derive(Debug)]
struct Shared {
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

impl FaultProxy {
    /// Starts to forward connections to `target`.
    pub fn start(target: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::run("bind"))?;
        let address = listener.local_addr().map_err(Error::run("getsockname"))?;
        let state = State { mode: Mode::Passing, connections: HashMap::new(), accepted: 0 };
        let shared = Arc::new(Shared { target, state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, shared })
    }

    /// The address to connect to instead of the target.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection, and new ones as soon as they are accepted.
    pub fn cut(&self) {
        self.shared.set_mode(Mode::Cut);
    }

    /// Accepts connections and data, but forwards nothing until [`restore`](Self::restore) or [`cut`](Self::cut).
    pub fn freeze(&self) {
        self.shared.set_mode(Mode::Frozen);
    }

    /// Forwards again, first of all the data held back.
    pub fn restore(&self) {
        self.shared.set_mode(Mode::Passing);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.set_mode(Mode::Dropped);
        // Wakes the accept loop, which then sees that the proxy was dropped.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_mode(&self, mode: Mode) {
        let mut state = self.state();
        state.mode = mode;
        if matches!(mode, Mode::Cut | Mode::Dropped) {
            for (_, streams) in state.connections.drain() {
                close_all(&streams);
            }
        }
        self.changed.notify_all();
    }

    /// Waits while the proxy is frozen; fails if the connection was closed meanwhile.
    fn wait_until_passing(&self, id: u64) -> io::Result<()> {
        let mut state = self.state();
        while state.mode == Mode::Frozen {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.connections.contains_key(&id) { Ok(()) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
    }

    /// Registers a client connection, unless the proxy is cut.
    fn admit(&self, client: &TcpStream) -> io::Result<u64> {
        let mut state = self.state();
        if matches!(state.mode, Mode::Cut | Mode::Dropped) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        state.accepted += 1;
        let id = state.accepted;
        state.connections.insert(id, vec![client.try_clone()?]);
        Ok(id)
    }

    /// Registers the server side, unless the connection was closed meanwhile.
    fn add_server_side(&self, id: u64, server: &TcpStream) -> io::Result<()> {
        match self.state().connections.get_mut(&id) {
            Some(streams) => streams.push(server.try_clone()?),
            None => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        Ok(())
    }

    fn end(&self, id: u64) {
        if let Some(streams) = self.state().connections.remove(&id) {
            close_all(&streams);
        }
    }
}

// Errors are ignored: the side is already closed.
fn close_all(streams: &[TcpStream]) {
    for stream in streams {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.state().mode == Mode::Dropped {
            return;
        }
        let Ok(client) = client else { continue };
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            if let Ok(id) = shared.admit(&client) {
                // Whatever the error: both sides see a closed connection.
                let _ = forward_connection(&shared, id, &client);
                shared.end(id);
            }
        });
    }
}

fn forward_connection(shared: &Arc<Shared>, id: u64, client: &TcpStream) -> io::Result<()> {
    shared.wait_until_passing(id)?;
    let server = TcpStream::connect(shared.target)?;
    shared.add_server_side(id, &server)?;
    for stream in [client, &server] {
        stream.set_nodelay(true)?;
    }
    let (to_client, from_server) = (client.try_clone()?, server.try_clone()?);
    let shared_back = Arc::clone(shared);
    thread::spawn(move || {
        let _ = copy_bytes(&shared_back, id, from_server, to_client);
        shared_back.end(id);
    });
    copy_bytes(shared, id, client.try_clone()?, server)
}

fn copy_bytes(shared: &Shared, id: u64, mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer)?;
        shared.wait_until_passing(id)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read])?;
    }
}
