//! Which records are the conversation, and in which order.

use std::{borrow::Cow, collections::HashMap};

use memchr::memmem;

use super::{
    messages::{has_call, summary_text},
    record::{Kept, Kind, Record},
};
use crate::read::lines::{Reached, Reading};

/// The records of a file, and which of them the conversation is: a chain that ends with the newest.
/// What was said before the user went back, and said something else, is in the file but not in the
/// chain.
pub(super) struct Chain<'a> {
    pub(super) records: Vec<Record<'a>>,
    /// Oldest first, by compactions.
    pub(super) stretches: Vec<Stretch>,
    /// Where the call is that asks for a fork.
    pub(super) asking: Option<usize>,
    pub(super) reached: Reached,
    /// Of each record, the one that it follows.
    links: Vec<Link>,
    is_in_chain: Vec<bool>,
    /// Of each record, the first of its name: some are written again.
    first_copy: Vec<usize>,
}

/// What came after a compaction, or after nothing, and before the next one.
pub(super) struct Stretch {
    pub(super) compaction: Option<Compacted>,
    /// Its first record, and the one after its last. Not all between them are in the chain.
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Where a compaction is. Without a boundary, the summary is one.
#[derive(Debug, Clone, Copy)]
struct Compaction {
    boundary: usize,
    summary: usize,
}

impl Compaction {
    /// The first record that came after it.
    fn first_after(self) -> usize {
        self.summary.min(self.boundary + 1)
    }
}

/// A compaction that the conversation has.
pub(super) struct Compacted {
    pub(super) boundary: usize,
    pub(super) summary: usize,
    /// The records before it that are read after its summary.
    pub(super) kept: Vec<usize>,
}

/// What a record follows.
#[derive(Debug, Clone, Copy)]
enum Link {
    Nothing,
    To(usize),
    /// A record that was not read.
    Unknown,
}

/// Why a chain goes no further back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Beginning,
    /// What comes next is older than a compaction.
    Boundary,
    /// This record follows one that was not read.
    Unknown(usize),
}

impl<'a> Chain<'a> {
    pub(super) fn new(records: Vec<Record<'a>>, reading: &Reading) -> Self {
        let mut chain = Self {
            stretches: Vec::new(),
            asking: None,
            reached: Reached::TooLittle,
            links: Vec::new(),
            is_in_chain: Vec::new(),
            first_copy: Vec::new(),
            records,
        };
        if let Some(reached) = chain.find(reading) {
            chain.reached = reached;
        } else {
            chain.stretches.clear();
        }
        chain
    }

    /// Whether a record is in the chain itself.
    pub(super) fn has(&self, at: usize) -> bool {
        self.is_in_chain.get(at).copied().unwrap_or_default()
    }

    /// The first record of the same name.
    pub(super) fn first_copy(&self, at: usize) -> usize {
        self.first_copy.get(at).copied().unwrap_or(at)
    }

    /// The record that another follows.
    pub(super) fn parent(&self, at: usize) -> Option<usize> {
        match self.links.get(at) {
            Some(Link::To(parent)) => Some(*parent),
            Some(Link::Nothing | Link::Unknown) | None => None,
        }
    }

    /// Finds the conversation. Nothing if older records are needed to say what it is.
    fn find(&mut self, reading: &Reading) -> Option<Reached> {
        self.leave_out_sub_agents(reading)?;
        let compactions = self.compactions();
        let by_uuid = self.link(&compactions);
        self.is_in_chain = vec![false; self.records.len()];
        self.asking = reading.asked_in.and_then(|call| self.asking(call));
        if reading.asked_in.is_some() && self.asking.is_none() && reading.has_more {
            return None;
        }
        let newest = match self.asking {
            Some(asking) => Some(asking),
            None => self.records.iter().rposition(|record| {
                record.is_conversation() || matches!(record.kind, Kind::Attachment { .. })
            }),
        };
        let Some(newest) = newest else {
            return (!reading.has_more).then_some(Reached::Beginning);
        };

        let (reached, mut before) = self.newest_stretch(newest, &compactions, &by_uuid, reading)?;
        // What a compaction stands for is only counted, so it need not be there.
        while let Some(newest) = before.filter(|_| !reading.has_more) {
            let compaction = compaction_before(&compactions, newest);
            let from = compaction.map_or(0, Compaction::first_after);
            let ended = self.follow(newest, from, false);
            let compaction = compaction.filter(|_| ended == Ended::Boundary);
            before = compaction.and_then(|compaction| self.before(compaction.boundary, &by_uuid));
            self.stretches.push(Stretch {
                compaction: compaction.map(|compaction| Compacted {
                    boundary: compaction.boundary,
                    summary: compaction.summary,
                    kept: Vec::new(),
                }),
                from,
                to: newest + 1,
            });
        }
        self.stretches.reverse();
        Some(reached)
    }

    /// Records of sub-agents are none of a session's conversation; in a file of their own they are.
    fn leave_out_sub_agents(&mut self, reading: &Reading) -> Option<()> {
        if reading.of_sub_agent {
            return Some(());
        }
        let mut said = self
            .records
            .iter()
            .filter(|record| record.is_conversation());
        let is_session = said.any(|record| !record.is_sidechain);
        if is_session {
            self.records.retain(|record| !record.is_sidechain);
        }
        (is_session || !reading.has_more).then_some(())
    }

    /// The compactions that have a summary, oldest first. Without one that can be read a boundary
    /// stands for nothing: everything before would be lost.
    fn compactions(&self) -> Vec<Compaction> {
        let mut boundary = None;
        let mut compactions = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            match &record.kind {
                Kind::Boundary { .. } => boundary = Some(at),
                Kind::User {
                    message,
                    is_summary: true,
                    ..
                } if summary_text(message).is_some() => compactions.push(Compaction {
                    boundary: boundary.take().unwrap_or(at),
                    summary: at,
                }),
                _ => {}
            }
        }
        compactions
    }

    /// Links each record to the one that it follows, which stands before it in the file.
    fn link(&mut self, compactions: &[Compaction]) -> HashMap<Cow<'a, str>, usize> {
        let mut compactions = compactions.iter().peekable();
        let mut by_uuid = HashMap::with_capacity(self.records.len());
        self.links.reserve(self.records.len());
        self.first_copy.reserve(self.records.len());
        for (at, record) in self.records.iter().enumerate() {
            let has_summary = compactions.next_if(|next| next.boundary == at).is_some();
            let parent = match &record.kind {
                Kind::Boundary { after, .. } if !has_summary => after.as_ref(),
                _ => record.parent.as_ref(),
            };
            self.links.push(match parent {
                None => Link::Nothing,
                Some(parent) => by_uuid
                    .get(parent)
                    .map_or(Link::Unknown, |at| Link::To(*at)),
            });
            let before = by_uuid.insert(record.uuid.clone(), at);
            let first = before.map_or(at, |before| self.first_copy[before]);
            self.first_copy.push(first);
        }
        by_uuid
    }

    /// The newest record that makes this call.
    fn asking(&self, call: &str) -> Option<usize> {
        let name = memmem::Finder::new(call);
        self.records.iter().rposition(|record| match &record.kind {
            Kind::Assistant { message: Ok(wire) } => {
                let content = wire.content;
                name.find(content.get().as_bytes()).is_some() && has_call(content, call)
            }
            _ => false,
        })
    }

    /// What came after the last compaction, and where what came before it ends.
    fn newest_stretch(
        &mut self,
        newest: usize,
        compactions: &[Compaction],
        by_uuid: &HashMap<Cow<'a, str>, usize>,
        reading: &Reading,
    ) -> Option<(Reached, Option<usize>)> {
        let compaction = compaction_before(compactions, newest);
        let from = compaction.map_or(0, Compaction::first_after);
        let ended = self.follow(newest, from, reading.has_more);
        let mut stretch = Stretch {
            compaction: None,
            from,
            to: newest + 1,
        };
        let mut before = None;
        let reached = match (ended, compaction) {
            (Ended::Unknown(_), None) => Reached::Middle,
            // A chain may go on from what was kept; anything else is to be looked for.
            (Ended::Unknown(at), Some(compaction))
                if !self.follows_kept(at, compaction.boundary) =>
            {
                return None;
            }
            (Ended::Boundary | Ended::Unknown(_), Some(compaction)) => {
                let (kept, is_complete) = self.kept(compaction.boundary, by_uuid);
                if !is_complete && reading.has_more {
                    return None;
                }
                before = self.before(compaction.boundary, by_uuid);
                stretch.compaction = Some(Compacted {
                    boundary: compaction.boundary,
                    summary: compaction.summary,
                    kept,
                });
                Reached::Compaction
            }
            (Ended::Beginning, _) | (Ended::Boundary, None) => Reached::Beginning,
        };
        self.stretches.push(stretch);
        Some((reached, before))
    }

    /// Follows the chain back to `from`, and marks what it meets. Where a record is missing, which
    /// may be a broken line, it goes on with the one before in the file, unless the missing one may
    /// be yet to be read.
    fn follow(&mut self, newest: usize, from: usize, has_more: bool) -> Ended {
        let mut at = newest;
        loop {
            self.is_in_chain[at] = true;
            let next = match self.links[at] {
                // A summary follows nothing, or what stands for its compaction.
                Link::Nothing if is_summary(&self.records[at]) => return Ended::Boundary,
                Link::Nothing => return Ended::Beginning,
                Link::To(parent) => Some(parent),
                Link::Unknown if has_more => return Ended::Unknown(at),
                Link::Unknown => at.checked_sub(1),
            };
            match next {
                Some(next) if next >= from => at = next,
                Some(_) => return Ended::Boundary,
                None => return Ended::Beginning,
            }
        }
    }

    /// Where what came before a compaction ends.
    fn before(&self, boundary: usize, by_uuid: &HashMap<Cow<'a, str>, usize>) -> Option<usize> {
        let named = match &self.records[boundary].kind {
            Kind::Boundary { after, .. } => after.as_ref(),
            _ => None,
        };
        let named = named.and_then(|uuid| by_uuid.get(uuid)).copied();
        let older = &self.records[..boundary];
        named
            .filter(|at| *at < boundary)
            .or_else(|| older.iter().rposition(Record::is_conversation))
    }

    /// The records that a compaction keeps, in the order of the file, and whether all were found.
    fn kept(&self, boundary: usize, by_uuid: &HashMap<Cow<'a, str>, usize>) -> (Vec<usize>, bool) {
        let find = |uuid| by_uuid.get(uuid).copied().filter(|at| *at < boundary);
        let (mut found, is_complete) = match self.names_of_kept(boundary) {
            Some(Kept { all, .. }) if !all.is_empty() => {
                let found: Vec<usize> = all.iter().filter_map(find).collect();
                let is_complete = found.len() == all.len();
                (found, is_complete)
            }
            Some(Kept {
                ends: Some((first, last)),
                ..
            }) => match (find(first), find(last)) {
                (Some(first), Some(last)) => self.between(first, last),
                _ => (Vec::new(), false),
            },
            _ => (Vec::new(), true),
        };
        found.sort_unstable();
        found.dedup();
        (found, is_complete)
    }

    /// The part of a chain from one record to another, and whether it is one.
    fn between(&self, first: usize, last: usize) -> (Vec<usize>, bool) {
        let mut chain = vec![last];
        let mut at = last;
        while at != first {
            match self.parent(at) {
                Some(parent) => at = parent,
                None => return (Vec::new(), false),
            }
            chain.push(at);
        }
        (chain, true)
    }

    fn names_of_kept(&self, boundary: usize) -> Option<&Kept<'a>> {
        match &self.records[boundary].kind {
            Kind::Boundary { kept, .. } => Some(kept),
            _ => None,
        }
    }

    /// Whether a record follows one that a compaction keeps.
    fn follows_kept(&self, at: usize, boundary: usize) -> bool {
        let Some(kept) = self.names_of_kept(boundary) else {
            return false;
        };
        let last = kept.ends.as_ref().map(|(_, last)| last);
        let parent = self.records[at].parent.as_ref();
        parent.is_some_and(|parent| kept.all.contains(parent) || last == Some(parent))
    }
}

fn is_summary(record: &Record) -> bool {
    matches!(
        record.kind,
        Kind::User {
            is_summary: true,
            ..
        }
    )
}

/// The last compaction before a record, or with it.
fn compaction_before(compactions: &[Compaction], record: usize) -> Option<Compaction> {
    let count = compactions.partition_point(|compaction| compaction.summary <= record);
    count.checked_sub(1).map(|last| compactions[last])
}
