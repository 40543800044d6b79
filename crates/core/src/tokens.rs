//! Tokens, counted as a model counts them.

/// Counts the tokens of `text` in the o200k vocabulary.
///
/// The first call loads the vocabulary, some 80 ms; [`warm_up`] does that ahead of time.
pub fn o200k(text: &str) -> usize {
    vocabulary().map_or_else(|| text.len(), |vocabulary| vocabulary.count(text))
}

/// Loads the vocabulary, so that the first count does not wait for it.
pub fn warm_up() {
    vocabulary();
}

fn vocabulary() -> Option<&'static tiktoken::CoreBpe> {
    // Compiled in, so never absent; were it, a byte is at most one token.
    tiktoken::get_encoding("o200k_base")
}
