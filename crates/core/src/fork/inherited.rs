//! A message as the child will see it: in full at first, then as each step leaves it.

use super::{
    Limits,
    cut_text::{Kept, Slice},
    since_compaction::is_shown,
};
use crate::transcript::{CallId, Message, Outcome, Part, ToolCall};

/// A message as the child will see it. All slices of the parent's text.
#[derive(Clone)]
pub(super) struct Inherited<'t> {
    /// The messages among which it is, and its place there.
    pub(super) messages: &'t [Message<'t>],
    pub(super) at: usize,
    pub(super) parts: Vec<Shown<'t>>,
}

/// A part as the child will see it.
#[derive(Clone)]
pub(super) enum Shown<'t> {
    Text(Slice<'t>),
    Call(ShownCall<'t>),
}

/// A call and its result as the child will see them.
#[derive(Clone)]
pub(super) struct ShownCall<'t> {
    pub(super) call: &'t ToolCall<'t>,
    /// Only if it is to be shown.
    pub(super) id: Option<&'t str>,
    pub(super) tier: Tier,
    /// The parameters, or their beginning.
    pub(super) params: Slice<'t>,
    pub(super) params_cut: bool,
    /// Nothing if there is no result.
    pub(super) result: Kept<'t>,
    pub(super) fate: Fate,
}

/// How far back a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    Whole,
    Middle,
    Old,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Whole,
    Cut,
    /// The host threw it away before the fork.
    Cleared,
    /// A newer result of the same call has the same text.
    Repeated,
}

impl<'t> Inherited<'t> {
    /// All of a message that has `newer` results after it.
    pub(super) fn in_full(
        messages: &'t [Message<'t>],
        at: usize,
        newer: usize,
        limits: &Limits,
    ) -> Self {
        let mut parts = Vec::with_capacity(messages[at].parts.len());
        parts.extend(parts_in_full(&messages[at], newer, limits));
        Self {
            messages,
            at,
            parts,
        }
    }

    pub(super) fn original(&self) -> &'t Message<'t> {
        &self.messages[self.at]
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &ShownCall<'t>> {
        self.parts.iter().filter_map(|part| match part {
            Shown::Text(_) => None,
            Shown::Call(call) => Some(call),
        })
    }

    pub(super) fn calls_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut ShownCall<'t>> {
        self.parts.iter_mut().filter_map(|part| match part {
            Shown::Text(_) => None,
            Shown::Call(call) => Some(call),
        })
    }
}

/// The parts of a message that has `newer` results after it, with nothing left out.
pub(super) fn parts_in_full<'t>(
    message: &'t Message<'t>,
    newer: usize,
    limits: &Limits,
) -> impl Iterator<Item = Shown<'t>> {
    // Places are counted from the newest, so the message's first result comes last.
    let mut place = newer + message.results();
    let shown = message.parts.iter().filter(|part| is_shown(message, part));
    shown.map(move |part| match part {
        Part::Text(text) => Shown::Text(Slice::all(text)),
        Part::Tool(call) => {
            let tier = Tier::at(place, limits);
            place -= usize::from(call.has_result());
            Shown::Call(ShownCall::in_full(call, tier, limits.call_ids))
        }
    })
}

impl<'t> ShownCall<'t> {
    fn in_full(call: &'t ToolCall<'t>, tier: Tier, shows_id: bool) -> Self {
        let (result, fate) = match &call.outcome {
            Outcome::Pending => (Slice::default(), Fate::Whole),
            Outcome::Completed(text) | Outcome::Failed(text) => (Slice::all(text), Fate::Whole),
            Outcome::Cleared => (Slice::counted(Outcome::CLEARED), Fate::Cleared),
        };
        Self {
            call,
            id: call.id.as_ref().filter(|_| shows_id).map(CallId::as_str),
            tier,
            params: Slice::all(&call.input),
            params_cut: false,
            result: Kept::whole(result),
            fate,
        }
    }
}

impl Tier {
    /// The tier of the result at a place, 1 being the newest. A call without a result
    /// has the place of the nearest newer result; where there is none, of the newest.
    fn at(place: usize, limits: &Limits) -> Self {
        let place = place.max(1);
        if place <= limits.whole_results {
            Tier::Whole
        } else if place <= limits.whole_results + limits.middle_results {
            Tier::Middle
        } else {
            Tier::Old
        }
    }
}
