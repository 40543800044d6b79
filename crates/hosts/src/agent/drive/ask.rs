//! What an agent asks, and how it is answered.

use asyncagents_core::{
    agent::Entry,
    id::PostId,
    lock::lock,
    progress::Observation,
    question::{Question, Reply, about_call},
};

use super::{
    super::{Ask, Asked, AskedCall, Connection, Verdict, grants::Grant, journal::SessionError},
    Driver,
};

/// How the names of what is told of rejections in a run begin.
pub(super) fn rejected_in(prompt: &PostId) -> String {
    format!("{prompt}.rejected.")
}

/// A question that waits for an answer.
#[derive(Clone)]
pub(super) struct OpenQuestion {
    /// The agent's name for it.
    theirs: String,
    /// What `always` covers.
    grant: Option<Grant>,
}

impl Driver {
    /// Answers by the user's rules and what was allowed for good, or asks.
    pub(super) async fn asked(
        &mut self,
        ask: Ask,
        connection: &dyn Connection,
    ) -> Result<(), SessionError> {
        let (question, grant) = match ask.what {
            Asked::Form(question) => (question, None),
            Asked::Call(call) => {
                let each = match self.verdict(&call) {
                    Verdict::Allow => return self.permit(connection, &ask.id).await,
                    Verdict::Deny(why) => {
                        connection.reply(&ask.id, &Reply::Reject { text: Some(why) });
                        return Ok(());
                    }
                    Verdict::Ask => false,
                    Verdict::AskEach => true,
                };
                let granted = |grant| self.shared.grants.has(&self.session.id, grant);
                let grant = Grant::of(&call, each);
                if granted(&grant) || granted(&Grant::Use(call.clone())) {
                    return self.permit(connection, &ask.id).await;
                }
                let always = Some(grant.covers());
                let text = about_call(&call.tool, &call.target, always, &call.details);
                (Question::permission(text), Some(grant))
            }
        };
        let driver = self.name.rsplit('/').next().unwrap_or_default();
        // The next process of the agent counts its questions anew; this does not.
        let number = self.reports;
        let name = format!("ask_{}_{number}", &driver[..driver.len().min(12)]);
        let theirs = ask.id;
        self.asked
            .insert(name.clone(), OpenQuestion { theirs, grant });
        let questions = self.orders.questions.clone();
        lock(&questions).insert(name.clone(), question.clone());
        self.observe(Observation::Asked { id: name, question });
        Ok(())
    }

    /// Allows a call, once it is saved that one was begun.
    async fn permit(
        &mut self,
        connection: &dyn Connection,
        theirs: &str,
    ) -> Result<(), SessionError> {
        if let Some(begun) = self.begins(theirs) {
            self.save(vec![begun]).await?;
        }
        connection.reply(theirs, &Reply::Once);
        Ok(())
    }

    fn verdict(&self, call: &AskedCall) -> Verdict {
        let profile = self.shared.profile(&self.session.agent);
        let reads_only = profile.is_none_or(|profile| profile.reads_only);
        if reads_only && !call.is_ours && !self.shared.judge.only_reads(call) {
            return Verdict::Deny("this agent may only read".to_owned());
        }
        self.shared.judge.judge(call)
    }

    pub(super) async fn reply(
        &mut self,
        connection: &dyn Connection,
        name: &str,
        reply: &Reply,
    ) -> Result<(), SessionError> {
        let Some(open) = self.asked.get(name).cloned() else {
            // It has been taken back by now.
            return self.tell_later(name, reply).await;
        };
        if matches!(reply, Reply::Once | Reply::Always)
            && let Some(begun) = self.begins(&open.theirs)
        {
            self.save(vec![begun]).await?;
        }
        if *reply == Reply::Always
            && let Some(grant) = &open.grant
        {
            self.shared.grants.add(&self.session.id, grant.clone());
        }
        let is_told = connection.reply(&open.theirs, reply);
        self.answered(name);
        if is_told {
            return Ok(());
        }
        self.tell_later(name, reply).await
    }

    /// Saves the words of a rejection that could not be told with it: they are told as soon as they can be.
    pub(super) async fn tell_later(
        &mut self,
        name: &str,
        reply: &Reply,
    ) -> Result<(), SessionError> {
        let (Reply::Reject { text: Some(text) }, Some(run)) = (reply, self.conversation.run())
        else {
            return Ok(());
        };
        let post = PostId::from(format!("{}{name}", rejected_in(&run.prompt)));
        let visible = format!(
            "What you asked for was not permitted: {text}\n\nTake that into account. If you have said \
             your result already, say all of it again: only what you say last is handed on."
        );
        let hidden = String::new();
        let told = Entry::Notice {
            post,
            visible,
            hidden,
        };
        self.save(vec![told]).await
    }

    pub(super) fn answered(&mut self, name: &str) {
        if self.asked.remove(name).is_none() {
            return;
        }
        lock(&self.orders.questions).remove(name);
        self.observe(Observation::Answered {
            id: name.to_owned(),
        });
    }

    /// Whether it waits for an answer.
    pub(super) fn asks(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The agent does not want an answer any more.
    pub(super) fn withdrawn(&mut self, theirs: &str) {
        let mut open = self.asked.iter();
        let open = open.find(|(_, question)| question.theirs == theirs);
        if let Some(name) = open.map(|(name, _)| name.clone()) {
            self.answered(&name);
        }
    }

    pub(super) fn close_questions(&mut self) {
        let open: Vec<String> = self.asked.keys().cloned().collect();
        for name in open {
            self.answered(&name);
        }
    }
}
