//! A session's conversation, read newest first, and no more of it than needed.

use asyncagents_core::{
    fork::{Limits, Plan, Reach},
    port::{HostError, Recent},
    transcript::{Message, Outcome, Part, Skipped, Transcript},
};

use super::pages::Pages;

/// The end of a conversation, and the messages of it as OpenCode wrote them.
pub(crate) struct End {
    pub(crate) recent: Recent,
    /// JSON lists of messages. Each is oldest first, the newest list comes first.
    pub(crate) lists: Vec<String>,
}

/// The end of a conversation, as far back as a fork reaches. `prefix` is what our tools' names begin
/// with.
pub(crate) async fn end_of(pages: Pages<'_>, plan: &Plan, prefix: &str) -> Result<End, HostError> {
    let asked_in = plan.asked_in.as_deref();
    let asking = asked_in.map(|message| Asking { message, prefix });
    let end = read_back(pages.clone(), &plan.limits, asking).await?;
    let is_found = !end.recent.transcript.messages().is_empty();
    if asking.is_none() || is_found {
        return Ok(end);
    }
    // The message that asked was removed: the conversation without it is inherited.
    read_back(pages, &plan.limits, None).await
}

/// The whole conversation.
pub(crate) async fn all(mut pages: Pages<'_>) -> Result<Transcript<'static>, HostError> {
    let mut read = Read::default();
    while let Some(page) = pages.next().await? {
        read.add(&understood(&pages, &page.list)?, None);
    }
    Ok(read.into_transcript())
}

/// The message that asks for a fork.
#[derive(Clone, Copy)]
struct Asking<'a> {
    message: &'a str,
    /// What our tools' names begin with.
    prefix: &'a str,
}

/// Reads until it is enough.
async fn read_back(
    mut pages: Pages<'_>,
    limits: &Limits,
    asking: Option<Asking<'_>>,
) -> Result<End, HostError> {
    let mut reach = Reach::new(limits);
    let mut read = Read::default();
    let mut lists = Vec::new();
    let mut enough = false;
    while !enough && let Some(page) = pages.next().await? {
        read.add(&understood(&pages, &page.list)?, asking);
        enough = reach.is_enough(&read.newest_first);
        lists.push(page.list);
    }
    let recent = Recent {
        transcript: read.into_transcript(),
        unread: pages.has_more(),
    };
    Ok(End { recent, lists })
}

fn understood<'l>(pages: &Pages<'_>, list: &'l str) -> Result<Transcript<'l>, HostError> {
    let read = pages.format().read(list);
    read.map_err(|error| HostError::Refused(format!("its messages cannot be read: {error}")))
}

/// What was read of a conversation.
#[derive(Default)]
struct Read {
    newest_first: Vec<Message<'static>>,
    skipped: Skipped,
}

impl Read {
    /// Adds what is older. What is newer than the message that asks is left out.
    fn add(&mut self, older: &Transcript, asking: Option<Asking<'_>>) {
        self.skipped.messages += older.skipped().messages;
        self.skipped.parts += older.skipped().parts;
        for message in older.messages().iter().rev() {
            let mut message = message.clone().into_owned();
            if let Some(asking) = asking.filter(|_| self.newest_first.is_empty()) {
                let id = message.id.as_ref().map(|id| id.as_str());
                if id != Some(asking.message) {
                    continue;
                }
                mark_pending(&mut message, asking.prefix);
            }
            self.newest_first.push(message);
        }
    }

    fn into_transcript(mut self) -> Transcript<'static> {
        self.newest_first.reverse();
        Transcript::new(self.newest_first, self.skipped)
    }
}

/// The message that asks for a fork, as it was then: by now its calls may have answers, among
/// them the launch of the very child that inherits it.
fn mark_pending(message: &mut Message, prefix: &str) {
    message.finished = false;
    for part in &mut message.parts {
        if let Part::Tool(call) = part
            && call.name.as_str().starts_with(prefix)
        {
            call.outcome = Outcome::Pending;
        }
    }
}
