//! What proves that it is the agent that asks: other users of this machine can connect too.

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::header::{HeaderMap, PROXY_AUTHORIZATION};
use uuid::Uuid;

const USER: &str = "asyncagents";

/// A password for one proxy.
pub(super) struct Login {
    password: String,
    expected: String,
}

impl Login {
    /// A new one, from the system's randomness.
    pub(super) fn new() -> Self {
        let password = Uuid::new_v4().simple().to_string();
        let words = STANDARD.encode(format!("{USER}:{password}"));
        Self {
            password,
            expected: format!("Basic {words}"),
        }
    }

    /// The proxy's address, with the login in it.
    pub(super) fn address(&self, port: u16) -> String {
        format!("http://{USER}:{}@127.0.0.1:{port}", self.password)
    }

    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(PROXY_AUTHORIZATION);
        given.is_some_and(|given| is_same(given.as_bytes(), self.expected.as_bytes()))
    }
}

/// Takes as long wherever they differ.
fn is_same(given: &[u8], expected: &[u8]) -> bool {
    let pairs = given.iter().zip(expected);
    let differing = pairs.fold(0, |differing, (a, b)| differing | (a ^ b));
    given.len() == expected.len() && differing == 0
}
