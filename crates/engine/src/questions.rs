//! What sessions have asked for and wait for, in this process. An answer is for the very call that
//! was asked about, and the first one counts.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use asyncagents_core::{
    agent::{Call, CallInfo, Conversation, Preview},
    digest::digest,
    id::SessionId,
    lock::lock,
    question::{Question, Reply, about_call},
};
use tokio::sync::oneshot;

/// The questions that are open, by session and name.
#[derive(Default)]
pub(crate) struct Questions {
    open: Mutex<HashMap<(SessionId, String), Asked>>,
    /// Those that were answered here and not asked again: their calls may not have begun yet.
    answered: Mutex<HashSet<(SessionId, String)>>,
    /// Tells reports about one question apart.
    reports: AtomicU64,
}

struct Asked {
    question: Question,
    reply: oneshot::Sender<Reply>,
}

/// A question that waits for its answer. It is open until this is dropped.
pub(crate) struct OpenQuestion<'a> {
    all: &'a Questions,
    key: (SessionId, String),
    reply: oneshot::Receiver<Reply>,
}

impl Questions {
    /// Opens a question. Nothing if it is open already: two calls cannot share an answer.
    pub(crate) fn open(
        &self,
        session: &SessionId,
        name: String,
        question: Question,
    ) -> Option<OpenQuestion<'_>> {
        let key = (session.clone(), name);
        let (sender, reply) = oneshot::channel();
        lock(&self.answered).remove(&key);
        match lock(&self.open).entry(key.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(free) => free.insert(Asked {
                question,
                reply: sender,
            }),
        };
        Some(OpenQuestion {
            all: self,
            key,
            reply,
        })
    }

    /// What a session waits for.
    pub(crate) fn of(&self, session: &SessionId) -> BTreeMap<String, Question> {
        let open = lock(&self.open);
        let own = open.iter().filter(|((asking, _), _)| asking == session);
        own.map(|((_, name), asked)| (name.clone(), asked.question.clone()))
            .collect()
    }

    /// Answers a question. False if it is not open.
    pub(crate) fn answer(&self, session: &SessionId, name: &str, reply: Reply) -> bool {
        let key = (session.clone(), name.to_owned());
        let mut open = lock(&self.open);
        // Under the lock: whoever withdraws the question finds the answer.
        let asked = open.remove(&key);
        let taken = asked.is_some_and(|asked| asked.reply.send(reply).is_ok());
        if taken {
            lock(&self.answered).insert(key);
        }
        taken
    }

    /// Whether a question was answered here, and not asked again since.
    pub(crate) fn was_answered(&self, session: &SessionId, name: &str) -> bool {
        let key = (session.clone(), name.to_owned());
        lock(&self.answered).contains(&key)
    }

    /// Drops what is kept of a session that is deleted.
    pub(crate) fn forget(&self, session: &SessionId) {
        lock(&self.answered).retain(|(of, _)| of != session);
    }

    /// A key for a report about a question, which may be asked again after a failure.
    pub(crate) fn report_key(&self, name: &str) -> String {
        let number = self.reports.fetch_add(1, Ordering::Relaxed);
        format!("question {name} {number}")
    }
}

impl OpenQuestion<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.key.1
    }

    /// Waits for the answer.
    pub(crate) async fn answered(&mut self) -> Reply {
        match (&mut self.reply).await {
            Ok(reply) => reply,
            // Its sender goes only with the answer, or with this.
            Err(_) => std::future::pending().await,
        }
    }

    /// The answer that was taken and has not been waited for, if there is one.
    pub(crate) fn taken(&mut self) -> Option<Reply> {
        self.reply.try_recv().ok()
    }

    /// Closes the question, because it was answered in another way. If an answer was taken before,
    /// that one counts.
    pub(crate) fn withdraw(&mut self) -> Option<Reply> {
        lock(&self.all.open).remove(&self.key);
        lock(&self.all.answered).insert(self.key.clone());
        self.taken()
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        lock(&self.all.open).remove(&self.key);
    }
}

/// The name of the question whether a call may be run: the same in every process, and never that of
/// another call. No part of it that tells calls apart is the model's to choose.
pub(crate) fn name_of(session: &SessionId, conversation: &Conversation, call: &Call) -> String {
    let answer = conversation.totals().turns;
    let number = conversation.number_of(call).unwrap_or_default();
    let call = digest(&[session.as_str(), &call.id, &call.name, &call.input]);
    format!("ask_{answer}_{number}_{call:016x}")
}

/// Whether a call of this conversation has no result yet whose question has this name: it was
/// asked about before, or will be.
pub(crate) fn may_be_asked(session: &SessionId, conversation: &Conversation, name: &str) -> bool {
    let mut waiting = conversation.open_calls().filter(|(_, began)| !began);
    conversation.run().is_some()
        && waiting.any(|(call, _)| name_of(session, conversation, call) == name)
}

/// Whether a call may be run, and what `always` would cover.
pub(crate) fn question_about(tool: &str, info: &CallInfo, always: &str) -> Question {
    Question::permission(text_about(tool, info, Some(always)))
}

/// What a call would do, as far as that can be shown, and what `always` would cover, for one who
/// can still say it.
pub(crate) fn text_about(tool: &str, info: &CallInfo, always: Option<&str>) -> String {
    let details = match &info.preview {
        Preview::Command(command) if *command == info.target => String::new(),
        Preview::Command(command) => command.clone(),
        Preview::Write { content } => content.clone(),
        Preview::Edit {
            old,
            new,
            everywhere,
        } => {
            let wherever = if *everywhere { " (everywhere)" } else { "" };
            format!("replace{wherever}:\n{old}\nby:\n{new}")
        }
        Preview::Arguments(arguments) => {
            let lines = arguments
                .iter()
                .map(|(name, value)| format!("{name}: {value}"));
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    about_call(tool, &info.target, always, &details)
}

#[cfg(test)]
mod tests {
    use asyncagents_core::agent::Kind;

    use super::*;

    #[test]
    fn a_long_command_does_not_hide_its_end() {
        let command = format!("echo {}; rm -rf ~", "x".repeat(5_000));
        let info = CallInfo {
            kind: Kind::Run,
            target: command.clone(),
            title: String::new(),
            preview: Preview::Command(command),
        };
        let text = text_about("bash", &info, Some("exactly this"));
        let expected = format!(
            "permission for bash echo {} [… 1015 characters are left out here …] {}; rm -rf ~\n\
             (always: exactly this)",
            "x".repeat(1_995),
            "x".repeat(1_990),
        );
        assert_eq!(text, expected);
    }
}
