//! Which addresses requests may reach.
//!
//! The filter is the client's only DNS resolver, and the client connects only to addresses that the filter returns. A
//! name that resolves differently the second time (DNS rebinding) therefore does not get past it.

use std::net::{IpAddr, SocketAddr};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use thiserror::Error;

use super::public_address::is_public;

/// The host resolves to an address that the filter does not allow.
#[derive(Debug, Error)]
#[error(
    "{host} has the address {address}, which is not a public address; \
     to reach it, start the worker with --allow-private-http (BuiltinOptions::allow_private_http)"
)]
pub(super) struct NotAllowed {
    host: String,
    address: IpAddr,
}

/// A predicate on addresses, and the DNS resolver that applies it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressFilter(pub(super) fn(IpAddr) -> bool);

impl AddressFilter {
    /// Allows public addresses, or every address.
    pub(super) fn new(allow_private: bool) -> Self {
        Self(if allow_private { |_| true } else { is_public })
    }

    fn allows(self, address: IpAddr) -> bool {
        self.0(address)
    }

    /// Checks a URL whose host is an IP address: the client connects to it without the resolver.
    pub(super) fn check(self, url: &Url) -> Result<(), NotAllowed> {
        // The URL parser has normalised spellings such as 0x7f.1.
        let host = url.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) if !self.allows(address) => Err(NotAllowed { host: host.into(), address }),
            _ => Ok(()),
        }
    }
}

impl Resolve for AddressFilter {
    fn resolve(&self, name: Name) -> Resolving {
        let filter = *self;
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let (allowed, refused): (Vec<_>, Vec<_>) =
                addresses.into_iter().partition(|address| filter.allows(address.ip()));
            match refused.first() {
                Some(refused) if allowed.is_empty() => {
                    Err(NotAllowed { host: name.as_str().into(), address: refused.ip() }.into())
                }
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_in_every_spelling() {
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
            assert!(AddressFilter::new(false).check(&url).is_err(), "{url}");
            assert!(AddressFilter::new(true).check(&url).is_ok(), "{url}");
        }
        assert!(AddressFilter::new(false).check(&Url::parse("http://8.8.8.8/").unwrap()).is_ok());
    }
}
