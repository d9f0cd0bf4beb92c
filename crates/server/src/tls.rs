//! TLS on the server's own socket.

use std::{io, path::Path, sync::Arc};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// A certificate and its key, as connections are made with.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

// A key is nobody's business in a log.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads PEM files: the certificate with whatever stands between it and its root, and the private key.
    ///
    /// # Errors
    /// If a file cannot be read, or they do not belong together; says which and why.
    pub fn read(certificates: &Path, key: &Path) -> io::Result<Self> {
        let cannot = |file: &Path, error: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", file.display()))
        };
        let chain = CertificateDer::pem_file_iter(certificates).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| cannot(certificates, &error))?;
        if chain.is_empty() {
            return Err(cannot(certificates, &"holds no certificate"));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| cannot(key, &error))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| cannot(key, &format_args!("does not go with {}: {error}", certificates.display())))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}
