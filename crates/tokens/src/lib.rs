//! Tokens, counted as OpenAI's models of today count them, with the vocabulary o200k.
//!
//! `build.rs` lays the vocabulary out as tables that are looked into as they lie in the program's
//! file, so that a process which counts a little pays for a little.

mod character;
mod layout;
mod merge;
mod pieces;
mod vocabulary;

/// Counts the tokens of `text`. Names of special tokens are text like any other.
pub fn o200k(text: &str) -> usize {
    pieces::pieces(text).map(merge::count).sum()
}
