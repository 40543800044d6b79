//! A fork as messages: what has to change in a copy of the parent's own, or which of them a session
//! is made of.

use super::{
    ForkError, Limits, Parent, fit_budget,
    inherited::Inherited,
    pipeline,
    preamble::{self, Form},
    since_compaction,
    stats::{self, CutToFit},
};
use crate::transcript::{CallId, MessageId};

/// What has to change in a copy of a conversation, so that a child inherits from it what it
/// would inherit as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edits {
    /// Results that are cut, or that a line stands for.
    pub cut: Vec<CutResult>,
    /// Messages that go. What a compaction stands for is not among them.
    pub removed: Vec<MessageId<'static>>,
    /// What the child must know about the messages.
    pub preamble: String,
}

/// The messages of which a session is made, so that a child inherits from it what it would inherit
/// as text. Unlike [`Edits`] it needs no message that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Messages that stay: a summary first, then the others, oldest first.
    pub kept: Vec<MessageId<'static>>,
    /// Results in them that are cut, or that a line stands for.
    pub cut: Vec<CutResult>,
    /// What the child must know about the messages.
    pub preamble: String,
}

/// A result that is cut, or that a line stands for.
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
    if parent.unread && recent.boundary.is_none() {
        return Ok(None);
    }
    let fitted = fit_budget::fit(pipeline::run(&recent, limits), limits, &count_tokens)?;
    if fitted.cut_to_fit != CutToFit::default() {
        return Ok(None);
    }
    // A summary is the first of the blocks, and stays as it is.
    let kept = &fitted.blocks[usize::from(recent.summary().is_some())..];
    let cut = kept.iter().rev().flat_map(|block| cut_in(&block.message));
    let gone = recent.newest_first().skip(kept.len());
    let gone = gone.map(|at| Some(recent.messages[at].id.clone()?.into_owned()));
    let (Some(cut), Some(removed)) = (cut.collect(), gone.collect::<Option<Vec<_>>>()) else {
        return Ok(None);
    };
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

/// Chooses the messages. Nothing if it cannot be done: a message is too long by itself, or has no
/// name.
///
/// # Errors
/// Only if the limits say to refuse what does not fit.
pub fn excerpt(
    parent: &Parent,
    limits: &Limits,
    count_tokens: impl Fn(&str) -> usize,
) -> Result<Option<Excerpt>, ForkError> {
    let recent = since_compaction::recent(parent);
    let fitted = fit_budget::fit(pipeline::run(&recent, limits), limits, &count_tokens)?;
    if fitted.cut_to_fit != CutToFit::default() {
        return Ok(None);
    }
    let messages = || fitted.blocks.iter().map(|block| &block.message);
    let kept = messages().map(|message| Some(message.original().id.clone()?.into_owned()));
    let cut = messages().flat_map(cut_in);
    let (Some(kept), Some(cut)) = (kept.collect(), cut.collect()) else {
        return Ok(None);
    };
    let stats = stats::gather(parent, &recent, &fitted, limits);
    Ok(Some(Excerpt {
        kept,
        cut,
        preamble: preamble::write(&stats, limits, Form::Messages),
    }))
}

/// The cut results of a message; `None` for one that cannot be named.
fn cut_in(message: &Inherited) -> impl Iterator<Item = Option<CutResult>> {
    let id = message.original().id.as_ref();
    let cut = message.calls().filter(|call| call.result.is_cut());
    cut.map(move |call| {
        Some(CutResult {
            message: id?.clone().into_owned(),
            call: call.call.id.clone()?.into_owned(),
            text: call.result.to_text(),
        })
    })
}
