//! Redirects between addresses of which only one is let through, and names that lead to them.

use std::{
    io::{BufRead, BufReader, Write},
    net::{IpAddr, Ipv4Addr, TcpListener},
    sync::mpsc,
    thread,
};

use super::*;

const OPEN: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Answers every request with a redirect to `to`, where PORT is its own; tells of each that came. Ends with the process.
fn redirecting(address: &str, to: &'static str) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let _ = tell.send(line);
            let to = to.replace("PORT", &port.to_string());
            let answer =
                format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, told)
}

async fn deliver(url: &str) -> JobError {
    let courier = Courier::through(Gate(|address| address == OPEN));
    let request = Request::read(&Json::trusted(&format!(r#"{{"url": "{url}"}}"#))).unwrap();
    courier.deliver(&request, Some(Duration::from_secs(60))).await.unwrap_err()
}

#[tokio::test]
async fn a_redirect_to_what_is_refused_is_refused_and_nobody_is_asked() {
    for to in [
        "http://127.0.0.2:PORT/",
        "http://127.2:PORT/",
        "http://2130706434:PORT/",
        "http://[::1]:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "//169.254.169.254/latest/meta-data",
    ] {
        let (port, asked) = redirecting("127.0.0.1", to);
        let error = deliver(&format!("http://127.0.0.1:{port}/")).await;
        assert!(error.is_fatal() && error.to_string().contains("not a public address"), "{to}: {error}");
        assert_eq!(asked.try_iter().count(), 1, "{to}");
    }
}

#[tokio::test]
async fn a_name_is_refused_for_the_address_that_it_leads_to() {
    let (port, asked) = redirecting("127.0.0.1", "/");
    let courier = Courier::through(Gate(|_| false));
    for name in ["localhost", "LOCALHOST.", "localhost.localdomain"] {
        if tokio::net::lookup_host((name, 0)).await.is_err() {
            continue;
        }
        let request = Request::read(&Json::trusted(&format!(r#"{{"url": "http://{name}:{port}/"}}"#))).unwrap();
        let error = courier.deliver(&request, None).await.unwrap_err();
        assert!(error.is_fatal() && error.to_string().contains("not a public address"), "{error}");
    }
    assert_eq!(asked.try_iter().count(), 0);
}

#[tokio::test]
async fn a_few_redirects_are_followed_and_no_more() {
    let (port, asked) = redirecting("127.0.0.1", "http://localhost:PORT/again");
    let error = deliver(&format!("http://127.0.0.1:{port}/")).await;
    assert!(error.is_fatal() && error.to_string().contains("more than 5 times"), "{error}");
    assert_eq!(asked.try_iter().count(), 6);
}

#[tokio::test]
async fn an_error_shows_nothing_of_a_url_but_its_origin() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = deliver(&format!("http://me:hunter2@127.0.0.1:{port}/path?key=hunter2")).await;
    let text = error.to_string();
    assert!(!error.is_fatal() && !text.contains("hunter2"), "{text}");
    assert!(text.starts_with(&format!("http://127.0.0.1:{port}: ")), "{text}");
}
