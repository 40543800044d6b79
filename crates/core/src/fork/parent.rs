//! A parent, looked through once: a fork then costs what it keeps, not what there is.

use std::{
    collections::HashMap,
    ops::{Add, Range, Sub},
};

use super::{Limits, Preset, format, inherited::parts_in_full, since_compaction::is_inherited};
use crate::transcript::{Compaction, Message, MessageId, Transcript};

/// A conversation that children can be forked from, as often as one likes.
#[derive(Debug)]
pub struct Parent<'a> {
    transcript: Transcript<'a>,
    /// There are older messages, which were not read.
    pub(super) unread: bool,
    /// The latest complete compaction.
    pub(super) boundary: Option<Boundary>,
    /// The sum over all messages before each, and over all.
    extents: Vec<Extent>,
}

/// The places of the two messages of a compaction; the same twice if it is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Boundary {
    pub(super) request: usize,
    pub(super) summary: usize,
}

/// How much there is in some messages. Lengths are known, so no text is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extent {
    pub(super) messages: usize,
    pub(super) inherited: usize,
    pub(super) results: usize,
    /// Characters, written out with nothing cut.
    pub(super) chars_in_full: usize,
    /// Characters that the IDs of calls would add.
    pub(super) id_chars: usize,
}

impl<'a> Parent<'a> {
    /// Looks through a conversation.
    pub fn new(transcript: Transcript<'a>) -> Self {
        Self {
            boundary: latest_boundary(transcript.messages()),
            extents: running_sums(transcript.messages()),
            transcript,
            unread: false,
        }
    }

    /// Looks through the end of a conversation, of which as much was read as a [`super::Reach`]
    /// asked for.
    pub fn end_of(transcript: Transcript<'a>) -> Self {
        Self {
            unread: true,
            ..Self::new(transcript)
        }
    }

    /// The conversation.
    pub fn transcript(&self) -> &Transcript<'a> {
        &self.transcript
    }

    pub(super) fn messages(&self) -> &[Message<'a>] {
        self.transcript.messages()
    }

    /// How much there is in a stretch of messages.
    pub(super) fn extent(&self, messages: Range<usize>) -> Extent {
        self.extents[messages.end] - self.extents[messages.start]
    }
}

/// The latest request that has a complete summary, and that summary; or a checkpoint.
fn latest_boundary(messages: &[Message]) -> Option<Boundary> {
    let mut answered: HashMap<&MessageId, usize> = HashMap::new();
    for (at, message) in messages.iter().enumerate().rev() {
        match &message.compaction {
            None => {}
            Some(Compaction::Summary {
                request: Some(request),
                complete: true,
            }) => {
                answered.entry(request).or_insert(at);
            }
            Some(Compaction::Summary { .. } | Compaction::Checkpoint { complete: false }) => {}
            Some(Compaction::Checkpoint { complete: true }) => {
                return Some(Boundary {
                    request: at,
                    summary: at,
                });
            }
            Some(Compaction::Request { .. }) => {
                let summary = message.id.as_ref().and_then(|id| answered.get(id));
                if let Some(summary) = summary {
                    return Some(Boundary {
                        request: at,
                        summary: *summary,
                    });
                }
            }
        }
    }
    None
}

fn running_sums(messages: &[Message]) -> Vec<Extent> {
    let with_ids = Limits {
        call_ids: true,
        ..Preset::Exact.limits()
    };
    let mut sum = Extent::default();
    let mut sums = Vec::with_capacity(messages.len() + 1);
    sums.push(sum);
    for message in messages {
        sum.messages += 1;
        if is_inherited(message) {
            let parts = parts_in_full(message, 0, &with_ids);
            let (chars_in_full, id_chars) = format::measure_ids_apart(message.role, parts);
            sum.inherited += 1;
            sum.results += message.results();
            sum.chars_in_full += chars_in_full;
            sum.id_chars += id_chars;
        }
        sums.push(sum);
    }
    sums
}

impl Extent {
    fn each(self, other: Self, work: fn(usize, usize) -> usize) -> Self {
        Self {
            messages: work(self.messages, other.messages),
            inherited: work(self.inherited, other.inherited),
            results: work(self.results, other.results),
            chars_in_full: work(self.chars_in_full, other.chars_in_full),
            id_chars: work(self.id_chars, other.id_chars),
        }
    }
}

impl Add for Extent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.each(other, usize::add)
    }
}

impl Sub for Extent {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.each(other, usize::sub)
    }
}
