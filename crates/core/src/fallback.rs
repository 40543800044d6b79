//! A model that was unavailable, and the one that was asked in its place.

use std::fmt;

use crate::{id::ModelName, shorten::short_line};

/// One model took the place of another, in the middle of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// The model that was unavailable, where the host says which it was.
    pub from: Option<ModelName>,
    pub to: ModelName,
    /// Why it was unavailable, for people and models.
    pub why: String,
}

/// How much of a provider's own words is kept.
const LONGEST_WHY: usize = 300;

impl Fallback {
    /// What is kept of it: a provider may say a lot.
    pub fn new(from: Option<ModelName>, to: ModelName, why: &str) -> Self {
        Self {
            from,
            to,
            why: short_line(why, LONGEST_WHY),
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, why } = self;
        match from {
            Some(from) => write!(f, "{from} was unavailable ({why}); {to} goes on instead"),
            None => write!(f, "its model was unavailable ({why}); {to} goes on instead"),
        }
    }
}

/// Whether what a provider refuses with is about the model or who pays for it, and not about the
/// request: there is no key, no credit or no such model, or it is turned away for now. Another model
/// may answer the same request.
pub fn is_about_model(status: u16, message: &str) -> bool {
    let refused = matches!(status, 401..=404 | 408 | 429 | 500..);
    refused || is_out_of_credit(message)
}

/// Whether a provider says that there is no credit: to ask the same model again is of no use.
pub fn is_out_of_credit(message: &str) -> bool {
    const NO_CREDIT: [&str; 3] = [
        "credit balance",
        "insufficient_quota",
        "exceeded your current quota",
    ];
    let message = message.to_lowercase();
    NO_CREDIT.iter().any(|words| message.contains(words))
}

/// Why a run ends that no model was left for: each of them, with what was wrong with it. `tried` are
/// those that were replaced, `last` is the one that was to take over at last, and `skipped` are those
/// that could not even be asked.
pub fn none_left(
    tried: &[Fallback],
    last: (Option<&ModelName>, &str),
    skipped: &[(ModelName, String)],
) -> String {
    let name = |model: Option<&ModelName>| model.map_or("its model", ModelName::as_str).to_owned();
    let (model, why) = last;
    if tried.is_empty() && skipped.is_empty() {
        return why.to_owned();
    }
    let tried = tried
        .iter()
        .map(|one| (name(one.from.as_ref()), one.why.clone()));
    let skipped = skipped
        .iter()
        .map(|(model, why)| (model.to_string(), why.clone()));
    let all = tried.chain([(name(model), why.to_owned())]).chain(skipped);
    let all: Vec<String> = all
        .map(|(model, why)| format!("{model}: {}", short_line(&why, LONGEST_WHY)))
        .collect();
    format!("no model is left to ask; {}", all.join("; "))
}
