//! HTTP clients: which are asked through a proxy, and which certificates they trust.

mod certificates;

use std::net::IpAddr;

pub use certificates::load as load_certificates;
use reqwest::{Client, ClientBuilder, Url, redirect::Policy};
use rustls::crypto::ring;

/// A client for a server. A proxy is never asked for this machine, and a redirect, which could
/// carry a key to another server, is not followed.
pub fn builder(url: &Url) -> ClientBuilder {
    // It fails if there is a provider already, which is as good.
    let _ = ring::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .user_agent(concat!("asyncagents/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Reading the system's certificates takes time.
        return builder.tls_certs_only([]);
    }
    match certificates::tls() {
        Some(tls) => builder.tls_backend_preconfigured(tls),
        // Building the client will say why there are none.
        None => builder,
    }
}

/// Whether a server is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
