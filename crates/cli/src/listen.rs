//! Where to listen, as people write it.

use std::net::{Ipv4Addr, SocketAddr};

/// Reads an address. Names are left to those who connect, but for the one that always means this machine.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let here = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let here = here.map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let wrong = || "must be an IP address and a port, such as 127.0.0.1:8080 or 0.0.0.0:8080".to_owned();
    here.or_else(|| text.parse().ok()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_no_name_but_one() {
        for (text, read) in
            [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:8080", "[::1]:8080"), ("localhost:8080", "127.0.0.1:8080")]
        {
            assert_eq!(address(text).map(|address| address.to_string()).as_deref(), Ok(read));
        }
        for text in ["", "here", "8080", ":8080", "127.0.0.1", "localhost", "localhost:x", "jobs.example.com:80"] {
            assert!(address(text).unwrap_err().contains("such as 127.0.0.1:8080"), "{text}");
        }
    }
}
