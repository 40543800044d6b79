//! A step: an older result that the same call gave again later, with the same text, becomes a
//! line that says where the text is.

use std::{collections::HashMap, hash::BuildHasher, mem};

use super::{
    Limits,
    cut_text::Kept,
    inherited::{Fate, Inherited, ShownCall, Tier},
    pipeline::Step,
};
use crate::transcript::{Message, Outcome, Part, ToolCall};

/// What mostly stands in place of a result. It has nothing of the parent's text, so nothing there
/// can break out of it.
const SAME_AS_NEWEST: &str =
    "[Same text as the newest result of this same call, which is whole further down]";
/// How many texts of one call are remembered, so that a command that printed something else each
/// time is not compared with all of them.
const MOST_TEXTS: usize = 64;
/// How much of the beginning and of the end of a call's parameters is hashed.
const HASHED: usize = 64;

/// Remembers where the results of newer messages are, not what they say.
pub(super) struct RepeatedReads<'l> {
    limits: &'l Limits,
    /// By the hash of a call; or, if another call has the same, by the next free number.
    newer: HashMap<u64, Results>,
    is_first: bool,
}

/// A message, and one of its parts.
type Place = (usize, usize);

/// The results of one call, however often it was made.
struct Results {
    newest: Place,
    count: usize,
    /// Those with different texts that are whole, each with its number, 1 being the newest.
    whole: Vec<(Place, usize)>,
}

impl Step for RepeatedReads<'_> {
    fn apply(&mut self, message: &mut Inherited) {
        if !self.limits.mark_repeated_reads {
            return;
        }
        // The newest message may yet be cut to fit, and the copy in it with it. So may a
        // summary, which has steps of its own and is the first there.
        let may_be_cut = mem::replace(&mut self.is_first, false);
        let (messages, at) = (message.messages, message.at);
        let parts = messages[at].parts.iter().enumerate().rev();
        let results =
            parts.filter(|(_, part)| matches!(part, Part::Tool(call) if call.has_result()));
        let shown = message
            .calls_mut()
            .rev()
            .filter(|call| call.call.has_result());
        for ((part, _), call) in results.zip(shown) {
            let copy = self.remember(call, messages, (at, part));
            if let Some(number) = copy.filter(|_| !may_be_cut) {
                self.replace(call, number);
            }
        }
    }
}

impl<'l> RepeatedReads<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            newer: HashMap::new(),
            is_first: true,
        }
    }

    /// Takes note of a result. If a newer one of the same call has the same text and is whole, its
    /// number.
    fn remember(&mut self, shown: &ShownCall, messages: &[Message], place: Place) -> Option<usize> {
        let known = self.results_of(shown.call, messages, place);
        known.count += 1;
        let Outcome::Completed(text) = &shown.call.outcome else {
            return None;
        };
        if text.chars() <= SAME_AS_NEWEST.len() {
            return None;
        }
        let is_copy = |(place, _): &&(Place, usize)| {
            call_at(messages, *place).is_some_and(|call| call.outcome == shown.call.outcome)
        };
        let copy = known.whole.iter().find(is_copy).map(|(_, number)| *number);
        if copy.is_none() && shown.fate == Fate::Whole && known.whole.len() < MOST_TEXTS {
            known.whole.push((place, known.count));
        }
        copy
    }

    /// What is known of the results of a call. If nothing is, the one at `place` is the newest.
    fn results_of(&mut self, call: &ToolCall, messages: &[Message], place: Place) -> &mut Results {
        let is_same = |known: &Results| {
            let newest = call_at(messages, known.newest);
            newest.is_some_and(|newest| newest.input == call.input && newest.name == call.name)
        };
        let mut key = self.hash(call);
        while self.newer.get(&key).is_some_and(|known| !is_same(known)) {
            key = key.wrapping_add(1);
        }
        self.newer.entry(key).or_insert(Results {
            newest: place,
            count: 0,
            whole: Vec::new(),
        })
    }

    fn replace(&self, call: &mut ShownCall, number: usize) {
        let marker = marker(number);
        let is_newest = call.tier == Tier::Whole;
        // A call that is not shown whole cannot be recognised as the same as another.
        if is_newest
            || call.params_cut
            || self.limits.is_uncut(call.call.name.as_str())
            || marker.len() >= call.result.chars()
        {
            return;
        }
        call.result = Kept::replaced(marker);
        call.fate = Fate::Repeated;
    }

    /// Parameters may be as long as a file that is written, so not all of them.
    fn hash(&self, call: &ToolCall) -> u64 {
        let input = call.input.as_str().as_bytes();
        let (first, rest) = input.split_at(input.len().min(HASHED));
        let last = &rest[rest.len().saturating_sub(HASHED)..];
        let name = call.name.as_str();
        self.newer
            .hasher()
            .hash_one((name, input.len(), first, last))
    }
}

fn call_at<'m>(messages: &'m [Message<'m>], (at, part): Place) -> Option<&'m ToolCall<'m>> {
    match &messages[at].parts[part] {
        Part::Text(_) => None,
        Part::Tool(call) => Some(call),
    }
}

fn marker(number: usize) -> String {
    match number {
        1 => SAME_AS_NEWEST.to_owned(),
        _ => format!(
            "[Same text as result {number} of this same call, counted from the newest, which is \
             whole further down]"
        ),
    }
}
