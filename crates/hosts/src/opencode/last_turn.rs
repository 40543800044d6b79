//! One question beside a session, without tools: in a session of its own in which everything is
//! forbidden.

use asyncagents_core::{
    id::{PostId, SessionId},
    port::{Host, HostError, OneAnswer, OneQuestion},
};
use serde_json::{Value, json};
use tokio::time;

use crate::both::{one_answer, role};

use super::{host::OpenCode, session_model, wire};

impl OpenCode {
    pub(super) async fn ask_last_turn(
        &self,
        session: &SessionId,
        question: OneQuestion,
    ) -> Result<Option<OneAnswer>, HostError> {
        if question.within.is_zero() {
            return Ok(None);
        }
        let there = self.existing(session).await?;
        let mut body = json!({
            "agent": question.agent.as_str(),
            "parts": [wire::text(&question.text, &question.id, false)],
        });
        let wanted = role::wanted(question.model.as_ref(), question.role.as_ref());
        let model = self.choose_model(wanted, &question.agent, Some(&there));
        session_model::set(&mut body, model.await?);
        session_model::set_effort(&mut body, question.effort);
        let side_session = json!({
            "title": "The last turn of a background task",
            "parentID": there.id,
            "agent": question.agent.as_str(),
            "permission": [{"permission": "*", "pattern": "*", "action": "deny"}],
        });
        let session: SessionId = self.api.create(side_session).await?.id.as_str().into();
        let answer = self.answer_to(&session, &question.id, body);
        let answer = time::timeout(question.within, answer).await;
        if answer.is_err()
            && let Err(error) = self.abort(&session).await
        {
            tracing::warn!(%session, %error, "cannot abort the last turn");
        }
        if let Err(error) = self.api.delete(&session).await {
            tracing::warn!(%session, %error, "cannot delete the session of a last turn");
        }
        answer.unwrap_or(Ok(None))
    }

    /// Prompts a session and waits for the answer.
    async fn answer_to(
        &self,
        session: &SessionId,
        post: &PostId,
        body: Value,
    ) -> Result<Option<OneAnswer>, HostError> {
        self.activity.prompting(session, self.clock.now());
        self.api.prompt(session, body).await?;
        one_answer::wait_for(self, session, post).await
    }
}
