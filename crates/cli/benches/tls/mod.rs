//! A server in front of the model that speaks TLS.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

/// The address of a server in front of the model that speaks TLS, if a certificate can be made.
pub(crate) fn in_front_of(runtime: &Runtime, home: &Path, plain: &str) -> Option<String> {
    let (certificate, key) = (home.join("certificate.pem"), home.join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut all = fs::read("/etc/ssl/certs/ca-certificates.crt").unwrap_or_default();
    all.extend(fs::read(&certificate).expect("a certificate"));
    fs::write(roots(home), all).expect("a file");

    let chain = vec![CertificateDer::from_pem_file(&certificate).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_file(&key).expect("a key");
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let host = plain.trim_start_matches("http://").to_owned();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, host) = (acceptor.clone(), host.clone());
            tokio::spawn(async move {
                let mut inner = TcpStream::connect(host).await.expect("the model");
                if let Ok(mut outer) = acceptor.accept(stream).await {
                    let _ = copy_bidirectional(&mut outer, &mut inner).await;
                }
            });
        }
    });
    Some(format!("https://localhost:{port}"))
}

/// The system's certificates and the model's.
pub(crate) fn roots(home: &Path) -> PathBuf {
    home.join("roots.pem")
}
