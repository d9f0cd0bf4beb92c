//! Redirects to addresses that the filter refuses, and names that resolve to them.

use std::{
    io::{BufRead, BufReader, Write},
    net::{IpAddr, Ipv4Addr, TcpListener},
    sync::mpsc,
    thread,
};

use super::*;

const ALLOWED: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A server that answers every request with a redirect to `to`, in which PORT stands for the server's own port. Sends
/// the first line of each request to the returned channel. Runs until the process ends.
fn redirect_server(address: &str, to: &'static str) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let _ = sender.send(line);
            let to = to.replace("PORT", &port.to_string());
            let response =
                format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(response.as_bytes());
        }
    });
    (port, requests)
}

async fn error_for(url: &str) -> JobError {
    let client = GuardedClient::with_filter(AddressFilter(|address| address == ALLOWED));
    let request = Request::read(&Json::trusted(&format!(r#"{{"url": "{url}"}}"#))).unwrap();
    client.execute(&request, Some(Duration::from_secs(60))).await.unwrap_err()
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused_before_connecting() {
    for to in [
        "http://127.0.0.2:PORT/",
        "http://127.2:PORT/",
        "http://2130706434:PORT/",
        "http://[::1]:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "//169.254.169.254/latest/meta-data",
    ] {
        let (port, requests) = redirect_server("127.0.0.1", to);
        let error = error_for(&format!("http://127.0.0.1:{port}/")).await;
        assert!(error.is_fatal() && error.to_string().contains("not a public address"), "{to}: {error}");
        assert_eq!(requests.try_iter().count(), 1, "{to}");
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_refused() {
    let (port, requests) = redirect_server("127.0.0.1", "/");
    let client = GuardedClient::with_filter(AddressFilter(|_| false));
    for name in ["localhost", "LOCALHOST.", "localhost.localdomain"] {
        if tokio::net::lookup_host((name, 0)).await.is_err() {
            continue;
        }
        let request = Request::read(&Json::trusted(&format!(r#"{{"url": "http://{name}:{port}/"}}"#))).unwrap();
        let error = client.execute(&request, None).await.unwrap_err();
        assert!(error.is_fatal() && error.to_string().contains("not a public address"), "{error}");
    }
    assert_eq!(requests.try_iter().count(), 0);
}

#[tokio::test]
async fn at_most_five_redirects_are_followed() {
    let (port, requests) = redirect_server("127.0.0.1", "http://localhost:PORT/again");
    let error = error_for(&format!("http://127.0.0.1:{port}/")).await;
    assert!(error.is_fatal() && error.to_string().contains("more than 5 times"), "{error}");
    assert_eq!(requests.try_iter().count(), 6);
}

#[tokio::test]
async fn errors_show_only_the_origin_of_a_url() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = error_for(&format!("http://me:hunter2@127.0.0.1:{port}/path?key=hunter2")).await;
    let text = error.to_string();
    assert!(!error.is_fatal() && !text.contains("hunter2"), "{text}");
    assert!(text.starts_with(&format!("http://127.0.0.1:{port}: ")), "{text}");
}
