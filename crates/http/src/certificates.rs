//! The system's certificates, read once in a process. A distribution has some hundred, in as many
//! files, and to read them takes as long as everything else before a first request.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, crypto::ring};
use rustls_platform_verifier::Verifier;

/// Nothing, if there are none.
static TLS: OnceLock<Option<ClientConfig>> = OnceLock::new();

/// Reads the certificates, unless that was done. For a thread that has nothing else to do, while
/// others prepare the first request.
pub fn load() {
    TLS.get_or_init(read);
}

/// What connections are made with. Waits if the certificates are being read.
pub(crate) fn tls() -> Option<ClientConfig> {
    TLS.get_or_init(read).clone()
}

fn read() -> Option<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(provider.clone()).ok()?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().ok()?;
    let mut tls = builder
        .dangerous()
        // The system's own rules, as reqwest has them.
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = ["h2", "http/1.1"].map(Into::into).to_vec();
    Some(tls)
}
