//! A run of a session, as it stands in its history.

use asyncagents_core::{
    id::{PostId, SessionId, TaskId},
    port::HostError,
    progress::Totals,
};
use serde::de::DeserializeOwned;

use super::pages::{MessagePages, PAGE, Pages};

/// A message, as far as it says where runs begin and what they use.
pub(crate) trait RunMessage: DeserializeOwned {
    /// What a message of ours is called there.
    fn name_of(post: &PostId) -> String;

    /// What this one is called, if it may be ours.
    fn name(&self) -> Option<&str>;

    /// Adds what the message used.
    fn add_to(&self, totals: &mut Totals);
}

/// A run of a session, as it stands in its history.
pub(crate) struct Run<M> {
    /// What came after the prompt, newest first; nothing if the prompt is not there.
    pub(crate) since: Option<Vec<M>>,
    /// What the session has used since its first prompt.
    pub(crate) totals: Totals,
}

impl<M: RunMessage> Run<M> {
    /// Reads what became of a prompt.
    pub(crate) async fn read(
        api: &dyn MessagePages,
        session: &SessionId,
        prompt: &PostId,
    ) -> Result<Self, HostError> {
        // What a forked session was given before its first prompt is not its own doing.
        let task = prompt.as_str().split('.').next().unwrap_or_default();
        let task = TaskId::from(task);
        let first = [task.prompt(0), task.inheritance()].map(|post| M::name_of(&post));
        let prompt = M::name_of(prompt);
        let (mut since, mut found, mut totals) = (Vec::new(), false, Totals::default());
        let mut pages = Pages::new(api, session, PAGE);
        'read: while let Some(page) = pages.next().await? {
            for message in page.newest_first::<M>()? {
                message.add_to(&mut totals);
                if let Some(name) = message.name() {
                    found |= name == prompt;
                    if first.iter().any(|first| first == name) {
                        break 'read;
                    }
                }
                if !found {
                    since.push(message);
                }
            }
        }
        Ok(Self {
            since: found.then_some(since),
            totals,
        })
    }
}
