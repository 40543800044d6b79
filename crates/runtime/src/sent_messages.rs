//! Which messages to a child may have set it to work.

use asyncagents_core::{
    port::{Fate, Journal, PostKind, Stored},
    task::Task,
};

/// The messages to a child in one run that may have been sent.
pub(crate) struct SentMessages {
    pub(crate) on_their_way: usize,
    pub(crate) delivered: usize,
}

impl SentMessages {
    pub(crate) fn of(journal: &mut dyn Journal, task: &Task) -> Stored<Self> {
        let posts = journal.posts(&task.id)?;
        let messages = posts
            .iter()
            .filter(|post| post.run == task.run && post.kind == PostKind::Message);
        let messages: Vec<_> = messages.collect();
        let count = |fate: Fate| {
            let sent = messages.iter().filter(|post| post.attempted);
            sent.filter(|post| post.fate == fate).count()
        };
        Ok(Self {
            on_their_way: count(Fate::Pending),
            delivered: count(Fate::Delivered),
        })
    }
}
