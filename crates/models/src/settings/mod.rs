//! Which models there are, as the configuration says.

pub(crate) mod catalog;

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::{key::KeySource, wire::Wire};

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who answers. Of two with the same name, the later one counts.
    pub providers: Vec<Provider>,
    /// Short names: `sonnet` for `anthropic/claude-…`.
    pub aliases: BTreeMap<String, String>,
    /// A price table in JSON. What it says about a model is put over the built-in table.
    pub prices: Option<String>,
    /// How often a request is sent before it fails.
    pub attempts: u32,
    /// A stream that brings no byte for this long is broken. One that brings only keep-alives
    /// is too, after [`Settings::KEEP_ALIVES`] times as long.
    pub idle_timeout: Duration,
    /// A provider that asks for a longer wait than this gets none: it is an error.
    pub longest_wait: Duration,
    /// How many bytes one answer may have: text, reasoning, calls, and what is passed through.
    /// A longer one is dropped, and the request fails.
    pub max_answer: usize,
    /// How many bytes the arguments of one call may have.
    pub max_arguments: usize,
}

impl Settings {
    /// How many times [`Settings::idle_timeout`] a model may take while its provider sends nothing but
    /// signs of life. Some models think for many minutes without a word.
    pub const KEEP_ALIVES: u32 = 4;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            providers: catalog::providers(),
            aliases: catalog::aliases(),
            prices: None,
            attempts: 8,
            idle_timeout: Duration::from_secs(300),
            longest_wait: Duration::from_secs(300),
            // The longest answers that models give, 128,000 tokens, have some 600,000 bytes.
            max_answer: 8_000_000,
            max_arguments: 4_000_000,
        }
    }
}

/// A service that answers for models.
#[derive(Clone, PartialEq, Eq)]
pub struct Provider {
    /// What comes before the `/` in a model's name.
    pub name: String,
    /// What it speaks.
    pub wire: Wire,
    /// Where it is, with or without `/v1`.
    pub base_url: String,
    pub key: KeySource,
    /// Sent with each request, over the usual ones.
    pub headers: Vec<(String, String)>,
}

// The address and the headers of a provider may hold secrets.
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("wire", &self.wire)
            .field("base_url", &catalog::shown(&self.base_url))
            .field("key", &self.key)
            .field("headers", &headers)
            .finish()
    }
}
