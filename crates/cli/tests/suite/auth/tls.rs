//! TLS on the server's own socket.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, pki_types::CertificateDer};

use crate::{
    harness::{CliOutput, TestEnv, orchestrix},
    server::process::{Response, ServerProcess, TIMEOUT},
};

/// A private CA, and a server certificate that it signed.
pub(super) struct TestCertificate {
    root: CertificateDer<'static>,
    /// Files in the directory of the test environment.
    pub(super) root_file: PathBuf,
    certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl TestCertificate {
    pub(super) fn new(env: &TestEnv, name: &str) -> Self {
        let mut root = CertificateParams::new([]).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &root).unwrap();
        let write = |what: &str, text: String| {
            let path = env.dir().join(format!("{name}-{what}.pem"));
            fs::write(&path, text).unwrap();
            path
        };
        Self {
            root: root.der().clone(),
            root_file: write("root", root.pem()),
            certificate: write("cert", server.pem()),
            key: write("key", key.serialize_pem()),
        }
    }

    pub(super) fn flags(&self) -> [&str; 4] {
        ["--tls-cert", self.certificate.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }

    fn server(&self, env: &TestEnv, flags: &[&str]) -> ServerProcess {
        let arguments = [&["server", "--listen", "127.0.0.1:0"], flags, &self.flags()].concat();
        ServerProcess::spawn_with_scheme("https://", env.command(&arguments))
    }

    /// A TLS connection that trusts this CA alone, before the handshake.
    pub(super) fn connect(&self, server: &ServerProcess) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let connection = ClientConnection::new(Arc::new(config), "127.0.0.1".try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        StreamOwned::new(connection, stream)
    }
}

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";

#[test]
fn a_tls_server_answers_clients_that_trust_it_and_no_plain_http() {
    let env = TestEnv::sqlite();
    let key = env.create_key("operator", &[]);
    let ours = TestCertificate::new(&env, "ours");
    let server = ours.server(&env, &[]);
    let mut stream = ours.connect(&server);
    stream.write_all(HEALTH).unwrap();
    let mut answer = Vec::new();
    // The server may close without close_notify.
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(Response::read(&answer).status, 200);

    let mut plain = TcpStream::connect(&server.address).unwrap();
    plain.set_read_timeout(Some(TIMEOUT)).unwrap();
    plain.write_all(HEALTH).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");

    let theirs = TestCertificate::new(&env, "theirs");
    assert!(theirs.connect(&server).write_all(HEALTH).is_err(), "the certificate is not trusted");

    // The command trusts the roots in `SSL_CERT_FILE`.
    let list = |roots: &PathBuf, patience: &str| {
        let url = format!("https://{}", server.address);
        let mut command = orchestrix(&["jobs", "list", "--server", &url, "--connect-timeout", patience]);
        CliOutput::run(command.env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR").env("ORCHESTRIX_API_KEY", &key))
    };
    list(&ours.root_file, "30s").success();
    let begun = Instant::now();
    let ran = list(&theirs.root_file, "60s").exits_with(5, &format!("https://{}", server.address));
    assert!(ran.stderr.contains("certificate") && ran.stderr.contains("SSL_CERT_FILE"), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "a certificate error is not retried");
}

#[test]
fn a_mismatch_of_http_and_https_is_explained() {
    let env = TestEnv::sqlite();
    let ours = TestCertificate::new(&env, "ours");
    let (private, open) = (ours.server(&env, &["--no-auth"]), ServerProcess::start(&env));
    for (url, text, advice) in [
        (format!("http://{}", private.address), "plain HTTP", "https://"),
        (format!("https://{}", open.address), "TLS", "http://"),
        (format!("https://{}", private.address), "certificate", "SSL_CERT_FILE"),
    ] {
        for command in [&["jobs", "list"][..], &["worker"]] {
            let ran = CliOutput::run(&mut orchestrix(&[command, &["--server", &url]].concat())).exits_with(5, text);
            assert!(ran.stderr.contains(advice), "{ran:?}");
        }
        let ran = CliOutput::run(&mut orchestrix(&["doctor", "--server", &url]));
        assert!(ran.code == Some(5) && ran.stdout.contains(text) && ran.stdout.contains(advice), "{ran:?}");
    }
}

#[test]
fn unusable_certificate_and_key_files_are_named() {
    let env = TestEnv::sqlite();
    let (ours, theirs) = (TestCertificate::new(&env, "ours"), TestCertificate::new(&env, "theirs"));
    let [certificate, key, other] = [&ours.certificate, &ours.key, &theirs.key].map(|path| path.to_str().unwrap());
    let empty = env.dir().join("empty.pem");
    fs::write(&empty, "").unwrap();
    let (empty, away) = (empty.to_str().unwrap(), "/nowhere/file.pem");
    for (certificate, key, named) in [
        (certificate, other, "theirs-key.pem: "),
        (certificate, certificate, "ours-cert.pem: "),
        (certificate, empty, "empty.pem: "),
        (certificate, away, "/nowhere/file.pem: "),
        (empty, key, "empty.pem: "),
        (away, key, "/nowhere/file.pem: "),
        (key, key, "ours-key.pem: "),
    ] {
        env.run(&["server", "--tls-cert", certificate, "--tls-key", key]).exits_with(2, named);
    }
    env.run(&["server", "--tls-cert", certificate]).exits_with(2, "--tls-key");
    env.run(&["server", "--tls-key", key]).exits_with(2, "--tls-cert");
}

#[test]
fn silent_connections_do_not_delay_shutdown() {
    let env = TestEnv::sqlite();
    let ours = TestCertificate::new(&env, "ours");
    let mut server = ours.server(&env, &["--drain-timeout", "60s"]);
    let silent = TcpStream::connect(&server.address).unwrap();
    let mut greeted = ours.connect(&server);
    greeted.conn.complete_io(&mut greeted.sock).unwrap();
    // Connections are accepted in order, so the silent one was accepted, too.
    let begun = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait_for_exit().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    drop(silent);
}
