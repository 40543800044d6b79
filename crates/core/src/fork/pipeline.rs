//! Takes messages through the steps, the newest first.

use super::{Limits, inherited::Inherited, since_compaction::Recent, steps};
use crate::transcript::Message;

/// Something that is done to one message after the other, newest first; to a summary alone, by
/// steps of its own. `Send`, for a host waits for its next page in between.
pub(super) trait Step: Send {
    /// Changes how a message is shown. What it leaves out, it notes in each call's fate.
    fn apply(&mut self, message: &mut Inherited);
}

/// All the steps, and how far they have come.
pub(super) struct Pipeline<'l> {
    limits: &'l Limits,
    steps: Vec<Box<dyn Step + 'l>>,
    /// Results in messages that are newer than the next one.
    newer: usize,
}

impl<'l> Pipeline<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            steps: steps(limits),
            newer: 0,
        }
    }

    /// Takes the next older message through all steps.
    pub(super) fn take<'t>(&mut self, messages: &'t [Message<'t>], at: usize) -> Inherited<'t> {
        let mut message = Inherited::in_full(messages, at, self.newer, self.limits);
        self.newer += messages[at].results();
        for step in &mut self.steps {
            step.apply(&mut message);
        }
        message
    }
}

/// What came out of the steps.
pub(super) struct Conversation<'t, I> {
    /// What stands for everything before.
    pub(super) summary: Option<Inherited<'t>>,
    /// Everything else. A message goes through the steps when it is asked for.
    pub(super) newest_first: I,
}

/// Takes a conversation through all steps.
pub(super) fn run<'t, 'l>(
    recent: &Recent<'t>,
    limits: &'l Limits,
) -> Conversation<'t, impl Iterator<Item = Inherited<'t>> + use<'t, 'l>> {
    let messages = recent.messages;
    let summary = recent.summary().map(|at| {
        // A summary seldom holds results; only then is it worth counting all the others.
        let newer = match messages[at].results() {
            0 => 0,
            _ => recent.newest_first().map(|at| messages[at].results()).sum(),
        };
        let alone = Pipeline::new(limits);
        Pipeline { newer, ..alone }.take(messages, at)
    });
    let mut pipeline = Pipeline::new(limits);
    let newest_first = recent.newest_first();
    Conversation {
        summary,
        newest_first: newest_first.map(move |at| pipeline.take(messages, at)),
    }
}
