//! Parsing the address to listen on.

use std::net::{Ipv4Addr, SocketAddr};

/// Parses an IP address and a port. The only host name it accepts is `localhost`.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
    let localhost = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let localhost = localhost.map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let invalid = || "must be an IP address and a port, such as 127.0.0.1:8080 or 0.0.0.0:8080".to_owned();
    localhost.or_else(|| text.parse().ok()).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_or_localhost_with_a_port() {
        for (text, parsed) in
            [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:8080", "[::1]:8080"), ("localhost:8080", "127.0.0.1:8080")]
        {
            assert_eq!(parse(text).map(|address| address.to_string()).as_deref(), Ok(parsed));
        }
        for text in ["", "here", "8080", ":8080", "127.0.0.1", "localhost", "localhost:x", "jobs.example.com:80"] {
            assert!(parse(text).unwrap_err().contains("such as 127.0.0.1:8080"), "{text}");
        }
    }
}
