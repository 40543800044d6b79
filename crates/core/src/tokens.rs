//! Tokens, counted as a model counts them.

pub use asyncagents_tokens::o200k;
