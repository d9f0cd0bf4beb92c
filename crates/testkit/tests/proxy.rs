//! The proxy cuts, freezes and restores connections.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use orchestrix_testkit::FaultProxy;

/// Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// How long to check that nothing arrives.
const SILENCE: Duration = Duration::from_millis(200);

/// A server that echoes what it receives, until the client closes.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut replies = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut replies);
            });
        }
    });
    address
}

fn connect(proxy: &FaultProxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

fn receives(stream: &mut TcpStream, text: &str) {
    let mut received = vec![0; text.len()];
    stream.read_exact(&mut received).unwrap();
    assert_eq!(received, text.as_bytes());
}

fn sends_and_receives(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
    receives(stream, text);
}

fn receives_nothing(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    stream.set_read_timeout(Some(LIMIT)).unwrap();
}

/// Whether the other side has closed: end of stream, or an error other than a timeout.
fn is_closed(stream: &mut TcpStream) -> bool {
    let _ = stream.write_all(b"?");
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

#[test]
fn data_is_forwarded_in_both_directions_on_every_connection() {
    let proxy = FaultProxy::start(echo()).unwrap();
    let mut streams = [connect(&proxy), connect(&proxy)];
    for text in ["one", "another"] {
        for stream in &mut streams {
            sends_and_receives(stream, text);
        }
    }
    let long = "x".repeat(1_000_000);
    let mut writing = streams[0].try_clone().unwrap();
    let written = long.clone();
    let writer = thread::spawn(move || writing.write_all(written.as_bytes()).unwrap());
    receives(&mut streams[0], &long);
    writer.join().unwrap();
}

#[test]
fn a_cut_closes_old_and_new_connections_until_restored() {
    let proxy = FaultProxy::start(echo()).unwrap();
    let mut old = connect(&proxy);
    sends_and_receives(&mut old, "before");
    proxy.cut();
    assert!(is_closed(&mut old));
    assert!(is_closed(&mut connect(&proxy)));
    proxy.restore();
    assert!(is_closed(&mut old), "a closed connection stays closed");
    sends_and_receives(&mut connect(&proxy), "after");
}

#[test]
fn a_freeze_holds_data_back_until_restored() {
    let proxy = FaultProxy::start(echo()).unwrap();
    let mut old = connect(&proxy);
    sends_and_receives(&mut old, "before");
    proxy.freeze();
    old.write_all(b"held").unwrap();
    let mut new = connect(&proxy);
    new.write_all(b"held too").unwrap();
    receives_nothing(&mut old);
    receives_nothing(&mut new);
    proxy.restore();
    receives(&mut old, "held");
    receives(&mut new, "held too");
}

#[test]
fn data_held_by_a_frozen_proxy_is_lost_when_it_is_cut() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = FaultProxy::start(target.local_addr().unwrap()).unwrap();
    let mut client = connect(&proxy);
    let (mut server, _) = target.accept().unwrap();
    proxy.freeze();
    client.write_all(b"held").unwrap();
    thread::sleep(SILENCE);
    proxy.cut();
    let mut arrived = Vec::new();
    let _ = server.read_to_end(&mut arrived);
    assert_eq!(arrived, b"");
    assert!(is_closed(&mut client));
}

#[test]
fn a_close_is_forwarded_from_either_side_and_from_the_proxy() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = FaultProxy::start(target.local_addr().unwrap()).unwrap();
    let client = connect(&proxy);
    let (mut server, _) = target.accept().unwrap();
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    let mut client = connect(&proxy);
    drop(target.accept().unwrap());
    assert!(is_closed(&mut client));

    let mut left = connect(&proxy);
    let _server = target.accept().unwrap();
    let address = proxy.address();
    drop(proxy);
    assert!(is_closed(&mut left));
    let is_refused = || TcpStream::connect(address).is_err();
    assert!((0..100).any(|_| is_refused() || {
        thread::sleep(Duration::from_millis(20));
        false
    }));
}

#[test]
fn an_unreachable_target_closes_the_connection() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = FaultProxy::start(address).unwrap();
    assert!(is_closed(&mut connect(&proxy)));
}
