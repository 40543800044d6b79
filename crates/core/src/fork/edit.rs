//! A fork as messages: what has to change in a copy of the parent's own.

use super::{
    ForkError, Limits, Parent,
    cut_results::{self, Shown},
    fit_budget,
    preamble::{self, Form},
    since_compaction,
    stats::{self, CutToFit},
};
use crate::transcript::{CallId, MessageId, Part};

/// What has to change in a copy of a conversation, so that a child inherits from it what it
/// would inherit as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edits {
    /// Results that are cut.
    pub cut: Vec<CutResult>,
    /// Messages that go. What a compaction stands for is not among them.
    pub removed: Vec<MessageId<'static>>,
    /// What the child must know about the messages.
    pub preamble: String,
}

/// A result that is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutResult {
    /// The message it is in. Calls of different messages may have the same name.
    pub message: MessageId<'static>,
    /// The call it belongs to.
    pub call: CallId<'static>,
    /// What stays.
    pub text: String,
}

/// Works out the edits. Nothing if it cannot be done by them: a message is too long by itself,
/// or has no name.
///
/// # Errors
/// Only if the limits say to refuse what does not fit.
pub fn edits(
    parent: &Parent,
    limits: &Limits,
    count_tokens: impl Fn(&str) -> usize,
) -> Result<Option<Edits>, ForkError> {
    let recent = since_compaction::recent(parent);
    if parent.is_end() && recent.boundary.is_none() {
        return Ok(None);
    }
    let fitted = fit_budget::fit(cut_results::cut(&recent, limits), limits, &count_tokens)?;
    if fitted.cut_to_fit != CutToFit::default() {
        return Ok(None);
    }
    let summaries = usize::from(recent.summary().is_some());
    let kept = fitted.blocks.len() - summaries;
    let mut cut = Vec::new();
    let mut removed = Vec::new();
    let shown = cut_results::cut(&recent, limits).newest_first;
    for (at, (message, shown)) in recent.newest_first().zip(shown).enumerate() {
        if at >= kept {
            let Some(id) = &message.id else {
                return Ok(None);
            };
            removed.push(id.clone().into_owned());
            continue;
        }
        let calls = message.parts.iter().filter_map(|part| match part {
            Part::Tool(call) if message.finished || call.has_result() => Some(call),
            Part::Tool(_) | Part::Text(_) => None,
        });
        let results = shown.parts.iter().filter_map(|part| match part {
            Shown::Call { result, .. } => Some(result),
            Shown::Text(_) => None,
        });
        for (call, result) in calls.zip(results) {
            let Some(result) = result.as_ref().filter(|result| result.text.is_cut()) else {
                continue;
            };
            let (Some(message), Some(call)) = (&message.id, &call.id) else {
                return Ok(None);
            };
            cut.push(CutResult {
                message: message.clone().into_owned(),
                call: call.clone().into_owned(),
                text: result.text.to_text(),
            });
        }
    }
    // What a host keeps beside a summary begins with a message of which it knows the name.
    if !removed.is_empty() && !recent.tail.is_empty() {
        return Ok(None);
    }
    let stats = stats::gather(parent, &recent, &fitted, limits);
    Ok(Some(Edits {
        cut,
        removed,
        preamble: preamble::write(&stats, limits, Form::Messages),
    }))
}
