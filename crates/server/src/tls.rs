//! TLS on the server's own socket.

use std::{io, path::Path, sync::Arc};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// A server certificate and its private key, ready to accept connections.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

// The private key must not end up in a log.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads PEM files: the certificate chain, leaf first, and the private key.
    ///
    /// # Errors
    /// If a file cannot be read, or the key does not match the certificate. The message names the file and the reason.
    pub fn from_pem_files(certificates: &Path, key: &Path) -> io::Result<Self> {
        let invalid = |file: &Path, error: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", file.display()))
        };
        let chain = CertificateDer::pem_file_iter(certificates).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| invalid(certificates, &error))?;
        if chain.is_empty() {
            return Err(invalid(certificates, &"contains no certificate"));
        }
        let private_key = PrivateKeyDer::from_pem_file(key).map_err(|error| invalid(key, &error))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, private_key))
            .map_err(|error| invalid(key, &format_args!("does not match {}: {error}", certificates.display())))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}
