//! Answers what a session has asked its user.

use asyncagents_core::{
    id::SessionId,
    port::HostError,
    question::{Answered, Reply},
};

use super::{
    host::OpenCode2,
    id::{self, is_session},
    questions,
    wire::Form,
};

impl OpenCode2 {
    pub(super) async fn answer_question(
        &self,
        session: &SessionId,
        question: &str,
        reply: Reply,
    ) -> Result<Answered, HostError> {
        if !is_session(session) || !id::is_harmless(question) {
            return Ok(Answered::NotAsked);
        }
        let forms = self.api.forms(session).await?;
        if let Some(form) = forms.iter().find(|form| form.id == question) {
            return self.answer_form(session, form, reply).await;
        }
        let body = questions::permission_body(&reply)?;
        let taken = self.api.reply_permission(session, question, body).await?;
        Ok(answered(taken))
    }

    /// Refused without a text, a form ends the turn of its session, as a permission does.
    async fn answer_form(
        &self,
        session: &SessionId,
        form: &Form,
        reply: Reply,
    ) -> Result<Answered, HostError> {
        let values = match reply {
            Reply::Values(values) => Some(values),
            Reply::Reject { text: Some(text) } => questions::as_text(form, &text),
            Reply::Reject { text: None } => None,
            Reply::Once | Reply::Always => {
                let why = "this is a question, not a permission: answer it with values";
                return Err(HostError::Refused(why.to_owned()));
            }
        };
        let taken = match values {
            Some(values) => {
                let body = questions::form_body(form, &values)?;
                self.api.reply_form(session, &form.id, body).await?
            }
            None => self.api.cancel_form(session, &form.id).await?,
        };
        Ok(answered(taken))
    }
}

fn answered(taken: bool) -> Answered {
    if taken {
        Answered::Taken
    } else {
        Answered::NotAsked
    }
}
