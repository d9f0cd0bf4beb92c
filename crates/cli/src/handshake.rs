//! What goes wrong before a server has heard a word: whose certificate it is, and whether TLS is spoken at all.
//!
//! Whoever connects tells it as text, in the words of `rustls` and `hyper`; a test with real servers holds them to these. What is not
//! known here is told as it came.

/// Why two that found each other did not understand each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// The certificate is not one to be trusted.
    Certificate,
    /// `https://` was said to a server that speaks plainly.
    NoTls,
    /// `http://` was said to something that speaks another language, most likely TLS.
    NoHttp,
}

impl Handshake {
    /// What these words of an error mean.
    pub(crate) fn of(why: &str) -> Option<Self> {
        match why {
            _ if why.contains("invalid peer certificate") => Some(Self::Certificate),
            _ if why.contains("InvalidContentType") => Some(Self::NoTls),
            _ if why.contains("invalid HTTP version parsed") => Some(Self::NoHttp),
            _ => None,
        }
    }

    /// What happened at this place, with the words of the error.
    pub(crate) fn says(self, place: &str, why: &str) -> String {
        match self {
            Self::Certificate => format!("the certificate of {place} is not trusted: {why}"),
            Self::NoTls => format!("{place} does not speak TLS: {why}"),
            Self::NoHttp => format!("{place} does not speak plain HTTP: {why}"),
        }
    }

    /// What to do about it.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Certificate => {
                "it must be valid for that name, and come from somebody this machine trusts: \
                 SSL_CERT_FILE may name a PEM file with the CA"
            }
            Self::NoTls => "name it with http://, or start the server with --tls-cert and --tls-key",
            Self::NoHttp => "does it speak TLS? Then name it with https://",
        }
    }
}

/// What is said of a server that cannot be talked to.
pub(crate) fn away(place: &str, why: &str) -> String {
    match Handshake::of(why) {
        Some(handshake) => handshake.says(place, why),
        None => format!("{place} is not there: {why}"),
    }
}
