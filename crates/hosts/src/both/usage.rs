//! What the answers of models have used.

use asyncagents_core::budget::{Cost, Spent};
use serde::Deserialize;

use super::json::or_default;

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct Tokens {
    #[serde(default, deserialize_with = "or_default")]
    input: f64,
    #[serde(default, deserialize_with = "or_default")]
    output: f64,
    #[serde(default, deserialize_with = "or_default")]
    reasoning: f64,
    #[serde(default, deserialize_with = "or_default")]
    cache: Cache,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Cache {
    #[serde(default, deserialize_with = "or_default")]
    read: f64,
    #[serde(default, deserialize_with = "or_default")]
    write: f64,
}

impl Tokens {
    fn sum(self) -> u64 {
        whole(self.input + self.output + self.reasoning + self.cache.read + self.cache.write)
    }
}

/// What an answer has used. OpenCode counts an unknown price as zero, so tokens that cost nothing are
/// taken for unpriced.
pub(crate) fn answer(tokens: Option<Tokens>, dollars: Option<f64>) -> Spent {
    let tokens = tokens.unwrap_or_default().sum();
    let cost = Cost(whole(dollars.unwrap_or(0.0) * 1e6));
    Spent::of_answer(tokens, Some(cost).filter(|cost| *cost != Cost(0)))
}

/// A count that a program in another language kept as a float.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and less than nothing is nothing"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
