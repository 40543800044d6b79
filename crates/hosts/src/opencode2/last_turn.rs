//! One question beside a session, without tools.
//!
//! Where a session can have rules, that is a session of its own in which everything is forbidden: it
//! says what the answer has cost. Elsewhere the model is asked without a session, and what that has
//! cost is counted here.

use asyncagents_core::{
    budget::{Cost, Spent},
    id::{ModelName, SessionId},
    port::{Host, HostError, OneAnswer, OneQuestion, Prompt},
    tokens,
};
use serde_json::json;
use tokio::time;

use crate::both::{one_answer, role, session_model::SessionModel};

use super::{
    capabilities::Offer,
    host::OpenCode2,
    id,
    session_rules::{are_missing, nothing_allowed},
    wire::Session,
};

impl OpenCode2 {
    pub(super) async fn ask_last_turn(
        &self,
        session: &SessionId,
        question: OneQuestion,
    ) -> Result<Option<OneAnswer>, HostError> {
        if question.within.is_zero() {
            return Ok(None);
        }
        let there = self.existing(session).await?;
        let wanted = role::wanted(question.model.as_ref(), question.role.as_ref());
        let model = self.choose_model(wanted, &question.agent, Some(&there));
        let model = model.await?;
        let within = question.within;
        match self.side_session(&there, &question, model.as_ref()).await? {
            Some(side) => {
                let answer = time::timeout(within, self.answer_in(&side, question)).await;
                // That interrupts it, too.
                if let Err(error) = self.api.delete(&side).await {
                    tracing::warn!(session = %side, %error, "cannot delete the session of a last turn");
                }
                answer.unwrap_or(Ok(None))
            }
            None => {
                let answer = self.generate(&there, &question, model);
                time::timeout(within, answer).await.unwrap_or(Ok(None))
            }
        }
    }

    /// Makes a session without any tools; nothing where sessions have no rules.
    async fn side_session(
        &self,
        there: &Session,
        question: &OneQuestion,
        model: Option<&SessionModel>,
    ) -> Result<Option<SessionId>, HostError> {
        if !self.capabilities.has_session_rules(&self.api).await? {
            return Ok(None);
        }
        let side = id::side_session(&question.id);
        let mut body = json!({
            "id": side.as_str(),
            "title": "The last turn of a background task",
            "parentID": there.id,
            "agent": question.agent.as_str(),
            "permissions": nothing_allowed(),
        });
        if let Some(folder) = there.folder() {
            body["location"] = json!({"directory": folder});
        }
        if let Some(model) = model {
            body["model"] = json!(model);
        }
        let made = self.api.create(body.clone()).await?;
        if are_missing(&body, &made, &self.settings.prefix) {
            self.api.delete(&side).await?;
            return Ok(None);
        }
        Ok(Some(side))
    }

    /// Prompts a session and waits for the answer.
    async fn answer_in(
        &self,
        side: &SessionId,
        question: OneQuestion,
    ) -> Result<Option<OneAnswer>, HostError> {
        let post = question.id.clone();
        let prompt = Prompt {
            id: question.id,
            text: question.text,
            agent: question.agent,
            model: Some(ModelName::INHERIT.into()),
            effort: question.effort,
            role: None,
        };
        self.prompt(side, prompt).await?;
        one_answer::wait_for(self, side, &post).await
    }

    /// Asks a model without a session. OpenCode does not say what that has cost, so the tokens are
    /// counted here.
    async fn generate(
        &self,
        there: &Session,
        question: &OneQuestion,
        model: Option<SessionModel>,
    ) -> Result<Option<OneAnswer>, HostError> {
        let Some(path) = self.capabilities.path(&self.api, Offer::Generate).await? else {
            return Ok(None);
        };
        let mut body = json!({"prompt": question.text});
        if let Some(model) = model {
            body["model"] = json!(model);
        }
        let asked = self
            .api
            .generate(path, there.folder(), body, question.within);
        let answer = asked.await?;
        let tokens = tokens::o200k(&question.text) + tokens::o200k(&answer);
        let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
        Ok(Some(OneAnswer {
            text: answer,
            spent: Spent::answer(tokens, Cost(0), tokens),
        }))
    }
}
