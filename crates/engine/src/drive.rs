//! Drives one session: does what comes next, saves what came of it, and looks again.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use asyncagents_core::{
    agent::{
        Answer, Around, Call, Conversation, End, Entry, Filed, Next, Profile, SUMMARISE,
        ToolOutcome, ToolSpec, Turn, next, transcript,
    },
    fork::{Limits, Parent, fork},
    id::SessionId,
    port::{Journal, Session, SessionEvent},
    progress::Observation,
    tokens,
};
use asyncagents_models::{Heard, Model, ModelError, Request};
use tokio::{task::spawn_blocking, time};
use uuid::Uuid;

use crate::{
    Live,
    engine::{Halt, Hand, Inner},
    record::{Trouble, whole},
};

/// How often a working session gives a sign of life.
const SIGN: Duration = Duration::from_secs(15);

/// How often a session that waits for tasks looks whether another process has written.
const LOOK: Duration = Duration::from_millis(100);

/// Drives a session until it has nothing to do, or is halted.
pub(crate) async fn drive(engine: Arc<Inner>, id: SessionId, hand: Arc<Hand>) {
    // Lets go also when it is aborted.
    let _held = Held {
        engine: engine.clone(),
        id: id.clone(),
        hand: hand.clone(),
    };
    let signs = async {
        loop {
            time::sleep(SIGN).await;
            engine.report(&id, SessionEvent::Alive);
        }
    };
    let driven = tokio::select! {
        driven = steps(engine.clone(), &id, &hand) => driven,
        () = signs => Ok(()),
    };
    match driven {
        Ok(()) | Err(Over::Halted) => {}
        Err(Over::Broken(Trouble::NotOurs)) => {
            tracing::warn!(session = %id, "another process has taken over");
        }
        Err(Over::Broken(Trouble::Store(error))) => {
            tracing::error!(session = %id, %error, "a session cannot go on");
        }
    }
}

struct Held {
    engine: Arc<Inner>,
    id: SessionId,
    hand: Arc<Hand>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.engine.let_go(&self.id, &self.hand);
        self.engine.report(&self.id, SessionEvent::Idle);
    }
}

/// Why a driver has nothing more to do.
pub(crate) enum Over {
    /// It was told to stop.
    Halted,
    /// What happened could not be saved.
    Broken(Trouble),
}

impl From<Trouble> for Over {
    fn from(trouble: Trouble) -> Self {
        Over::Broken(trouble)
    }
}

async fn steps(engine: Arc<Inner>, id: &SessionId, hand: &Arc<Hand>) -> Result<(), Over> {
    let mut driver = Driver::enter(engine, id, hand.clone()).await?;
    while driver.step().await? {}
    Ok(())
}

/// What drives a session.
pub(crate) struct Driver {
    pub(crate) engine: Arc<Inner>,
    pub(crate) hand: Arc<Hand>,
    pub(crate) session: Session,
    pub(crate) profile: Profile,
    pub(crate) tools: Vec<ToolSpec>,
    conversation: Conversation,
    /// The name under which it writes. Whoever drives after it has another.
    me: String,
    /// What the provider's cache knows the conversation by.
    cache_key: String,
    /// Background tasks are unfinished, as far as is known.
    tasks: bool,
    /// The window was full, and the conversation has been compacted for it.
    squeezed: bool,
}

impl Driver {
    /// Takes the session over from whoever drove it before.
    async fn enter(engine: Arc<Inner>, id: &SessionId, hand: Arc<Hand>) -> Result<Self, Over> {
        let me = Uuid::new_v4().simple().to_string();
        let (wanted, driver) = (id.clone(), me.clone());
        let taken = engine.record.write(move |journal| {
            journal.drive(&wanted, &driver)?;
            whole(journal, &wanted)?.ok_or(Trouble::NotOurs)
        });
        let taken = taken.await?;
        let conversation = taken.conversation();
        let session = taken.session;
        let mut profiles = engine.profiles();
        let profile = profiles.remove(&session.agent);
        // An agent whose file is gone keeps its prompt, which is the session's, and may
        // only do what every agent may.
        let profile = profile
            .or_else(|| profiles.remove(&"explore".into()))
            .unwrap_or_else(|| unreachable_profile(&session));
        let cache_key = session
            .base
            .as_ref()
            .map_or(&session.id, |base| &base.session);
        Ok(Self {
            tools: engine.tools(&session, &profile),
            cache_key: cache_key.to_string(),
            engine,
            hand,
            session,
            profile,
            conversation,
            me,
            tasks: false,
            squeezed: false,
        })
    }

    /// Does what comes next. False when there is nothing.
    async fn step(&mut self) -> Result<bool, Over> {
        if *self.hand.halt.borrow() != Halt::Go {
            return Err(Over::Halted);
        }
        let model = self.model();
        let around = Around {
            tasks: self.tasks,
            wait: self.waits(),
            compact_from: model
                .as_ref()
                .map_or(u64::MAX, |model| self.compact_from(model)),
            most_answers: self.profile.max_turns.or(self.engine.settings.max_turns),
        };
        match next(&self.conversation, &around) {
            Next::Ask => match model {
                Ok(model) => self.ask(&model).await?,
                Err(error) => self.fail(&error).await?,
            },
            Next::Compact => match model {
                Ok(model) => self.compact(&model, Way::Whole).await?,
                Err(error) => self.fail(&error).await?,
            },
            Next::Run(calls) => self.run_tools(calls).await?,
            Next::Lost(calls) => {
                let lost = |call: Call| Entry::ToolEnded {
                    call: call.id,
                    outcome: ToolOutcome::Unknown,
                };
                self.save(calls.into_iter().map(lost).collect()).await?;
            }
            Next::Nudge(text) => self.save(vec![Entry::Nudged { text }]).await?,
            Next::Wait => self.wait().await?,
            Next::Finish(end) => self.finish(end).await?,
            Next::Rest => {
                if self.engine.may_go(&self.session.id, &self.hand) {
                    return Ok(false);
                }
                self.catch_up().await?;
            }
        }
        Ok(true)
    }

    fn model(&self) -> Result<Model, ModelError> {
        let name = self.conversation.model().unwrap_or(&self.session.model);
        self.engine.models.resolve(name.as_str())
    }

    /// A task's run always waits for the tasks below it.
    fn waits(&self) -> bool {
        self.engine.settings.wait_for_tasks || self.session.task.is_some()
    }

    fn compact_from(&self, model: &Model) -> u64 {
        let share = model.window() / 100 * self.engine.settings.compact_at;
        let room = model.window().saturating_sub(model.max_output());
        share.min(room.max(model.window() / 2))
    }

    async fn ask(&mut self, model: &Model) -> Result<(), Over> {
        let shown = self.conversation.shown();
        let asked = self.request(model, &shown.turns).await?;
        match asked {
            Ok(answer) => {
                self.squeezed = false;
                let seen = shown.seen;
                let reports = reports(&answer);
                self.save(vec![Entry::Answered { seen, answer }]).await?;
                self.show(Live::Answered);
                for (number, what) in reports.into_iter().enumerate() {
                    let newest = self.conversation.newest();
                    let key = format!("{}.{newest}.{number}", self.session.id);
                    let event = SessionEvent::Observed { key, what };
                    self.engine.report(&self.session.id, event);
                }
                Ok(())
            }
            Err(error) if error.is_too_long() && !self.squeezed => {
                self.squeezed = true;
                self.compact(model, Way::Shortened).await
            }
            Err(error) => self.fail(&error).await,
        }
    }

    /// Asks the model, unless the driver is halted before it has answered.
    async fn request(
        &self,
        model: &Model,
        turns: &[Turn],
    ) -> Result<Result<Answer, ModelError>, Over> {
        let request = Request {
            system: &self.session.system,
            tools: &self.tools,
            turns,
            no_tools: false,
            cache_key: &self.cache_key,
            effort: self.engine.settings.effort,
        };
        let mut hear = |heard: Heard| match heard {
            Heard::Text(text) => self.show(Live::Text(text.to_owned())),
            Heard::Reasoning(text) => self.show(Live::Reasoning(text.to_owned())),
            Heard::Again { why, after } => {
                let after = after.as_secs_f64();
                self.show(Live::Again(format!("{why}; asked again in {after:.1} s")));
            }
            Heard::Call(_) | Heard::Alive => {}
        };
        tokio::select! {
            answer = model.ask(&request, &mut hear) => Ok(answer),
            _ = self.hand.halted(Halt::Soon) => Err(Over::Halted),
        }
    }

    /// Summarises what the model has seen.
    async fn compact(&mut self, model: &Model, way: Way) -> Result<(), Over> {
        self.show(Live::Compacting);
        let seen = self.conversation.newest();
        let mut turns = match way {
            Way::Whole => self.conversation.settled(),
            Way::Shortened => match self.shortened(model).await? {
                Ok(context) => vec![Turn::Said(context)],
                Err(why) => return self.fail(&why).await,
            },
        };
        turns.push(Turn::Said(SUMMARISE.to_owned()));
        match self.request(model, &turns).await? {
            Ok(answer) if answer.text().trim().is_empty() => {
                self.fail(&"the conversation is too long, and the model gave no summary of it")
                    .await
            }
            Ok(answer) => self.save(vec![Entry::Compacted { seen, answer }]).await,
            Err(error) if error.is_too_long() && way == Way::Whole => {
                Box::pin(self.compact(model, Way::Shortened)).await
            }
            Err(error) => self.fail(&error).await,
        }
    }

    /// The conversation as a fork would inherit it, within half of the window: for a model
    /// that could not even read it to summarise it.
    async fn shortened(&self, model: &Model) -> Result<Result<String, String>, Over> {
        let whole = self.engine.record.whole(&self.session.id).await?;
        let entries = whole.map(|whole| whole.entries()).unwrap_or_default();
        let most = (model.window() / 2).max(1_000);
        let forked = spawn_blocking(move || {
            let mut limits = Limits::default();
            let set = |limits: &mut Limits, key: &str, value: u64| {
                limits
                    .set(key, value.to_string().as_str())
                    .map_err(|error| error.to_string())
            };
            set(&mut limits, "max_tokens", most.min(100_000))?;
            set(&mut limits, "max_chars", (most * 4).min(200_000))?;
            let parent = Parent::new(transcript(&entries));
            let forked = fork(&parent, &limits, tokens::o200k);
            forked
                .map(|forked| forked.context)
                .map_err(|error| error.to_string())
        });
        Ok(forked.await.unwrap_or_else(|error| Err(error.to_string())))
    }

    /// Waits until something may have changed about the tasks of the session.
    async fn wait(&mut self) -> Result<(), Over> {
        self.show(Live::Waiting);
        let store = &self.engine.record.store;
        let before = store.version().await.ok();
        loop {
            tokio::select! {
                () = self.hand.wake.notified() => break,
                _ = self.hand.halted(Halt::Soon) => return Err(Over::Halted),
                () = time::sleep(LOOK) => {
                    if store.version().await.ok() != before {
                        break;
                    }
                }
            }
        }
        self.tasks = false;
        self.catch_up().await
    }

    async fn fail(&mut self, error: &(dyn ToString + Sync)) -> Result<(), Over> {
        let why = error.to_string();
        self.finish(End::Failed { why }).await
    }

    /// Ends the run, unless there is more to it than this driver knew.
    async fn finish(&mut self, end: End) -> Result<(), Over> {
        let Some(run) = self.conversation.run() else {
            return Ok(());
        };
        let entry = Entry::Ended {
            prompt: run.prompt.clone(),
            end: end.clone(),
        };
        let waits = end == End::Answered && self.waits();
        let (id, me) = (self.session.id.clone(), self.me.clone());
        let (newest, now) = (self.conversation.newest(), self.engine.record.clock.now());
        let finished = self.engine.record.write(move |journal| {
            check_driver(journal, &id, &me)?;
            let news = journal.entries(&id, newest, u64::MAX)?;
            if !news.is_empty() {
                return Ok(Finished::NotYet(news));
            }
            if waits && is_unsettled(journal, &id)? {
                return Ok(Finished::Unsettled);
            }
            journal.file(&id, &entry, now)?;
            Ok(Finished::Done(journal.entries(&id, newest, u64::MAX)?))
        });
        match finished.await? {
            Finished::Unsettled => self.tasks = true,
            Finished::NotYet(news) => self.fold(&news),
            Finished::Done(news) => {
                self.fold(&news);
                self.show(Live::Ended(end));
            }
        }
        Ok(())
    }

    /// Saves what happened, and takes in what others have added meanwhile.
    pub(crate) async fn save(&mut self, entries: Vec<Entry>) -> Result<(), Over> {
        let (id, me) = (self.session.id.clone(), self.me.clone());
        let (newest, now) = (self.conversation.newest(), self.engine.record.clock.now());
        let saved = self.engine.record.write(move |journal| {
            check_driver(journal, &id, &me)?;
            for entry in &entries {
                journal.file(&id, entry, now)?;
            }
            Ok(journal.entries(&id, newest, u64::MAX)?)
        });
        let saved = saved.await?;
        self.fold(&saved);
        Ok(())
    }

    async fn catch_up(&mut self) -> Result<(), Over> {
        let (id, newest) = (self.session.id.clone(), self.conversation.newest());
        let news = self
            .engine
            .record
            .read(move |journal| Ok(journal.entries(&id, newest, u64::MAX)?));
        let news = news.await?;
        self.fold(&news);
        Ok(())
    }

    fn fold(&mut self, news: &[Filed]) {
        news.iter().for_each(|filed| self.conversation.take(filed));
    }

    pub(crate) fn show(&self, live: Live) {
        self.engine.show(&self.session.id, live);
    }
}

/// What a summary is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The conversation as it is: the provider has it in its cache.
    Whole,
    /// What fits, through the fork pipeline.
    Shortened,
}

/// What came of ending a run.
enum Finished {
    Done(Vec<Filed>),
    NotYet(Vec<Filed>),
    Unsettled,
}

fn check_driver(journal: &mut dyn Journal, id: &SessionId, me: &str) -> Result<(), Trouble> {
    match journal.driver(id)? {
        Some(driver) if driver == me => Ok(()),
        _ => Err(Trouble::NotOurs),
    }
}

/// Whether tasks of the session are unfinished, or it has not been told of all that ended.
fn is_unsettled(journal: &mut dyn Journal, id: &SessionId) -> Result<bool, Trouble> {
    let mut tasks = journal.tasks_of(Some(id))?.into_iter();
    Ok(tasks.any(|task| task.is_live()) || journal.any_pending(id)?)
}

/// What those who follow the session are told of an answer.
fn reports(answer: &Answer) -> Vec<Observation> {
    let turned = Observation::Turned {
        tokens: answer.usage.context(),
        cost: answer.cost,
    };
    let called = |call: &Call| {
        let mut digest = DefaultHasher::new();
        (&call.name, &call.input).hash(&mut digest);
        Observation::ToolCalled {
            tool: call.name.clone(),
            call: digest.finish(),
        }
    };
    let mut reports = vec![turned];
    reports.extend(answer.calls().map(called));
    reports
}

/// An agent that may do nothing but talk.
fn unreachable_profile(session: &Session) -> Profile {
    Profile {
        name: session.agent.clone(),
        description: String::new(),
        prompt: String::new(),
        model: None,
        tools: asyncagents_core::agent::Tools {
            only: Some(Vec::new()),
            not: Vec::new(),
        },
        max_turns: None,
    }
}
