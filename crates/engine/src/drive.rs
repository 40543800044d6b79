//! Drives one session: does what comes next, saves what came of it, and looks again.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{
        Answer, Around, Call, Conversation, End, Entry, Filed, Next, Profile, SUMMARISE, Stop,
        ToolOutcome, ToolSpec, Tools, Turn, Usage, next, transcript,
    },
    budget::Cost,
    digest::digest,
    fork::{Limits, Parent, fork},
    id::{AgentName, OwnerId, SessionId},
    lock::lock,
    port::{Journal, Session, SessionEvent, tools_above},
    progress::Observation,
    tokens,
};
use asyncagents_models::{Heard, Model, ModelError, Request};
use asyncagents_tools::Toolbox;
use tokio::{task::spawn_blocking, time};
use uuid::Uuid;

use crate::{
    Live,
    drivers::{DriverHandle, Halt},
    engine::{Inner, is_driven_elsewhere},
    last_turn::RunBudget,
    profiles::Profiles,
    record::Trouble,
};

/// How often a working session gives a sign of life.
const SIGN: Duration = Duration::from_secs(15);

/// How often a session that waits for tasks looks whether another process has written.
const LOOK: Duration = Duration::from_millis(100);

/// How long a driver waits after the store has failed, before anybody tries again.
const BREATH: Duration = Duration::from_secs(1);

/// How often saving is tried, with longer and longer pauses: what a model has answered was
/// paid for.
const TRIES: u32 = 4;

/// Drives a session until it has nothing to do, or is halted.
pub(crate) async fn drive(held: Held) {
    let Held { engine, id, handle } = &held;
    let signs = async {
        loop {
            time::sleep(SIGN).await;
            engine.report(id, SessionEvent::Alive);
        }
    };
    let driven = tokio::select! {
        driven = steps(engine.clone(), id, handle) => driven,
        () = signs => Ok(()),
    };
    match driven {
        Ok(()) | Err(Over::Halted) => {}
        Err(Over::Broken(Trouble::NotOurs | Trouble::Busy)) => {
            tracing::warn!(session = %id, "another process works in the session");
            time::sleep(BREATH).await;
        }
        Err(Over::Broken(Trouble::Store(error))) => {
            tracing::error!(session = %id, %error, "a session cannot go on");
            time::sleep(BREATH).await;
        }
    }
}

/// A driver's hold on its session. Letting go of it tells those who follow.
pub(crate) struct Held {
    engine: Arc<Inner>,
    id: SessionId,
    handle: Arc<DriverHandle>,
}

impl Held {
    pub(crate) fn new(engine: Arc<Inner>, id: SessionId, handle: Arc<DriverHandle>) -> Self {
        Self { engine, id, handle }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.engine.drivers.let_go(&self.id, &self.handle);
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

async fn steps(engine: Arc<Inner>, id: &SessionId, handle: &Arc<DriverHandle>) -> Result<(), Over> {
    let mut driver = Driver::enter(engine, id, handle.clone()).await?;
    while driver.step().await? {}
    Ok(())
}

/// What drives a session.
pub(crate) struct Driver {
    pub(crate) engine: Arc<Inner>,
    pub(crate) handle: Arc<DriverHandle>,
    pub(crate) session: Session,
    /// Or why its folder cannot be used, for the model.
    pub(crate) toolbox: Result<Toolbox, String>,
    /// The tools of the skills above it, each of which binds it.
    within: Vec<Tools>,
    pub(crate) tools: Vec<ToolSpec>,
    /// The names of the tools for background tasks.
    pub(crate) delegation: Vec<String>,
    profiles: Profiles,
    pub(crate) conversation: Conversation,
    /// The name under which it writes. Whoever drives after it has another.
    me: String,
    /// What the provider's cache knows the conversation by.
    cache_key: String,
    /// Background tasks are unfinished, as far as is known.
    tasks: bool,
    /// The store's version when that was found out.
    version: Option<i64>,
    /// The run is over, and another process may go on with the session.
    released: bool,
    /// The window was full, and the conversation has been compacted for it.
    squeezed: bool,
    /// When the iteration has to be over, for a skill that says so.
    pub(crate) until: Option<time::Instant>,
    /// What the task of the session may use, when that was last looked at.
    run_budget: Option<RunBudget>,
}

impl Driver {
    /// Takes the session over from whoever drove it before.
    async fn enter(
        engine: Arc<Inner>,
        id: &SessionId,
        handle: Arc<DriverHandle>,
    ) -> Result<Self, Over> {
        let me = claim(&engine, id).await?;
        let taken = engine.record.whole(id).await?.ok_or(Trouble::NotOurs)?;
        let conversation = taken.conversation();
        let session = taken.session;
        let profiles = engine.profiles();
        let within = within(&engine, &session).await?;
        let profile = known_or_harmless(&profiles, &session.agent);
        let profile_tools = profile.tools.bounded(&within);
        let allowed = match &session.terms {
            Some(terms) => terms.over(&profile_tools),
            None => profile_tools,
        };
        // Skills are looked for in folders.
        let (inner, delegates) = (engine.clone(), session.delegates);
        let found = spawn_blocking(move || inner.tools(delegates, &allowed)).await;
        let (tools, delegation) = found.map_err(|_| Over::Halted)?;
        let cache_key = session
            .base
            .as_ref()
            .map_or(&session.id, |base| &base.session);
        let toolbox = engine.toolbox_of(&session);
        let driver = Self {
            toolbox: toolbox
                .map_err(|error| format!("the folder of this session cannot be used: {error}")),
            tools,
            delegation,
            cache_key: cache_key.to_string(),
            engine,
            handle,
            session,
            within,
            profiles,
            conversation,
            me,
            tasks: false,
            version: None,
            released: false,
            squeezed: false,
            until: None,
            run_budget: None,
        };
        driver.publish();
        Ok(driver)
    }

    /// Who does what the newest prompt says. What the model is offered is the session's, so
    /// that requests begin alike; what it may do is this agent's.
    pub(crate) fn acting(&self) -> Profile {
        let agent = self.conversation.agent().unwrap_or(&self.session.agent);
        let mut profile = known_or_harmless(&self.profiles, agent);
        profile.tools = profile.tools.bounded(&self.within);
        if let Some(terms) = &self.session.terms {
            profile.tools = terms.over(&profile.tools);
            let most = [profile.max_turns, self.engine.settings.max_turns];
            let least = most.into_iter().flatten().fold(terms.iterations, u64::min);
            profile.max_turns = Some(least);
        }
        profile
    }

    /// How often a call has failed in this run.
    pub(crate) fn failures(&self, call: &Call) -> u32 {
        let run = self.conversation.run();
        run.map_or(0, |run| run.failures(call))
    }

    /// Whether the newest answer was cut at the model's greatest length.
    pub(crate) fn was_cut(&self) -> bool {
        let last = self.conversation.last();
        last.is_some_and(|last| last.stop == Stop::Length)
    }

    fn publish(&self) {
        *lock(&self.handle.totals) = Some(self.conversation.totals().clone());
    }

    /// Does what comes next. False when there is nothing.
    async fn step(&mut self) -> Result<bool, Over> {
        if *self.handle.halt.borrow() != Halt::Go {
            return Err(Over::Halted);
        }
        self.run_budget = self.run_budget().await?;
        let model = self.model();
        let most_answers = self.acting().max_turns.or(self.engine.settings.max_turns);
        let run_budget = self.run_budget.as_ref();
        let around = Around {
            tasks: self.tasks,
            wait: self.waits(),
            compact_from: model
                .as_ref()
                .map_or(u64::MAX, |model| self.compact_from(model)),
            most_answers: [most_answers, run_budget.and_then(RunBudget::turns)]
                .into_iter()
                .flatten()
                .min(),
            most_same_calls: self.engine.settings.same_calls,
            used_up: run_budget
                .map(|run_budget| run_budget.used_up(&self.conversation))
                .unwrap_or_default(),
        };
        let next = next(&self.conversation, &around);
        if self.released && next != Next::Rest {
            self.me = claim(&self.engine, &self.session.id).await?;
            self.released = false;
        }
        match next {
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
            Next::LastTurn { why, fails } => {
                self.save(vec![Entry::LastTurn { why, fails }]).await?;
            }
            Next::Wait => self.wait().await?,
            Next::Finish(end) => self.finish(end).await?,
            Next::Rest => {
                if self.engine.drivers.may_go(&self.session.id, &self.handle) {
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

    /// When the work has to be over, for the last turn to begin. Without a single answer there
    /// is nothing to sum up.
    pub(crate) fn work_until(&self) -> Option<time::Instant> {
        let run = self.conversation.run()?;
        let worked = run.answers > 0 && run.last_turn.is_none();
        self.run_budget.as_ref().filter(|_| worked)?.work_until()
    }

    async fn ask(&mut self, model: &Model) -> Result<(), Over> {
        let run = self.conversation.run();
        let last = run.and_then(|run| run.last_turn.clone());
        if let Some(last) = last.clone().filter(|last| last.fails) {
            return self.sum_up(model, last.why).await;
        }
        let shown = self.conversation.shown();
        let longest = self.session.terms.as_ref();
        let longest = longest.and_then(|terms| terms.iteration_time);
        self.until = longest.map(|longest| time::Instant::now() + longest);
        let work_until = self.work_until();
        let until = [self.until, work_until].into_iter().flatten().min();
        let mut request = self.whole(&shown.turns);
        request.no_tools = last.is_some();
        let asked = self.request(model, request, Aloud::Yes);
        let asked = match until {
            Some(until) => time::timeout_at(until, asked).await,
            None => Ok(asked.await),
        };
        let Ok(asked) = asked else {
            if work_until.is_some_and(|until| until <= time::Instant::now()) {
                // What was heard of the answer is void.
                self.show(Live::Again("the time for work is up".to_owned()));
                return Ok(());
            }
            let longest = longest.unwrap_or_default();
            let why = format!("an iteration took longer than {longest:?}");
            return self.finish(End::Failed { why }).await;
        };
        match asked? {
            Ok(answer) => {
                self.squeezed = false;
                let seen = shown.seen;
                let mut reports = reports(&answer);
                self.save(vec![Entry::Answered { seen, answer }]).await?;
                self.show(Live::Answered);
                let budget = self.run_budget.as_ref();
                let used_up = budget.map(|budget| budget.used_up(&self.conversation));
                if last.is_some() || used_up.is_some_and(|used_up| used_up.tool_calls.is_some()) {
                    // They are not run.
                    reports.retain(|what| !matches!(what, Observation::ToolCalled { .. }));
                }
                self.report(reports);
                Ok(())
            }
            Err(error) if error.is_too_long() && !self.squeezed => {
                self.squeezed = true;
                self.compact(model, Way::Shortened).await
            }
            Err(error) => self.fail(&error).await,
        }
    }

    /// Tells those who follow the session what was observed.
    pub(crate) fn report(&self, observed: Vec<Observation>) {
        let newest = self.conversation.newest();
        for (number, what) in observed.into_iter().enumerate() {
            let key = format!("{}.{newest}.{number}", self.session.id);
            let event = SessionEvent::Observed { key, what };
            self.engine.report(&self.session.id, event);
        }
    }

    /// A request with everything that the session has.
    pub(crate) fn whole<'a>(&'a self, turns: &'a [Turn]) -> Request<'a> {
        let terms = self.session.terms.as_ref();
        let own_effort = terms.and_then(|terms| terms.effort);
        Request {
            system: &self.session.system,
            tools: &self.tools,
            turns,
            no_tools: false,
            max_output: None,
            cache_key: &self.cache_key,
            effort: own_effort.or(self.engine.settings.effort),
        }
    }

    /// Asks the model, unless the driver is halted before it has answered.
    pub(crate) async fn request(
        &self,
        model: &Model,
        request: Request<'_>,
        aloud: Aloud,
    ) -> Result<Result<Answer, ModelError>, Over> {
        let mut hear = |heard: Heard| match heard {
            Heard::Text(_) | Heard::Reasoning(_) if aloud != Aloud::Yes => {}
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
            _ = self.handle.halted(Halt::Soon) => Err(Over::Halted),
        }
    }

    /// Summarises what the model has seen: as it is, for the provider has it in its cache; if
    /// that comes to nothing, once more with what fits of it and without tools.
    async fn compact(&mut self, model: &Model, way: Way) -> Result<(), Over> {
        self.show(Live::Compacting);
        let seen = self.conversation.newest();
        let mut spent = (Usage::default(), Some(Cost::default()));
        if way == Way::Whole {
            let turns = self.conversation.settled();
            match self.summary(model, turns, Aloud::No).await? {
                Ok(answer) if is_summary(&answer) => {
                    return self.save(vec![Entry::Compacted { seen, answer }]).await;
                }
                // It was paid for all the same.
                Ok(answer) => spent = (answer.usage, answer.cost),
                Err(error) if error.is_too_long() => {}
                Err(error) => return self.fail(&error).await,
            }
        }
        let most = (model.window() / 2).max(1_000);
        let turns = match self.shortened(most).await? {
            Ok(context) => vec![Turn::Said(context)],
            Err(why) => return self.fail(&why).await,
        };
        match self.summary(model, turns, Aloud::NoTools).await? {
            Ok(mut answer) if is_summary(&answer) => {
                answer.usage = answer.usage.plus(spent.0);
                let both = answer.cost.zip(spent.1);
                answer.cost = both.map(|(one, other)| Cost(one.0.saturating_add(other.0)));
                self.save(vec![Entry::Compacted { seen, answer }]).await
            }
            Ok(_) => {
                self.fail(&"the conversation is too long, and the model gave no summary of it")
                    .await
            }
            Err(error) => self.fail(&error).await,
        }
    }

    async fn summary(
        &self,
        model: &Model,
        mut turns: Vec<Turn>,
        aloud: Aloud,
    ) -> Result<Result<Answer, ModelError>, Over> {
        turns.push(Turn::Said(SUMMARISE.to_owned()));
        let mut request = self.whole(&turns);
        request.no_tools = aloud == Aloud::NoTools;
        self.request(model, request, aloud).await
    }

    /// The conversation as a fork would inherit it, within so many tokens: for a model that could
    /// not even read it to summarise it, or that cannot be paid for reading it.
    pub(crate) async fn shortened(&self, most: u64) -> Result<Result<String, String>, Over> {
        let whole = self.engine.record.whole(&self.session.id).await?;
        let entries = whole.map(|whole| whole.entries()).unwrap_or_default();
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
        let before = self.version;
        let work_until = self.work_until();
        let time_is_up = async {
            match work_until {
                Some(until) => time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(time_is_up);
        loop {
            tokio::select! {
                () = &mut time_is_up => break,
                () = self.handle.wake.notified() => break,
                _ = self.handle.halted(Halt::Soon) => return Err(Over::Halted),
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
        self.finish(End::Broken { why }).await
    }

    /// Ends the run, unless there is more to it than this driver knew.
    pub(crate) async fn finish(&mut self, end: End) -> Result<(), Over> {
        let Some(run) = self.conversation.run() else {
            return Ok(());
        };
        let cut = run.cuts > 0 && end == End::Answered;
        let answer = run.answer.clone().map(|answer| match cut {
            true => format!("{answer}\n\n[The answer was cut at the model's greatest length.]"),
            false => answer,
        });
        let entry = Entry::Ended {
            prompt: run.prompt.clone(),
            end: end.clone(),
            answer,
        };
        let waits = end == End::Answered && self.waits();
        let (id, me) = (self.session.id.clone(), self.me.clone());
        let (newest, now) = (self.conversation.newest(), self.engine.record.clock.now());
        // Whatever changes from here on is seen by whoever waits.
        self.version = self.engine.record.store.version().await.ok();
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
            // Another process may go on with the session from here.
            journal.drive(&id, "")?;
            Ok(Finished::Done(journal.entries(&id, newest, u64::MAX)?))
        });
        match finished.await? {
            Finished::Unsettled => self.tasks = true,
            Finished::NotYet(news) => self.fold(&news),
            Finished::Done(news) => {
                self.released = true;
                self.fold(&news);
                self.show(Live::Ended(end));
            }
        }
        Ok(())
    }

    /// Saves what happened, and takes in what others have added meanwhile.
    pub(crate) async fn save(&mut self, entries: Vec<Entry>) -> Result<(), Over> {
        let mut pause = Duration::from_millis(100);
        for _ in 1..TRIES {
            match self.try_save(entries.clone()).await {
                Err(Over::Broken(Trouble::Store(error))) => {
                    tracing::warn!(session = %self.session.id, %error, "not saved; tried again");
                    time::sleep(pause).await;
                    pause *= 4;
                }
                saved => return saved,
            }
        }
        self.try_save(entries).await
    }

    async fn try_save(&mut self, entries: Vec<Entry>) -> Result<(), Over> {
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
        self.publish();
    }

    pub(crate) fn show(&self, live: Live) {
        self.engine.show(&self.session.id, live);
    }
}

/// Whether people hear an answer, and whether the model may call tools in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aloud {
    Yes,
    No,
    NoTools,
}

/// A summary that was refused or cut would be all that is left of the conversation.
fn is_summary(answer: &Answer) -> bool {
    let whole = matches!(answer.stop, Stop::Finished | Stop::Tools);
    whole && !answer.text().trim().is_empty()
}

/// Takes a session over, unless another process that is alive drives it.
async fn claim(engine: &Arc<Inner>, id: &SessionId) -> Result<String, Over> {
    let mine = (engine.owner)();
    let owner = mine.as_ref().map_or("", OwnerId::as_str);
    let me = format!("{owner}/{}", Uuid::new_v4().simple());
    let (id, driver) = (id.clone(), me.clone());
    let claimed = engine.record.write(move |journal| {
        if is_driven_elsewhere(journal, &id, mine.as_ref())? {
            return Err(Trouble::Busy);
        }
        journal.drive(&id, &driver)?;
        Ok(())
    });
    claimed.await?;
    Ok(me)
}

/// The tools of the skills above the task that a session is for: they bind it, also where it
/// began with its parent's own messages.
async fn within(engine: &Inner, session: &Session) -> Result<Vec<Tools>, Trouble> {
    let Some(task) = session.task.clone() else {
        return Ok(Vec::new());
    };
    let within = engine.record.read(move |journal| {
        Ok(match journal.task(&task)? {
            Some(task) => tools_above(journal, &task)?,
            None => Vec::new(),
        })
    });
    within.await
}

/// An agent, or one that changes nothing if its file is gone.
fn known_or_harmless(profiles: &Profiles, agent: &AgentName) -> Profile {
    let harmless = || {
        let mut built_in = Profile::built_in().into_iter();
        built_in.find(|profile| profile.name.as_str() == "explore")
    };
    let known = profiles.get(agent).cloned().or_else(harmless);
    known.unwrap_or_else(|| Profile {
        name: agent.clone(),
        description: String::new(),
        prompt: String::new(),
        model: None,
        tools: Tools {
            only: Some(Vec::new()),
            ..Tools::default()
        },
        max_turns: None,
        of_project: false,
    })
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
        cost: answer.cost.unwrap_or_default(),
        unpriced: answer.unpriced(),
    };
    let called = |call: &Call| Observation::ToolCalled {
        tool: call.name.clone(),
        call: digest(&[&call.name, &call.input]),
    };
    let mut reports = vec![turned];
    reports.extend(answer.calls().map(called));
    reports
}
