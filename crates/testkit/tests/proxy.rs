//! A line that is cut ends at once, one that is frozen keeps what comes, and both can be mended.

#![allow(clippy::unwrap_used, reason = "clippy sees the tests themselves, not what they share")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use orchestrix_testkit::Proxy;

/// Long enough on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(30);
/// How long nothing must come.
const SILENCE: Duration = Duration::from_millis(200);

/// A server that sends back whatever it gets, and ends a connection when the other side does.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut answers = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut answers);
            });
        }
    });
    address
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

fn hears(stream: &mut TcpStream, word: &str) {
    let mut heard = vec![0; word.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard, word.as_bytes());
}

fn says_and_hears(stream: &mut TcpStream, word: &str) {
    stream.write_all(word.as_bytes()).unwrap();
    hears(stream, word);
}

fn hears_nothing(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    stream.set_read_timeout(Some(LIMIT)).unwrap();
}

/// Whether the other side is gone: an end, or an error that is not the end of our patience.
fn is_over(stream: &mut TcpStream) -> bool {
    let _ = stream.write_all(b"?");
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

#[test]
fn what_comes_is_passed_on_both_ways_on_every_connection() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut streams = [connect(&proxy), connect(&proxy)];
    for word in ["one", "another"] {
        for stream in &mut streams {
            says_and_hears(stream, word);
        }
    }
    let long = "x".repeat(1_000_000);
    let mut writing = streams[0].try_clone().unwrap();
    let written = long.clone();
    let writer = thread::spawn(move || writing.write_all(written.as_bytes()).unwrap());
    hears(&mut streams[0], &long);
    writer.join().unwrap();
}

#[test]
fn a_line_that_is_cut_ends_what_there_is_and_what_comes_until_it_is_restored() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut old = connect(&proxy);
    says_and_hears(&mut old, "before");
    proxy.cut();
    assert!(is_over(&mut old));
    assert!(is_over(&mut connect(&proxy)));
    proxy.restore();
    assert!(is_over(&mut old), "what was cut stays cut");
    says_and_hears(&mut connect(&proxy), "after");
}

#[test]
fn a_line_that_is_frozen_holds_back_what_comes_and_passes_it_on_once_restored() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut old = connect(&proxy);
    says_and_hears(&mut old, "before");
    proxy.freeze();
    old.write_all(b"held").unwrap();
    let mut new = connect(&proxy);
    new.write_all(b"held too").unwrap();
    hears_nothing(&mut old);
    hears_nothing(&mut new);
    proxy.restore();
    hears(&mut old, "held");
    hears(&mut new, "held too");
}

#[test]
fn a_frozen_line_can_be_cut_and_nothing_that_it_held_arrives() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(target.local_addr().unwrap()).unwrap();
    let mut client = connect(&proxy);
    let (mut server, _) = target.accept().unwrap();
    proxy.freeze();
    client.write_all(b"held").unwrap();
    thread::sleep(SILENCE);
    proxy.cut();
    let mut arrived = Vec::new();
    let _ = server.read_to_end(&mut arrived);
    assert_eq!(arrived, b"");
    assert!(is_over(&mut client));
}

#[test]
fn the_end_of_either_side_is_passed_on_and_so_is_that_of_the_proxy() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(target.local_addr().unwrap()).unwrap();
    let client = connect(&proxy);
    let (mut server, _) = target.accept().unwrap();
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    let mut client = connect(&proxy);
    drop(target.accept().unwrap());
    assert!(is_over(&mut client));

    let mut left = connect(&proxy);
    let _server = target.accept().unwrap();
    let address = proxy.address();
    drop(proxy);
    assert!(is_over(&mut left));
    let nobody_listens = || TcpStream::connect(address).is_err();
    assert!((0..100).any(|_| nobody_listens() || {
        thread::sleep(Duration::from_millis(20));
        false
    }));
}

#[test]
fn a_target_that_is_not_there_ends_the_connection() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = Proxy::start(address).unwrap();
    assert!(is_over(&mut connect(&proxy)));
}
