//! Drives one session: sends its agent what it has not got, saves what happens, and ends its runs.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{Conversation, End, Entry, Filed, Stop},
    budget::Cost,
    id::{ModelName, OwnerId, PostId, SessionId},
    lock::lock,
    port::{Journal, Session, SessionEvent, WholeSession, is_driven_elsewhere},
    progress::Observation,
    question::{Question, Reply, about_call},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time,
};
use uuid::Uuid;

use super::{
    Ask, Asked, AskedCall, Connection, Message, OpenSession, TurnEnd, TurnStop, Verdict, Which,
    WireError, WireEvent,
    drivers::{Command, Orders},
    grants::Grant,
    host::Shared,
    journal::SessionError,
    message,
    turn::{CostCounter, Step, Turn},
};

/// How often a working session reports that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often a session that waits for its tasks looks at what was written, at most.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// For how long a process without work is kept: a follow-up mostly comes at once or much later.
const LINGER: Duration = Duration::from_secs(3);

/// How long an agent may take to stop its work, and to end in order.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long it may take, after a turn, to say whether it was told something in it.
const TOLD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an agent may take to start and open a session.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// How often a process may end by itself in one turn: each time what it did is paid for again.
const MOST_CRASHES: u32 = 3;

/// How long a session is left alone after its driver has failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How many pieces of news are taken in before they are saved.
const TOGETHER: usize = 256;

/// Drives a session.
pub(super) struct Driver {
    shared: Arc<Shared>,
    session: Session,
    orders: Orders,
    /// The name under which the driver writes. The next driver has another.
    name: String,
    conversation: Conversation,
    /// The agent's own name for the session.
    agents: Option<String>,
    /// A process that another driver has started for it, and that may still be there.
    process: Option<String>,
    /// The agent's name for the session that this one begins with.
    fork_of: Option<String>,
    /// What the agent may not have got yet, oldest first.
    posts: Vec<Filed>,
    /// The newest entry that the agent has got.
    sent: u64,
    live: Option<Live>,
    /// How the newest turn ended, if this driver has seen that.
    over: Option<TurnStop>,
    /// Why it cannot go on.
    broken: Option<String>,
    crashes: u32,
    cost: CostCounter,
    /// Which model answers, as far as the agent has said.
    model: ModelName,
    /// What its window holds, as far as the agent has said.
    window: u64,
    /// What the agent is to be told beside the entries.
    remarks: Vec<String>,
    /// The questions that are open, by our names for them.
    asked: HashMap<String, OpenQuestion>,
    reports: u64,
}

/// A question that waits for an answer.
struct OpenQuestion {
    /// The agent's name for it.
    theirs: String,
    /// What `always` covers.
    grant: Option<Grant>,
}

/// A process of the agent.
struct Live {
    connection: Arc<dyn Connection>,
    events: mpsc::UnboundedReceiver<WireEvent>,
    /// What it is told in the middle of its work, until it says whether it has got that.
    telling: Option<Telling>,
    /// What it has spent while it had no work, and the model that it said then.
    owed: Option<Cost>,
    said_model: Option<String>,
    /// Since when it has no work.
    idle_since: time::Instant,
}

/// Something that an agent is told in the middle of its work. It may say only later whether it has
/// got that: until then it must not be said again.
struct Telling {
    what: Told,
    told: JoinSet<bool>,
}

/// What an agent is told in the middle of its work.
#[derive(Clone)]
enum Told {
    /// The entries up to a number.
    Entries(u64),
    Remark(String),
}

impl Live {
    fn new(connection: Arc<dyn Connection>, events: mpsc::UnboundedReceiver<WireEvent>) -> Self {
        Self {
            connection,
            events,
            telling: None,
            owed: None,
            said_model: None,
            idle_since: time::Instant::now(),
        }
    }

    /// Begins to tell something.
    fn tell(&mut self, what: Told, message: Message) {
        let connection = self.connection.clone();
        let mut told = JoinSet::new();
        // Where it cannot be told now, or has gone, it has not got it.
        told.spawn(async move { connection.steer(&message).await.unwrap_or(false) });
        self.telling = Some(Telling { what, told });
    }
}

/// What there is to do.
enum Next {
    /// Say this, which has the entries up to a number in it.
    Say(Message, u64),
    /// Its tasks are not settled.
    Wait,
    Finish(End),
    Rest,
}

impl Driver {
    /// Drives a session until it has nothing to do.
    pub(super) async fn drive(shared: Arc<Shared>, id: SessionId, mut orders: Orders) {
        let driven = match Self::enter(shared.clone(), &id, &mut orders).await {
            Ok(mut driver) => driver.steps().await,
            Err(error) => Err(error),
        };
        // Whoever finds nobody to tell something spawns the next driver.
        drop(orders);
        if let Err(error) = driven {
            tracing::warn!(session = %id, %error, "the driver stops");
            time::sleep(RETRY_AFTER).await;
        }
        shared.drivers.forget(&id);
        shared.report(&id, SessionEvent::Idle);
    }

    /// Takes the session over from the driver before.
    async fn enter(
        shared: Arc<Shared>,
        id: &SessionId,
        orders: &mut Orders,
    ) -> Result<Self, SessionError> {
        let mine = (shared.owner)();
        let owner = mine.as_ref().map_or("", OwnerId::as_str);
        let name = format!("{owner}/{}", Uuid::new_v4().simple());
        let (session, driver) = (id.clone(), name.clone());
        let claimed = shared.sessions.write(move |journal| {
            if is_driven_elsewhere(journal, &session, mine.as_ref())? {
                return Err(SessionError::NotOurs);
            }
            journal.drive(&session, &driver)?;
            let whole = WholeSession::read(journal, &session)?;
            let whole = whole.ok_or(SessionError::NotOurs)?;
            let base = whole.session.base.as_ref();
            let base = base.map(|base| journal.entries(&base.session, 0, base.until));
            Ok((whole, base.transpose()?))
        });
        let (whole, base) = claimed.await?;
        let conversation = whole.conversation();
        let mut driver = Self {
            cost: CostCounter::new(conversation.totals().cost),
            fork_of: base.as_deref().and_then(agents_session),
            model: whole.session.model.clone(),
            window: 0,
            session: whole.session,
            shared,
            orders: std::mem::replace(orders, Orders::closed()),
            name,
            conversation: Conversation::default(),
            agents: None,
            process: None,
            posts: Vec::new(),
            sent: 0,
            live: None,
            over: None,
            broken: None,
            crashes: 0,
            remarks: Vec::new(),
            asked: HashMap::new(),
            reports: 0,
        };
        driver.fold(&whole.own);
        driver.conversation = conversation;
        driver.over = driver.has_finished().then_some(TurnStop::Finished);
        Ok(driver)
    }

    /// Whether the newest turn of the run was over when the driver before this one ended: its last
    /// answer calls nothing, and nothing came after it.
    fn has_finished(&self) -> bool {
        let run = self.conversation.run();
        let has_answered = run.is_some_and(|run| run.answers > 0);
        let last = self.conversation.last();
        let is_last = last.is_some_and(|last| last.stop == Stop::Finished && last.says);
        has_answered && is_last && self.posts.is_empty()
    }

    async fn steps(&mut self) -> Result<(), SessionError> {
        loop {
            self.catch_up().await?;
            if self.conversation.run().is_some() && self.over.is_none() && self.broken.is_none() {
                self.connect().await?;
            }
            self.await_told().await;
            match self.next() {
                Next::Say(message, until) => self.turn(message, until).await?,
                Next::Wait => {
                    // What is written from here on wakes it.
                    let version = self.shared.sessions.version().await;
                    if self.is_unsettled().await? {
                        self.idle(Some(version)).await?;
                    } else {
                        self.finish(End::Answered).await?;
                    }
                }
                Next::Finish(end) => self.finish(end).await?,
                Next::Rest => {
                    if self.rest().await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn next(&self) -> Next {
        if self.conversation.run().is_none() {
            return Next::Rest;
        }
        if let Some(why) = self.broken.clone() {
            return Next::Finish(End::Broken { why });
        }
        let unsent: Vec<Filed> = self.unsent().cloned().collect();
        if let Some(last) = unsent.last() {
            return Next::Say(message::message(&unsent), last.seq);
        }
        if let Some(remark) = self.remarks.first() {
            return Next::Say(message::plain(remark), self.sent);
        }
        match &self.over {
            None => Next::Say(message::go_on(), self.sent),
            Some(TurnStop::Finished) => Next::Wait,
            Some(TurnStop::Cancelled) => {
                let why = "its agent says that it was cancelled".to_owned();
                Next::Finish(End::Failed { why })
            }
            Some(TurnStop::Failed(why)) => Next::Finish(End::Failed { why: why.clone() }),
        }
    }

    fn unsent(&self) -> impl Iterator<Item = &Filed> {
        self.posts.iter().filter(|filed| filed.seq > self.sent)
    }

    /// Makes sure that there is a process with the session open.
    async fn connect(&mut self) -> Result<(), SessionError> {
        if self.live.is_some() {
            return Ok(());
        }
        // What a branch begins with is nowhere else, so without it there is no session.
        let first = match &self.fork_of {
            Some(id) => Which::Fork(id.clone()),
            None => Which::New,
        };
        let mut orders = std::mem::replace(&mut self.orders, Orders::closed());
        let mut aborted = None;
        let started = {
            let starting = self.load_or_begin(first);
            tokio::pin!(starting);
            loop {
                tokio::select! {
                    started = &mut starting => break Some(started),
                    command = orders.commands.recv() => match command {
                        Some(Command::Abort(done)) => {
                            aborted = Some(done);
                            break None;
                        }
                        // What has come is looked at when it has started.
                        Some(Command::Look | Command::Reply(..)) => {}
                        None => break None,
                    },
                }
            }
        };
        self.orders = orders;
        let Some(started) = started else {
            self.finish(End::Aborted).await?;
            let told = aborted.map(|done| done.send(()));
            return told.map_or(Err(SessionError::NotOurs), |_| Ok(()));
        };
        match started {
            Ok(live) => {
                let opened = live.connection.session().clone();
                let found = |filed: &&Filed| {
                    let post = filed.entry.post();
                    post.is_some_and(|post| opened.found.contains(post))
                };
                let newest = self.posts.iter().filter(found).map(|filed| filed.seq).max();
                self.sent = self.conversation_seen().max(newest.unwrap_or(0));
                self.live = Some(live);
                self.cost = CostCounter::new(self.conversation.totals().cost);
                let (id, process) = (opened.id, opened.process);
                self.save(vec![Entry::AgentSession { id, process }]).await?;
            }
            Err(error @ WireError::NotStarted(_)) => self.broken = Some(error.to_string()),
            // Nothing was said to it yet. What one process could not, the next one may: two that
            // begin at once get in each other's way, and one that was killed may not be quite gone.
            Err(error) => self.crashed(error.to_string()),
        }
        Ok(())
    }

    /// Loads the session, or begins it if it was never said anything that the agent has kept.
    async fn load_or_begin(&self, first: Which) -> Result<Live, WireError> {
        let Some(id) = self.agents.clone() else {
            return self.start(first).await;
        };
        match self.start(Which::Load(id)).await {
            Err(WireError::NoSession(_)) if self.has_done_nothing() => self.start(first).await,
            started => started,
        }
    }

    async fn start(&self, which: Which) -> Result<Live, WireError> {
        let profile = self.shared.profile(&self.session.agent);
        let settings = &self.shared.settings;
        let asked = Some(self.session.model.as_str());
        let open = OpenSession {
            ours: self.session.id.clone(),
            which,
            // That of the launch, which is sealed: the session's is only a row.
            folder: PathBuf::from(&settings.folder),
            model: asked
                .filter(|model| *model != settings.name)
                .map(str::to_owned),
            instructions: Some(self.session.system.clone()).filter(|text| !text.is_empty()),
            // An agent whose profile is gone may do least.
            reads_only: profile.is_none_or(|profile| profile.reads_only),
            may_delegate: self.session.delegates,
            ends: self.process.clone(),
            look_for: self.post_ids(),
        };
        let (sender, events) = mpsc::unbounded_channel();
        let started = time::timeout(START_TIMEOUT, self.shared.wire.start(&open, sender)).await;
        let late = || {
            let seconds = START_TIMEOUT.as_secs();
            let why = format!("{} did not start within {seconds} seconds", settings.name);
            Err(WireError::NotStarted(why))
        };
        let connection = started.unwrap_or_else(|_| late())?;
        Ok(Live::new(Arc::from(connection), events))
    }

    fn post_ids(&self) -> Vec<PostId> {
        let posts = self.posts.iter();
        posts
            .filter_map(|filed| filed.entry.post().cloned())
            .collect()
    }

    fn has_done_nothing(&self) -> bool {
        let totals = self.conversation.totals();
        totals.turns == 0 && totals.by_tool.is_empty()
    }

    /// The newest entry that the agent has answered to.
    fn conversation_seen(&self) -> u64 {
        let posts = self.posts.first();
        posts.map_or(self.sent, |first| first.seq.saturating_sub(1))
    }

    fn crashed(&mut self, why: String) {
        self.live = None;
        self.over = None;
        self.crashes += 1;
        tracing::warn!(session = %self.session.id, why, "the agent's process has ended");
        if self.crashes >= MOST_CRASHES {
            self.broken = Some(why);
        }
    }

    /// Says something to the agent and follows it until it has done with that.
    async fn turn(&mut self, said: Message, until: u64) -> Result<(), SessionError> {
        let Some(mut live) = self.live.take() else {
            return self.connect().await;
        };
        let connection = live.connection.clone();
        if said.id.is_none() && !self.remarks.is_empty() {
            self.remarks.remove(0);
        }
        (self.sent, self.over) = (until, None);
        let model = live.said_model.take().map(|model| model.as_str().into());
        let mut turn = Turn::begin(model.unwrap_or(self.model.clone()), self.window);
        if let Some(cost) = live.owed.take() {
            turn.costs(cost);
        }
        let prompt = connection.prompt(&said);
        tokio::pin!(prompt);
        let mut heartbeat = time::interval_at(time::Instant::now() + HEARTBEAT, HEARTBEAT);
        let mut steers = true;
        let mut aborted: Option<Abort> = None;
        let ended = loop {
            let deadline = aborted.as_ref().map(|abort| abort.until);
            tokio::select! {
                ended = &mut prompt => break ended,
                event = live.events.recv() => {
                    let Some(event) = event else {
                        // The prompt says what has happened.
                        break (&mut prompt).await;
                    };
                    let mut events = vec![event];
                    while events.len() < TOGETHER && let Ok(next) = live.events.try_recv() {
                        events.push(next);
                    }
                    let disobeys = disobeys(&events);
                    self.take(&mut turn, events, &*connection).await?;
                    if let Some(error) = disobeys {
                        break Err(error);
                    }
                }
                command = self.orders.commands.recv() => match command {
                    Some(Command::Look) => {
                        self.catch_up().await?;
                        if steers && aborted.is_none() {
                            self.steer(&mut live);
                        }
                        if self.conversation.run().is_none() {
                            // Somebody else has ended it.
                            connection.cancel().await;
                        }
                    }
                    Some(Command::Abort(done)) => {
                        connection.cancel().await;
                        let until = time::Instant::now() + CANCEL_TIMEOUT;
                        let abort = aborted.get_or_insert(Abort { until, done: Vec::new() });
                        abort.done.push(done);
                    }
                    Some(Command::Reply(question, reply)) => {
                        self.reply(&*connection, &question, &reply);
                        if steers && aborted.is_none() {
                            self.steer(&mut live);
                        }
                    }
                    None => return Err(SessionError::NotOurs),
                },
                (what, told) = told(&mut live.telling) => {
                    live.telling = None;
                    // Where it cannot be told now, it is told after the turn.
                    steers = told;
                    if steers {
                        self.has_told(&what);
                        if aborted.is_none() {
                            self.steer(&mut live);
                        }
                    }
                }
                _ = heartbeat.tick() => {
                    // A process that was stopped finds out by this that another has taken over.
                    self.check_ours().await?;
                    self.shared.report(&self.session.id, SessionEvent::Alive);
                }
                () = at(deadline) => {
                    let why = "it did not stop when it was told to".to_owned();
                    break Err(WireError::Gone(why));
                }
            }
        };
        let mut rest = Vec::new();
        while let Ok(event) = live.events.try_recv() {
            rest.push(event);
        }
        let ended = disobeys(&rest).map_or(ended, Err);
        self.take(&mut turn, rest, &*connection).await?;
        let prices = self.shared.prices.clone();
        let steps = turn.end(ended.as_ref().ok(), self.sent, &*prices, &mut self.cost);
        self.carry_out(steps).await?;
        self.carry_out(turn.lose_calls()).await?;
        (self.model, self.window) = (turn.model.clone(), turn.window);
        self.close_questions();
        match ended {
            Ok(TurnEnd { stop, .. }) => {
                live.idle_since = time::Instant::now();
                self.live = Some(live);
                self.crashes = 0;
                self.over = Some(stop);
            }
            Err(WireError::Gone(_)) if aborted.is_some() => {}
            Err(WireError::Gone(why)) => self.crashed(why),
            // Its process ends here.
            Err(WireError::Disobeys(why)) => {
                self.broken = Some(format!("{}: {why}", self.shared.settings.name));
            }
            Err(error) => {
                self.live = Some(live);
                self.broken = Some(error.to_string());
            }
        }
        if let Some(abort) = aborted {
            self.finish(End::Aborted).await?;
            for done in abort.done {
                let _ = done.send(());
            }
        }
        Ok(())
    }

    /// Begins to tell an agent at work what has come, one thing after another.
    fn steer(&self, live: &mut Live) {
        if live.telling.is_some() {
            return;
        }
        if let Some(remark) = self.remarks.first() {
            live.tell(Told::Remark(remark.clone()), message::plain(remark));
            return;
        }
        let unsent: Vec<Filed> = self.unsent().cloned().collect();
        if let Some(last) = unsent.last() {
            live.tell(Told::Entries(last.seq), message::message(&unsent));
        }
    }

    /// The agent has got what it was told.
    fn has_told(&mut self, what: &Told) {
        match what {
            Told::Entries(until) => self.sent = self.sent.max(*until),
            Told::Remark(remark) => {
                let at = self.remarks.iter().position(|known| known == remark);
                at.map(|at| self.remarks.remove(at));
            }
        }
    }

    /// Waits until the agent has said whether it was told something in the turn before. One that does
    /// not say that is loaded anew: its history does.
    async fn await_told(&mut self) {
        let live = self.live.as_mut().filter(|live| live.telling.is_some());
        let Some(live) = live.filter(|_| self.conversation.run().is_some()) else {
            return;
        };
        match time::timeout(TOLD_TIMEOUT, told(&mut live.telling)).await {
            Ok((what, is_told)) => {
                live.telling = None;
                if is_told {
                    self.has_told(&what);
                }
            }
            Err(_) => self.live = None,
        }
    }

    /// Takes in what has happened, and saves it.
    async fn take(
        &mut self,
        turn: &mut Turn,
        events: Vec<WireEvent>,
        connection: &dyn Connection,
    ) -> Result<(), SessionError> {
        let mut steps = Vec::new();
        for event in events {
            match event {
                WireEvent::Asked(ask) => {
                    // What it asks about comes first.
                    self.carry_out(std::mem::take(&mut steps)).await?;
                    self.asked(ask, connection);
                }
                WireEvent::Withdrawn(id) => {
                    let open = self.asked.iter().find(|(_, open)| open.theirs == id);
                    if let Some(name) = open.map(|(name, _)| name.clone()) {
                        self.answered(&name);
                    }
                }
                WireEvent::Alive => self.shared.report(&self.session.id, SessionEvent::Alive),
                event => steps.extend(turn.take(event, self.sent, &*self.shared.prices)),
            }
        }
        self.carry_out(steps).await
    }

    /// Saves entries, and reports what is observed once they are there.
    async fn carry_out(&mut self, steps: Vec<Step>) -> Result<(), SessionError> {
        let mut entries = Vec::new();
        let mut observed = Vec::new();
        for step in steps {
            match step {
                Step::File(entry) => entries.push(entry),
                Step::Report(what) => observed.push(what),
            }
        }
        if !entries.is_empty() {
            self.save(entries).await?;
        }
        for what in observed {
            self.observe(what);
        }
        Ok(())
    }

    fn observe(&mut self, what: Observation) {
        self.reports += 1;
        let key = format!("{} {}", self.name, self.reports);
        let event = SessionEvent::Observed { key, what };
        self.shared.report(&self.session.id, event);
    }

    /// Answers by the user's rules and what was allowed for good, or asks.
    fn asked(&mut self, ask: Ask, connection: &dyn Connection) {
        let (question, grant) = match ask.what {
            Asked::Form(question) => (question, None),
            Asked::Call(call) => {
                let each = match self.verdict(&call) {
                    Verdict::Allow => {
                        connection.reply(&ask.id, &Reply::Once);
                        return;
                    }
                    Verdict::Deny(why) => {
                        connection.reply(&ask.id, &Reply::Reject { text: Some(why) });
                        return;
                    }
                    Verdict::Ask => false,
                    Verdict::AskEach => true,
                };
                let granted = |grant| self.shared.grants.has(&self.session.id, grant);
                let grant = Grant::of(&call, each);
                if granted(&grant) || granted(&Grant::Use(call.clone())) {
                    connection.reply(&ask.id, &Reply::Once);
                    return;
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
    }

    fn verdict(&self, call: &AskedCall) -> Verdict {
        let profile = self.shared.profile(&self.session.agent);
        let reads_only = profile.is_none_or(|profile| profile.reads_only);
        if reads_only && !call.is_ours && !self.shared.judge.only_reads(call) {
            return Verdict::Deny("this agent may only read".to_owned());
        }
        self.shared.judge.judge(call)
    }

    fn reply(&mut self, connection: &dyn Connection, name: &str, reply: &Reply) {
        let Some(open) = self.asked.get(name) else {
            return;
        };
        if *reply == Reply::Always
            && let Some(grant) = &open.grant
        {
            self.shared.grants.add(&self.session.id, grant.clone());
        }
        let is_told = connection.reply(&open.theirs, reply);
        self.answered(name);
        if let Reply::Reject { text: Some(text) } = reply
            && !is_told
        {
            let remark = format!("What you asked for was not permitted: {text}");
            self.remarks.push(remark);
        }
    }

    fn answered(&mut self, name: &str) {
        if self.asked.remove(name).is_none() {
            return;
        }
        lock(&self.orders.questions).remove(name);
        self.observe(Observation::Answered {
            id: name.to_owned(),
        });
    }

    fn close_questions(&mut self) {
        let open: Vec<String> = self.asked.keys().cloned().collect();
        for name in open {
            self.answered(&name);
        }
    }

    /// Whether tasks of the session are unfinished, or it has not been told of all that have ended.
    async fn is_unsettled(&self) -> Result<bool, SessionError> {
        let id = self.session.id.clone();
        let read = self
            .shared
            .sessions
            .read(move |journal| Ok(journal.any_live(&id)? || journal.any_pending(&id)?));
        read.await
    }

    /// Ends the run, unless there is more to it than this driver knew.
    async fn finish(&mut self, end: End) -> Result<(), SessionError> {
        let Some(run) = self.conversation.run() else {
            return Ok(());
        };
        let entry = Entry::Ended {
            prompt: run.prompt.clone(),
            end: end.clone(),
            answer: run.answer.clone(),
        };
        let (id, name) = (self.session.id.clone(), self.name.clone());
        let (newest, now) = (self.conversation.newest(), self.shared.sessions.now());
        let answered = end == End::Answered;
        let finished = self.shared.sessions.write(move |journal| {
            check_driver(journal, &id, &name)?;
            let news = journal.entries(&id, newest, u64::MAX)?;
            if answered && !news.is_empty() {
                return Ok((news, false));
            }
            journal.file(&id, &entry, now)?;
            Ok((journal.entries(&id, newest, u64::MAX)?, true))
        });
        let (news, is_over) = finished.await?;
        self.fold(&news);
        if is_over {
            (self.over, self.broken, self.crashes) = (None, None, 0);
            self.remarks.clear();
            self.shared.report(&self.session.id, SessionEvent::Idle);
        }
        Ok(())
    }

    /// Waits for something to do, and lets go of the process after a while. True when the driver may
    /// end.
    async fn rest(&mut self) -> Result<bool, SessionError> {
        let has_something = self.live.is_some() || !self.orders.commands.is_empty();
        if has_something && self.idle(None).await? {
            return Ok(false);
        }
        let (id, name) = (self.session.id.clone(), self.name.clone());
        if !self.shared.drivers.may_end(&id, &mut self.orders) {
            return Ok(false);
        }
        let released = self.shared.sessions.write(move |journal| {
            check_driver(journal, &id, &name)?;
            // Another process may go on with the session from here.
            Ok(journal.drive(&id, "")?)
        });
        match released.await {
            Ok(()) | Err(SessionError::NotOurs) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn check_ours(&self) -> Result<(), SessionError> {
        let (id, name) = (self.session.id.clone(), self.name.clone());
        let read = self
            .shared
            .sessions
            .read(move |journal| check_driver(journal, &id, &name));
        read.await
    }

    /// Waits for a command, or until the journal has changed since a version, and lets go of the
    /// process after a while: it can be started again, and needs much memory. False if nothing has
    /// come and there is no process any more.
    async fn idle(&mut self, version: Option<i64>) -> Result<bool, SessionError> {
        let store = self.shared.sessions.store.clone();
        let written = async {
            match version {
                Some(version) => {
                    time::sleep(LOOK_INTERVAL).await;
                    store.changed_since(version).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::pin!(written);
        let mut heartbeat = time::interval_at(time::Instant::now() + HEARTBEAT, HEARTBEAT);
        loop {
            let until = self.live.as_ref().map(|live| live.idle_since + LINGER);
            tokio::select! {
                command = self.orders.commands.recv() => {
                    self.idle_command(command).await?;
                    return Ok(true);
                }
                () = &mut written => return Ok(true),
                () = drained(&mut self.live) => {}
                () = at(until) => {
                    if let Some(live) = self.live.take() {
                        let _ = time::timeout(CLOSE_TIMEOUT, live.connection.close()).await;
                    }
                    if version.is_none() {
                        return Ok(false);
                    }
                }
                _ = heartbeat.tick() => {
                    self.check_ours().await?;
                    self.shared.report(&self.session.id, SessionEvent::Alive);
                }
            }
        }
    }

    async fn idle_command(&mut self, command: Option<Command>) -> Result<(), SessionError> {
        match command {
            None => Err(SessionError::NotOurs),
            Some(Command::Abort(done)) => {
                self.finish(End::Aborted).await?;
                let _ = done.send(());
                Ok(())
            }
            // A question that is not open needs no answer.
            Some(Command::Look | Command::Reply(..)) => Ok(()),
        }
    }

    async fn save(&mut self, entries: Vec<Entry>) -> Result<(), SessionError> {
        let (id, name) = (self.session.id.clone(), self.name.clone());
        let (newest, now) = (self.conversation.newest(), self.shared.sessions.now());
        let saved = self.shared.sessions.write(move |journal| {
            check_driver(journal, &id, &name)?;
            for entry in &entries {
                journal.file(&id, entry, now)?;
            }
            Ok(journal.entries(&id, newest, u64::MAX)?)
        });
        let news = saved.await?;
        self.fold(&news);
        Ok(())
    }

    async fn catch_up(&mut self) -> Result<(), SessionError> {
        let (id, newest) = (self.session.id.clone(), self.conversation.newest());
        let news = self
            .shared
            .sessions
            .read(move |journal| Ok(journal.entries(&id, newest, u64::MAX)?));
        let news = news.await?;
        self.fold(&news);
        Ok(())
    }

    /// Takes in entries of the session.
    fn fold(&mut self, news: &[Filed]) {
        for filed in news {
            self.conversation.take(filed);
            match &filed.entry {
                Entry::AgentSession { id, process } => {
                    (self.agents, self.process) = (Some(id.clone()), process.clone());
                }
                Entry::Answered { seen, .. } => {
                    self.sent = self.sent.max(*seen);
                    self.posts.retain(|post| post.seq > *seen);
                }
                Entry::Ended { prompt, .. } => {
                    self.posts.retain(|post| post.entry.post() != Some(prompt));
                }
                entry => {
                    if matches!(entry, Entry::Prompted { .. }) {
                        (self.over, self.broken) = (None, None);
                    }
                    if message::parts_of(entry).is_some() {
                        self.posts.push(filed.clone());
                    }
                }
            }
        }
    }
}

/// Whether an agent has done what it may not do unasked.
fn disobeys(events: &[WireEvent]) -> Option<WireError> {
    events.iter().find_map(|event| match event {
        WireEvent::Disobeyed(why) => Some(WireError::Disobeys(why.clone())),
        _ => None,
    })
}

/// What an agent was told and whether it has got that, once it says so.
async fn told(telling: &mut Option<Telling>) -> (Told, bool) {
    match telling {
        Some(telling) => {
            let told = telling.told.join_next().await;
            let told = told.is_some_and(|told| told.unwrap_or(false));
            (telling.what.clone(), told)
        }
        None => std::future::pending().await,
    }
}

/// Takes in what an agent says while it has no work. Nobody follows that: what it asks for is not
/// permitted.
async fn drained(live: &mut Option<Live>) {
    let Some(live) = live else {
        return std::future::pending().await;
    };
    while let Some(event) = live.events.recv().await {
        match event {
            WireEvent::Asked(ask) => {
                let reject = Reply::Reject { text: None };
                live.connection.reply(&ask.id, &reject);
            }
            WireEvent::Spent(cost) => live.owed = Some(live.owed.unwrap_or_default() + cost),
            WireEvent::Model(model) => live.said_model = Some(model),
            // The next sum has this one in it.
            WireEvent::CostSum(_)
            | WireEvent::Text(_)
            | WireEvent::Thought(_)
            | WireEvent::Tool(_)
            | WireEvent::Context(_)
            | WireEvent::Withdrawn(_)
            | WireEvent::Disobeyed(_)
            | WireEvent::Alive => {}
        }
    }
    // It has ended; the next prompt finds out.
    std::future::pending().await
}

/// An abort that is under way, and who waits for it.
struct Abort {
    until: time::Instant,
    done: Vec<oneshot::Sender<()>>,
}

/// At a moment, if there is one.
async fn at(moment: Option<time::Instant>) {
    match moment {
        Some(moment) => time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The agent's name for a session, of its entries.
fn agents_session(entries: &[Filed]) -> Option<String> {
    entries.iter().rev().find_map(|filed| match &filed.entry {
        Entry::AgentSession { id, .. } => Some(id.clone()),
        _ => None,
    })
}

fn check_driver(journal: &mut dyn Journal, id: &SessionId, name: &str) -> Result<(), SessionError> {
    match journal.driver(id)? {
        Some(driver) if driver == name => Ok(()),
        _ => Err(SessionError::NotOurs),
    }
}
