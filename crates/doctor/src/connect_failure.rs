//! Why a connection to a server failed before the first HTTP exchange: an untrusted certificate, or TLS on one side
//! only.
//!
//! The HTTP client reports these failures as text, in the words of `rustls` and `hyper`. The suite of the command line
//! checks the phrases against real servers.

/// A handshake that failed although the server was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// The server's certificate is not trusted.
    UntrustedCertificate,
    /// The URL says `https://`, but the server speaks plain HTTP.
    PlainHttpServer,
    /// The URL says `http://`, but the server speaks another protocol, most likely TLS.
    NotHttpServer,
}

impl ConnectFailure {
    /// Recognises the failure by its error text; `None` for every other failure.
    pub fn from_error(error: &str) -> Option<Self> {
        match error {
            _ if error.contains("invalid peer certificate") => Some(Self::UntrustedCertificate),
            _ if error.contains("InvalidContentType") => Some(Self::PlainHttpServer),
            _ if error.contains("invalid HTTP version parsed") => Some(Self::NotHttpServer),
            _ => None,
        }
    }

    /// A message about `server`, with the error text.
    pub fn describe(self, server: &str, error: &str) -> String {
        match self {
            Self::UntrustedCertificate => format!("the certificate of {server} is not trusted: {error}"),
            Self::PlainHttpServer => format!("{server} does not speak TLS: {error}"),
            Self::NotHttpServer => format!("{server} does not speak plain HTTP: {error}"),
        }
    }

    /// What to do about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::UntrustedCertificate => {
                "use a certificate that is valid for this host name and issued by a CA that this machine trusts; \
                 SSL_CERT_FILE can name a PEM file with the CA"
            }
            Self::PlainHttpServer => "use http:// in the URL, or start the server with --tls-cert and --tls-key",
            Self::NotHttpServer => "if the server speaks TLS, use https:// in the URL",
        }
    }
}
