//! Asks the person at the editor whether an agent may do something.

use async_trait::async_trait;
use asyncagents_core::question;
use asyncagents_engine::{Approver, Question, Reply};
use asyncagents_server::acp::{CallQuestion, OpenSessions};

pub(super) struct AskEditor(pub(super) OpenSessions);

#[async_trait]
impl Approver for AskEditor {
    async fn ask(&self, question: Question) -> Reply {
        let asked = CallQuestion {
            session: question.session,
            call: question.call,
            tool: question.tool,
            target: question.target,
            preview: question.preview,
            always: question.always,
        };
        match self.0.ask(asked).await {
            question::Reply::Once => Reply::Yes,
            question::Reply::Always => Reply::Always,
            question::Reply::Reject { text } => {
                Reply::No(text.unwrap_or_else(|| "the user says no".to_owned()))
            }
            question::Reply::Values(_) => Reply::No("that was no clear answer".to_owned()),
        }
    }
}
