//! A keep-alive HTTP connection that reports I/O errors instead of panicking.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
};

use super::process::{Response, TIMEOUT};

/// A connection for one request after the other.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request and reads the whole response.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: &str) -> io::Result<Response> {
        self.send(&encode_request(method, path, body))?;
        self.read_response()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Reads the response to what was sent.
    pub(crate) fn read_response(&mut self) -> io::Result<Response> {
        let mut text = Vec::new();
        let mut length = 0;
        loop {
            let begin = text.len();
            if self.0.read_until(b'\n', &mut text)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = String::from_utf8_lossy(&text[begin..]).to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let begin = text.len();
        text.resize(begin + length, 0);
        self.0.read_exact(&mut text[begin..])?;
        Ok(Response::read(&text))
    }
}

/// The bytes of a request.
pub(crate) fn encode_request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    if method != "GET" {
        text.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    }
    format!("{text}\r\n{body}").into_bytes()
}
