//! Where requests may go. Names are looked up here and nowhere else, and only addresses that pass are connected to: a name
//! that answers differently when asked again gains nothing by it.

use std::net::{IpAddr, SocketAddr};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use thiserror::Error;

use super::address::is_public;

/// Why a request was not sent.
#[derive(Debug, Error)]
#[error("{host} is {address}, which is not a public address; a worker with --allow-private-http would send it")]
pub(super) struct Refused {
    host: String,
    address: IpAddr,
}

/// Which addresses may be connected to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate(pub(super) fn(IpAddr) -> bool);

impl Gate {
    /// Lets everything that is public through, or everything.
    pub(super) fn new(private: bool) -> Self {
        Self(if private { |_| true } else { is_public })
    }

    fn lets(self, address: IpAddr) -> bool {
        self.0(address)
    }

    /// Checks a URL that names an address itself. Nothing is looked up for it, so the resolver would not see it.
    pub(super) fn check(self, url: &Url) -> Result<(), Refused> {
        // The URL has brought odd spellings such as 0x7f.1 into the usual one.
        let host = url.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) if !self.lets(address) => Err(Refused { host: host.into(), address }),
            _ => Ok(()),
        }
    }
}

impl Resolve for Gate {
    fn resolve(&self, name: Name) -> Resolving {
        let gate = *self;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let (open, closed): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| gate.lets(found.ip()));
            match closed.first() {
                Some(closed) if open.is_empty() => {
                    Err(Refused { host: name.as_str().into(), address: closed.ip() }.into())
                }
                _ => Ok(Box::new(open.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_any_spelling_are_checked() {
        for url in [
            "http://127.0.0.1/",
            "http://127.0.0.1.:80/",
            "http://127.1/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://2130706433/",
            "http://0/",
            "http://１２７.０.０.１/",
            "http://%31%32%37.0.0.1/",
            "http://user:word@10.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[fe80::1]/",
        ] {
            let url = Url::parse(url).unwrap();
            assert!(Gate::new(false).check(&url).is_err(), "{url}");
            assert!(Gate::new(true).check(&url).is_ok(), "{url}");
        }
        assert!(Gate::new(false).check(&Url::parse("http://8.8.8.8/").unwrap()).is_ok());
    }
}
