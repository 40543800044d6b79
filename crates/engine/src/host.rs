//! The engine as a host: what the runtime asks of it.

use async_trait::async_trait;
use asyncagents_core::{
    agent::{self, End, Entry},
    fork::{self, Plan},
    id::{AgentName, ChainId, ModelName, PostId, SessionId},
    lifecycle::Standing,
    model_choice::HostModel,
    port::{
        Base, Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice,
        Prompt, Recent, Report, Session, SessionEvent, WantedModel, WholeSession,
    },
    question::{Answered, Reply},
    task::Outcome,
    transcript::Transcript,
};
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::{
    Engine, Live,
    choose_model::{as_host_model, can_ask, choose_model, refused},
    drivers::Halt,
    profiles::restricted,
    questions::may_be_asked,
    system_prompt,
};

#[async_trait]
impl Host for Engine {
    async fn agents(&self) -> Result<Vec<AgentName>, HostError> {
        Ok(self.shared.profiles().names().cloned().collect())
    }

    async fn models(&self) -> Result<Option<Vec<HostModel>>, HostError> {
        let models = self.shared.models.known();
        Ok(Some(models.iter().map(as_host_model).collect()))
    }

    async fn model_of(&self, wanted: &WantedModel) -> Result<Option<HostModel>, HostError> {
        let models = &self.shared.models;
        let asked = wanted.asked.as_ref().map(ModelName::as_str);
        if let Some(asked) = asked.filter(|asked| *asked != ModelName::INHERIT) {
            models.check(asked).map_err(refused)?;
            let model = models.resolve(asked).map_err(refused)?;
            return Ok(Some(as_host_model(&model)));
        }
        let profiles = self.shared.profiles();
        let profile = profiles.known(&wanted.agent)?;
        let parent = self.shared.session(&wanted.parent).await?;
        let model = choose_model(&self.shared, asked, profile, parent.as_ref())?;
        Ok(Some(as_host_model(&model)))
    }

    async fn create(&self, new: NewSession) -> Result<SessionId, HostError> {
        let profiles = self.shared.profiles();
        let profile = profiles.known(&new.agent)?;
        let parent = self.shared.session(&new.parent).await?;
        let asked = new.model.as_ref().map(ModelName::as_str);
        let skills_model = new.role.as_ref().and_then(|role| role.terms.model.as_ref());
        let skills_model = skills_model.map(ModelName::as_str);
        let usable = |model: &&str| can_ask(&self.shared.models, model);
        let asked = asked.or_else(|| skills_model.filter(usable));
        let model = choose_model(&self.shared, asked, profile, parent.as_ref())?;
        let mut profile = profile.clone();
        let terms = new.role.as_ref().map(|role| &role.terms);
        profile.tools = restricted(profile.tools, &new.within, terms);
        let mut system = system_prompt::write(&self.shared, &profiles, &profile, new.may_delegate);
        if let Some(role) = &new.role {
            let (tools, _) = self.shared.tools(new.may_delegate, &profile.tools);
            system.push_str(&system_prompt::skill_section(&profile, role, &tools));
        }
        let session = Session {
            id: new.task.session(),
            task: Some(new.task),
            title: new.title,
            agent: new.agent,
            model: model.name().clone(),
            system,
            delegates: new.may_delegate,
            workspace: self.shared.workspace(),
            terms: new.role.map(|role| role.terms),
            base: None,
            begun: self.shared.now(),
        };
        self.shared.make(session, None).await
    }

    async fn branch(&self, new: NewSession, plan: &Plan) -> Result<Option<SessionId>, HostError> {
        if !plan.limits.are_exact() {
            return Ok(None);
        }
        if !is_ours(&new.parent) {
            return Err(no_conversation(&new.parent));
        }
        let mut parent = self.shared.existing(&new.parent).await?;
        parent.cut_to(plan.asked_in.as_deref(), &self.shared.settings.prefix);
        let conversation = parent.conversation();
        let model = conversation
            .model()
            .unwrap_or(&parent.session.model)
            .clone();
        let resolved = self.shared.models.resolve(model.as_str());
        let resolved = resolved.map_err(refused)?;
        let window = resolved.window().saturating_sub(resolved.max_output());
        let weight = conversation.weight();
        if weight > window {
            return Err(HostError::Refused(format!(
                "the conversation has about {weight} tokens and an exact fork may have {window}; \
                 use preset graduated"
            )));
        }
        let session = Session {
            id: new.task.session(),
            task: Some(new.task.clone()),
            title: new.title,
            agent: parent.session.agent,
            model,
            system: parent.session.system,
            // The same tools, so that requests begin alike. Whether it may use them is for
            // the limits to say.
            delegates: parent.session.delegates,
            workspace: parent.session.workspace,
            terms: None,
            base: Some(Base {
                session: parent.session.id,
                until: conversation.newest(),
            }),
            begun: self.shared.now(),
        };
        let suffix = Entry::Inherited {
            post: new.task.inheritance(),
            preamble: fork::BRANCHED.to_owned(),
            context: String::new(),
        };
        self.shared.make(session, Some(suffix)).await.map(Some)
    }

    async fn inject(&self, session: &SessionId, what: Inheritance) -> Result<(), HostError> {
        let entry = Entry::Inherited {
            post: what.id,
            preamble: what.preamble,
            context: what.context,
        };
        self.shared.file(session, entry).await
    }

    async fn prompt(&self, session: &SessionId, prompt: Prompt) -> Result<(), HostError> {
        self.shared.profiles().known(&prompt.agent)?;
        let (id, now) = (session.clone(), self.shared.now());
        let post = prompt.id.clone();
        let chain = ChainId::from(Uuid::new_v4().to_string());
        let filed = self.shared.write(move |journal| {
            let Some(session) = journal.session(&id)? else {
                return Ok(false);
            };
            if let Some(before) = journal.open_prompt(&id)?.filter(|before| *before != post) {
                let why = "a newer prompt took its place".to_owned();
                let ended = Entry::Ended {
                    prompt: before,
                    end: End::Failed { why },
                    answer: None,
                };
                journal.file(&id, &ended, now)?;
            }
            let entry = Entry::Prompted {
                post: prompt.id.clone(),
                text: prompt.text.clone(),
                agent: prompt.agent.clone(),
                model: prompt.model.clone(),
                chain: session.task.is_none().then(|| chain.clone()),
            };
            journal.file(&id, &entry, now)?;
            Ok(true)
        });
        if !filed.await? {
            return Err(HostError::NoSession(session.clone()));
        }
        self.attend(session);
        Ok(())
    }

    async fn abort(&self, session: &SessionId) -> Result<(), HostError> {
        if let Some(handle) = self.shared.drivers.get(session) {
            handle.halt.send_replace(Halt::Now);
            handle.is_gone().await;
        }
        let whole = self.shared.whole(session).await?;
        let answer = whole.and_then(|whole| whole.conversation().run()?.answer.clone());
        let (id, now) = (session.clone(), self.shared.now());
        let aborted = self.shared.write(move |journal| {
            let Some(prompt) = journal.open_prompt(&id)? else {
                return Ok(false);
            };
            // A driver in another process may write no more.
            journal.drive(&id, "")?;
            let ended = Entry::Ended {
                prompt,
                end: End::Aborted,
                answer: answer.clone(),
            };
            journal.file(&id, &ended, now)?;
            Ok(true)
        });
        if aborted.await? {
            self.shared.show(session, Live::Ended(End::Aborted));
        }
        self.shared.report(session, SessionEvent::Idle);
        Ok(())
    }

    fn counts_iterations(&self) -> bool {
        true
    }

    fn sums_up(&self) -> bool {
        true
    }

    async fn recent(&self, session: &SessionId, plan: &Plan) -> Result<Recent, HostError> {
        if !is_ours(session) {
            return Err(no_conversation(session));
        }
        let mut whole = self.shared.existing(session).await?;
        whole.cut_to(plan.asked_in.as_deref(), &self.shared.settings.prefix);
        Ok(Recent {
            transcript: agent::transcript(&whole.entries()),
            unread: false,
        })
    }

    async fn messages(&self, session: &SessionId) -> Result<Transcript<'static>, HostError> {
        if !is_ours(session) {
            return Err(no_conversation(session));
        }
        let entries = self.shared.existing(session).await?.entries();
        Ok(agent::transcript(&entries))
    }

    async fn exists(&self, session: &SessionId) -> Result<bool, HostError> {
        let there = self.shared.session(session).await?.is_some();
        Ok(there || !is_ours(session))
    }

    async fn inspect(&self, session: &SessionId, prompt: &PostId) -> Result<Inspection, HostError> {
        let (id, post) = (session.clone(), prompt.clone());
        let seen = self.shared.read(move |journal| {
            let there = journal.session(&id)?.is_some();
            Ok((
                there,
                journal.end_of(&id, &post)?,
                journal.posted(&id, &post)?,
            ))
        });
        let mut asking = None;
        let (standing, totals) = match seen.await? {
            (false, ..) => (Standing::Gone, None),
            (true, Some(Entry::Ended { end, answer, .. }), _) => {
                let outcome = Outcome::from(end);
                let (totals, _) = self.used(session).await?;
                (Standing::Done { outcome, answer }, Some(totals))
            }
            (true, _, false) => (Standing::Unprompted, None),
            (true, _, true) => {
                // Only the process that owns the task asks, so the session is driven here from now
                // on.
                self.attend(session);
                // A driver that has just taken over has not asked again yet.
                let is_known = self.shared.drivers.has_acted(session);
                asking = is_known.then(|| self.shared.questions.of(session));
                (Standing::Working, self.shared.drivers.totals(session))
            }
        };
        Ok(Inspection {
            standing,
            totals,
            asking,
        })
    }

    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        let (id, now) = (session.clone(), self.shared.now());
        let visible = notice.message.visible.clone();
        let is_message = notice.id.is_message();
        let entry = Entry::Notice {
            post: notice.id,
            visible: notice.message.visible,
            hidden: notice.message.hidden,
        };
        let delivered = self.shared.write(move |journal| {
            let there = !is_ours(&id) || journal.session(&id)?.is_some();
            if !there {
                return Ok(Delivery::Gone);
            }
            // A child that has done with its prompt would never read it.
            if is_message && journal.open_prompt(&id)?.is_none() {
                return Ok(Delivery::NotNow);
            }
            journal.file(&id, &entry, now)?;
            Ok(Delivery::Taken)
        });
        let delivered = delivered.await?;
        if delivered == Delivery::Taken {
            self.shared.show(session, Live::Notice(visible));
            self.shared.drivers.wake(session);
        }
        Ok(delivered)
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        let (id, post) = (session.clone(), notice.clone());
        let there = self
            .shared
            .read(move |journal| Ok(journal.posted(&id, &post)?));
        Ok(there.await?)
    }

    async fn answer(
        &self,
        session: &SessionId,
        question: &str,
        reply: Reply,
    ) -> Result<Answered, HostError> {
        if matches!(reply, Reply::Values(_)) {
            let why = "it asks for a permission, which is given once, always or not at all";
            return Err(HostError::Refused(why.to_owned()));
        }
        if self.shared.questions.answer(session, question, reply) {
            return Ok(Answered::Taken);
        }
        if self.shared.questions.was_answered(session, question) {
            return Ok(Answered::NotAsked);
        }
        let whole = self.shared.whole(session).await?;
        let later = |whole: WholeSession| may_be_asked(session, &whole.conversation(), question);
        if whole.is_some_and(later) {
            // After a failure it is asked again, under the same name.
            let why = "the session has not come to that question again";
            return Err(HostError::Unreachable(why.to_owned()));
        }
        Ok(Answered::NotAsked)
    }

    fn subscribe(&self) -> Box<dyn HostEvents> {
        Box::new(Listener(self.shared.reports.subscribe()))
    }

    async fn delete(&self, session: &SessionId) -> Result<(), HostError> {
        self.abort(session).await?;
        let id = session.clone();
        let deleted = self.shared.write(move |journal| {
            journal.delete_session(&id)?;
            Ok(())
        });
        deleted.await?;
        self.shared.forget(session);
        self.shared.report(session, SessionEvent::Deleted);
        Ok(())
    }
}

struct Listener(broadcast::Receiver<Report>);

#[async_trait]
impl HostEvents for Listener {
    async fn next(&mut self) -> Option<Report> {
        match self.0.recv().await {
            Ok(report) => Some(report),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Report::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// Whether a session is one of this host's, by its name. Others, such as the shell's, have no
/// conversation, but notices can be delivered to them.
fn is_ours(session: &SessionId) -> bool {
    session.as_str().starts_with(SessionId::KIND)
}

impl Engine {
    /// Whether a session is one of the built-in agent, in whatever process.
    pub fn has(session: &SessionId) -> bool {
        is_ours(session)
    }
}

fn no_conversation(session: &SessionId) -> HostError {
    HostError::Refused(format!(
        "`{session}` is not a session of the built-in agent and has no conversation; \
         `asyncagents run` begins one"
    ))
}
