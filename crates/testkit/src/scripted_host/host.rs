//! The host itself.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    budget::Spent,
    id::{AgentName, PostId, SessionId, TaskId},
    lifecycle::{Standing, Unavailable},
    lock::lock,
    model_choice::HostModel,
    moment::Moment,
    port::{
        Clock, Delivery, Host, HostError, HostEvents, Inheritance, Inspection, NewSession, Notice,
        OneAnswer, OneQuestion, Prompt, Report, SessionEvent, WantedModel,
    },
    progress::{Observation, Progress, Totals},
    question::{Answered, Question, Reply},
    read::Format,
    task::Outcome,
    transcript::{
        Message, MessageId, Outcome as CallOutcome, Part, Role, Skipped, Text, ToolCall, Transcript,
    },
};
use tokio::{
    sync::{broadcast, oneshot},
    task::JoinSet,
    time,
};

use super::{
    faults::{Call, Faults},
    plan::{Heard, Plan},
    script::Script,
    world::{Line, World},
};

/// How many reports a slow listener may be behind before it misses some.
const BEHIND: usize = 4_096;

/// A host whose children do what a script says. Clones are the same host.
#[derive(Clone)]
pub struct ScriptedHost {
    inner: Arc<Inner>,
}

struct Inner {
    script: Arc<Script>,
    world: World,
    clock: Arc<dyn Clock>,
    reports: broadcast::Sender<Report>,
    faults: Mutex<Faults>,
    /// The prompts whose reports are being sent, and those who send them.
    at_work: Mutex<HashSet<PostId>>,
    reporters: Mutex<JoinSet<()>>,
}

/// A prompt and what came of it.
struct Course {
    prompt: PostId,
    begun: Moment,
    heard: Heard,
    plan: Plan,
    /// When it was aborted or interrupted.
    cut: Option<(Moment, Cut)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Cut {
    Aborted,
    Interrupted,
}

impl ScriptedHost {
    /// A host in this world.
    pub fn new(script: Script, world: World, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner: Arc::new(Inner {
                script: Arc::new(script),
                world,
                clock,
                reports: broadcast::channel(BEHIND).0,
                faults: Mutex::default(),
                at_work: Mutex::default(),
                reporters: Mutex::default(),
            }),
        }
    }

    /// What is in the sessions.
    pub fn world(&self) -> &World {
        &self.inner.world
    }

    /// What goes wrong, to look at and to change.
    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        lock(&self.inner.faults)
    }

    /// The session that is made for a task.
    pub fn session_of(task: &TaskId) -> SessionId {
        let name = task.as_str().trim_start_matches(TaskId::KIND);
        format!("ses_{name}").into()
    }

    /// Sends a report, as if something had happened.
    pub fn report(&self, report: Report) {
        self.inner.report(report);
    }

    /// Stops the host in the middle of its work and starts it again.
    ///
    /// # Errors
    /// When the world cannot be written.
    pub fn restart(&self) -> io::Result<()> {
        let now = self.inner.clock.now();
        for session in self.inner.world.sessions()? {
            let courses = self.inner.courses(&self.inner.world.lines(&session)?);
            if courses.iter().any(|course| course.is_working(now)) {
                let at = now.as_millis();
                self.inner.world.add(&session, Line::Interrupted { at })?;
            }
        }
        self.inner.report(Report::Missed);
        Ok(())
    }

    /// Every call begins here: it is counted, slow, and fails if it is to fail.
    async fn enter(&self, call: Call) -> Result<(), HostError> {
        let (slow, fails) = {
            let mut faults = self.faults();
            *faults.asked.entry(call).or_default() += 1;
            let left = faults.fail.entry(call).or_default();
            let fails = *left > 0;
            *left = left.saturating_sub(1);
            (faults.slow, fails)
        };
        if !slow.is_zero() {
            time::sleep(slow).await;
        }
        if fails {
            Err(HostError::Unreachable(format!("{call:?} failed as told")))
        } else {
            Ok(())
        }
    }

    /// A call has done what it should; its answer may be lost on the way.
    fn return_answer<T>(&self, call: Call, answer: T) -> Result<T, HostError> {
        let mut faults = self.faults();
        let left = faults.lose_answer.entry(call).or_default();
        match *left {
            0 => Ok(answer),
            _ => {
                *left -= 1;
                Err(HostError::Unreachable(
                    "the answer was lost as told".to_owned(),
                ))
            }
        }
    }

    fn lines(&self, session: &SessionId) -> Result<Vec<Line>, HostError> {
        self.inner.world.lines(session).map_err(unreachable)
    }

    /// What is in a session that exists.
    fn existing(&self, session: &SessionId) -> Result<Vec<Line>, HostError> {
        let lines = self.lines(session)?;
        if exists(session, &lines) {
            Ok(lines)
        } else {
            Err(HostError::NoSession(session.clone()))
        }
    }

    fn add(&self, session: &SessionId, line: Line) -> Result<(), HostError> {
        self.inner.world.add(session, line).map_err(unreachable)
    }

    /// Puts something into a session, after it has been on its way for a while; whoever sent
    /// it need not wait.
    async fn arrive(&self, session: &SessionId, line: Line) -> Result<(), HostError> {
        let on_its_way = self.faults().on_its_way;
        if on_its_way.is_zero() {
            return self.add(session, line);
        }
        let (world, session) = (self.inner.world.clone(), session.clone());
        let (arrived, arrives) = oneshot::channel();
        lock(&self.inner.reporters).spawn(async move {
            time::sleep(on_its_way).await;
            // Nobody has to wait for it.
            let _ = arrived.send(world.add(&session, line));
        });
        let added = arrives.await;
        added
            .map_err(|_| HostError::Unreachable("the host is ending".to_owned()))?
            .map_err(unreachable)
    }

    /// Begins to send the reports of a course from a moment on, unless that is being done.
    fn attend(&self, session: &SessionId, course: Course, from: Moment) {
        if !lock(&self.inner.at_work).insert(course.prompt.clone()) {
            return;
        }
        let (inner, session) = (Arc::downgrade(&self.inner), session.clone());
        let clock = self.inner.clock.clone();
        let mut reporters = lock(&self.inner.reporters);
        while reporters.try_join_next().is_some() {}
        reporters.spawn(async move {
            for (number, (after, what)) in course.plan.seen.into_iter().enumerate() {
                let due = course.begun.after(after);
                if due < from {
                    continue;
                }
                sleep_until(&*clock, due).await;
                let Some(inner) = inner.upgrade() else { return };
                let key = format!("{}.{number}", course.prompt);
                let event = SessionEvent::Observed { key, what };
                inner.report(Report::Session(session.clone(), event));
            }
            let ends = course.plan.end.map(|(after, ..)| after);
            let retries = course.plan.unavailable.map(|(after, ..)| after);
            let Some(after) = ends.or(retries) else {
                return;
            };
            sleep_until(&*clock, course.begun.after(after)).await;
            let Some(inner) = inner.upgrade() else { return };
            lock(&inner.at_work).remove(&course.prompt);
            inner.report(Report::Session(session, SessionEvent::Idle));
        });
    }
}

impl Inner {
    fn report(&self, report: Report) {
        let times = {
            let mut faults = lock(&self.faults);
            faults.reports += 1;
            let lost = faults
                .lose_every
                .is_some_and(|every| every > 0 && faults.reports.is_multiple_of(every));
            match (faults.mute || lost, faults.repeat) {
                (true, _) => 0,
                (false, true) => 2,
                (false, false) => 1,
            }
        };
        for _ in 0..times {
            // Nobody has to listen.
            let _ = self.reports.send(report.clone());
        }
    }

    /// The prompts of a session, oldest first.
    fn courses(&self, lines: &[Line]) -> Vec<Course> {
        let wakes = lock(&self.faults).notices_wake;
        let mut courses: Vec<Course> = Vec::new();
        let mut inherited = 0;
        for line in lines {
            let cut = match line {
                Line::Inherited { context, .. } => {
                    inherited = context.chars().count();
                    continue;
                }
                Line::Prompted { id, text, at, .. } => {
                    let heard = Heard {
                        prompt: text.clone(),
                        inherited,
                        ..Heard::default()
                    };
                    courses.push(Course {
                        prompt: id.as_str().into(),
                        begun: Moment::from_millis(*at),
                        plan: Plan::new(&self.script, &heard),
                        heard,
                        cut: None,
                    });
                    continue;
                }
                Line::Told {
                    id, visible, at, ..
                } => {
                    let at = Moment::from_millis(*at);
                    if let Some(course) = courses.last_mut()
                        && PostId::from(id.as_str()).is_message()
                        && (wakes || course.is_working(at))
                    {
                        // Above it stands who says it.
                        let said = visible.lines().last().unwrap_or_default();
                        course.heard.told.push(said.to_owned());
                        course.plan = Plan::new(&self.script, &course.heard);
                    }
                    continue;
                }
                Line::Replied {
                    question,
                    reply,
                    at,
                } => {
                    let at = Moment::from_millis(*at);
                    if let Some(course) = courses.last_mut() {
                        let reply = (question.clone(), reply.clone(), at.since(course.begun));
                        course.heard.replies.push(reply);
                        course.plan = Plan::new(&self.script, &course.heard);
                    }
                    continue;
                }
                Line::Aborted { at } => (Moment::from_millis(*at), Cut::Aborted),
                Line::Interrupted { at } => (Moment::from_millis(*at), Cut::Interrupted),
                Line::Created { .. } | Line::AskedOnce { .. } | Line::Deleted => continue,
            };
            if let Some(course) = courses.last_mut()
                && course.is_working(cut.0)
            {
                course.cut = Some(cut);
            }
        }
        courses
    }
}

impl Course {
    fn end(&self) -> Option<Moment> {
        let end = self.plan.end.as_ref();
        end.map(|(after, ..)| self.begun.after(*after))
    }

    fn is_working(&self, now: Moment) -> bool {
        self.cut.is_none() && self.end().is_none_or(|end| now < end)
    }

    /// Its model, if it cannot be asked by now.
    fn unavailable(&self, now: Moment) -> Option<Standing> {
        let (after, why, retrying) = self.plan.unavailable.as_ref()?;
        let is_due = self.cut.is_none() && self.begun.after(*after) <= now;
        is_due.then(|| {
            Standing::ModelUnavailable(Unavailable {
                model: None,
                why: why.clone(),
                answer: None,
                retrying: *retrying,
            })
        })
    }

    fn standing(&self, now: Moment) -> Standing {
        if let Some(unavailable) = self.unavailable(now) {
            return unavailable;
        }
        match (&self.cut, &self.plan.end) {
            (Some((_, Cut::Interrupted)), _) => Standing::Interrupted,
            (Some((_, Cut::Aborted)), _) => Standing::Done {
                outcome: Outcome::Cancelled,
                answer: None,
            },
            (None, Some((after, outcome, answer))) if self.begun.after(*after) <= now => {
                Standing::Done {
                    outcome: outcome.clone(),
                    answer: answer.clone(),
                }
            }
            (None, _) => Standing::Working,
        }
    }

    /// What the child has said and done until now.
    fn said(&self, now: Moment) -> Vec<Part<'static>> {
        let until = self.cut.map_or(now, |(at, _)| at);
        let made = self.plan.calls.iter();
        let made = made.filter(|(after, ..)| self.begun.after(*after) <= until);
        let mut parts: Vec<Part> = made
            .map(|(_, tool, input)| {
                Part::Tool(ToolCall {
                    id: None,
                    name: Text::new(tool.clone()),
                    input: Text::new(input.clone()),
                    outcome: CallOutcome::Completed(Text::new("(scripted)")),
                })
            })
            .collect();
        if let Standing::Done { answer, .. } = self.standing(now) {
            parts.extend(answer.map(|text| spoken(&text)));
        }
        parts
    }

    /// What it has asked and waits for.
    fn asking(&self, now: Moment) -> BTreeMap<String, Question> {
        let mut progress = Progress::default();
        for (after, what) in &self.plan.seen {
            if self.begun.after(*after) <= now {
                progress.note(what, now);
            }
        }
        let open = progress.asking.into_iter();
        open.map(|(id, open)| (id, open.question)).collect()
    }

    /// What it has used until now.
    fn add_to(&self, totals: &mut Totals, now: Moment) {
        let until = self.cut.map_or(now, |(at, _)| at);
        for (after, what) in &self.plan.seen {
            if self.begun.after(*after) > until {
                continue;
            }
            match what {
                Observation::ToolCalled { tool, .. } => {
                    *totals.by_tool.entry(tool.clone()).or_default() += 1;
                }
                Observation::Turned(answer) => totals.add(*answer),
                Observation::AskedBeside(_)
                | Observation::Asked { .. }
                | Observation::Answered { .. }
                | Observation::CommandQueued
                | Observation::CommandStarted
                | Observation::FellBack(_)
                | Observation::Counted(_) => {}
            }
        }
    }
}

#[async_trait]
impl Host for ScriptedHost {
    async fn agents(&self) -> Result<Vec<AgentName>, HostError> {
        self.enter(Call::Agents).await?;
        Ok(self.inner.script.agents.clone())
    }

    async fn models(&self) -> Result<Option<Vec<HostModel>>, HostError> {
        self.enter(Call::Models).await?;
        let models = &self.inner.script.models;
        Ok((!models.is_empty()).then(|| models.clone()))
    }

    async fn model_of(&self, wanted: &WantedModel) -> Result<Option<HostModel>, HostError> {
        self.enter(Call::Models).await?;
        let script = &self.inner.script;
        let own = script.models_of_agents.get(&wanted.agent);
        let own = own.filter(|_| wanted.asked.is_none());
        let name = wanted.asked.as_ref().or(own);
        let mut models = script.models.iter();
        let found = models.find(|model| Some(&model.name) == name);
        Ok(found.map(|model| HostModel {
            of_agent: own.is_some(),
            ..model.clone()
        }))
    }

    async fn create(&self, new: NewSession) -> Result<SessionId, HostError> {
        self.enter(Call::Create).await?;
        let session = Self::session_of(&new.task);
        let is_new = self.lines(&session)?.is_empty();
        if new.first_attempt && !is_new {
            let why = format!("{session} was made before the first attempt");
            return Err(HostError::Refused(why));
        }
        if is_new {
            let line = Line::Created {
                task: new.task.to_string(),
                parent: new.parent.to_string(),
                title: new.title,
                agent: new.agent.to_string(),
                may_delegate: new.may_delegate,
            };
            self.add(&session, line)?;
        }
        self.return_answer(Call::Create, session)
    }

    async fn inject(&self, session: &SessionId, what: Inheritance) -> Result<(), HostError> {
        self.enter(Call::Inject).await?;
        let known =
            |line: &Line| matches!(line, Line::Inherited { id, .. } if *id == what.id.as_str());
        if self.existing(session)?.iter().any(known) {
            return Ok(());
        }
        let line = Line::Inherited {
            id: what.id.to_string(),
            preamble: what.preamble,
            context: what.context,
        };
        self.add(session, line)
    }

    async fn prompt(&self, session: &SessionId, prompt: Prompt) -> Result<(), HostError> {
        self.enter(Call::Prompt).await?;
        self.existing(session)?;
        let line = Line::Prompted {
            id: prompt.id.to_string(),
            text: prompt.text,
            at: self.inner.clock.now().as_millis(),
            model: prompt.model.map(|model| model.to_string()),
            effort: prompt.effort.map(|effort| effort.to_string()),
        };
        self.arrive(session, line).await?;
        let lines = self.lines(session)?;
        if let Some(course) = self.inner.courses(&lines).pop() {
            let begun = course.begun;
            self.attend(session, course, begun);
        }
        self.return_answer(Call::Prompt, ())
    }

    async fn abort(&self, session: &SessionId) -> Result<(), HostError> {
        self.enter(Call::Abort).await?;
        let now = self.inner.clock.now();
        let courses = self.inner.courses(&self.lines(session)?);
        if courses.iter().any(|course| course.is_working(now)) {
            let at = now.as_millis();
            self.add(session, Line::Aborted { at })?;
        }
        let idle = SessionEvent::Idle;
        self.inner.report(Report::Session(session.clone(), idle));
        Ok(())
    }

    fn counts_at_the_end(&self) -> bool {
        self.faults().counts_at_the_end
    }

    fn notices_wake(&self) -> bool {
        self.faults().notices_wake
    }

    async fn ask_once(
        &self,
        session: &SessionId,
        question: OneQuestion,
    ) -> Result<Option<OneAnswer>, HostError> {
        self.enter(Call::AskOnce).await?;
        let Some(last) = &self.inner.script.last_turn else {
            return Ok(None);
        };
        let line = Line::AskedOnce {
            id: question.id.to_string(),
            text: question.text,
            at: self.inner.clock.now().as_millis(),
        };
        self.add(session, line)?;
        let thinks = time::timeout(question.within, time::sleep(last.after));
        Ok(thinks.await.ok().map(|()| OneAnswer {
            text: last.text.clone(),
            spent: Spent::answer(last.tokens, last.cost, 0),
        }))
    }

    async fn messages(&self, session: &SessionId) -> Result<Transcript<'static>, HostError> {
        self.enter(Call::Messages).await?;
        let lines = self.existing(session)?;
        let is_child = lines
            .iter()
            .any(|line| matches!(line, Line::Created { .. }));
        let mut messages = Vec::new();
        if let Some(saved) = self
            .inner
            .script
            .conversation
            .as_deref()
            .filter(|_| !is_child)
        {
            let saved = Format::OpenCode
                .read(saved)
                .map_err(|error| HostError::Refused(error.to_string()))?;
            messages.extend(saved.messages().iter().cloned().map(Message::into_owned));
        }
        let now = self.inner.clock.now();
        let mut courses = self.inner.courses(&lines).into_iter();
        let by_user = |id: &str, texts: &[&String]| {
            let parts = texts.iter().map(|text| spoken(text)).collect();
            said(id, Role::User, parts)
        };
        for line in &lines {
            match line {
                Line::Inherited {
                    id,
                    preamble,
                    context,
                } => messages.push(by_user(id, &[preamble, context])),
                Line::Told {
                    id,
                    visible,
                    hidden,
                    ..
                } => messages.push(by_user(id, &[visible, hidden])),
                Line::Prompted { id, text, .. } => {
                    messages.push(by_user(id, &[text]));
                    let parts = courses.next().map(|course| course.said(now));
                    if let Some(parts) = parts.filter(|parts| !parts.is_empty()) {
                        messages.push(said(&format!("{id}.answer"), Role::Assistant, parts));
                    }
                }
                Line::Created { .. }
                | Line::Aborted { .. }
                | Line::AskedOnce { .. }
                | Line::Interrupted { .. }
                | Line::Replied { .. }
                | Line::Deleted => {}
            }
        }
        Ok(Transcript::new(messages, Skipped::default()))
    }

    async fn exists(&self, session: &SessionId) -> Result<bool, HostError> {
        self.enter(Call::Exists).await?;
        Ok(exists(session, &self.lines(session)?))
    }

    async fn inspect(&self, session: &SessionId, prompt: &PostId) -> Result<Inspection, HostError> {
        self.enter(Call::Inspect).await?;
        let lines = self.lines(session)?;
        if !exists(session, &lines) {
            return Ok(Inspection {
                standing: Standing::Gone,
                totals: None,
                asking: None,
            });
        }
        let now = self.inner.clock.now();
        let mut totals = Totals::default();
        let mut standing = Standing::Unprompted;
        let mut asking = None;
        for course in self.inner.courses(&lines) {
            course.add_to(&mut totals, now);
            if course.prompt == *prompt {
                standing = course.standing(now);
                if standing == Standing::Working {
                    asking = Some(course.asking(now));
                    self.attend(session, course, now);
                }
            }
        }
        let late = self.faults().late_inspection;
        if !late.is_zero() {
            time::sleep(late).await;
        }
        Ok(Inspection {
            standing,
            totals: Some(totals),
            asking,
        })
    }

    async fn deliver(&self, session: &SessionId, notice: Notice) -> Result<Delivery, HostError> {
        self.enter(Call::Deliver).await?;
        let marks = self.inner.world.marks(session).map_err(unreachable)?;
        if !exists(session, &marks) {
            return Ok(Delivery::Gone);
        }
        {
            let mut faults = self.faults();
            if faults.busy.contains(session) {
                return Ok(Delivery::NotNow);
            }
            if faults.holds {
                return Ok(Delivery::Held);
            }
            if faults.forget > 0 {
                faults.forget -= 1;
                return Ok(Delivery::Taken);
            }
        }
        // Not checked against what is there: it is for the sender to send once.
        let line = Line::Told {
            id: notice.id.to_string(),
            visible: notice.message.visible,
            hidden: notice.message.hidden,
            at: self.inner.clock.now().as_millis(),
        };
        self.arrive(session, line).await?;
        self.return_answer(Call::Deliver, Delivery::Taken)
    }

    async fn confirm(&self, session: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.enter(Call::Confirm).await?;
        let (late, now) = (self.faults().late, self.inner.clock.now());
        let told = |line: &Line| match line {
            Line::Told { id, at, .. } => {
                let shows = Moment::from_millis(*at).after(late);
                *id == notice.as_str() && shows <= now
            }
            Line::Prompted { id, .. } => *id == notice.as_str(),
            _ => false,
        };
        Ok(self.lines(session)?.iter().any(told))
    }

    async fn is_on_its_way(&self, _: &SessionId, notice: &PostId) -> Result<bool, HostError> {
        self.enter(Call::IsOnItsWay).await?;
        Ok(self.faults().queued.contains(notice))
    }

    async fn answer(
        &self,
        session: &SessionId,
        question: &str,
        reply: Reply,
    ) -> Result<Answered, HostError> {
        self.enter(Call::Answer).await?;
        let now = self.inner.clock.now();
        let courses = self.inner.courses(&self.existing(session)?);
        let course = courses.last().filter(|course| course.is_working(now));
        if !course.is_some_and(|course| course.asking(now).contains_key(question)) {
            return Ok(Answered::NotAsked);
        }
        let line = Line::Replied {
            question: question.to_owned(),
            reply: reply.shown(),
            at: now.as_millis(),
        };
        self.add(session, line)?;
        if let Some(course) = self.inner.courses(&self.lines(session)?).pop() {
            lock(&self.inner.at_work).remove(&course.prompt);
            self.attend(session, course, now);
        }
        self.return_answer(Call::Answer, Answered::Taken)
    }

    fn subscribe(&self) -> Box<dyn HostEvents> {
        Box::new(Listener(self.inner.reports.subscribe()))
    }

    async fn delete(&self, session: &SessionId) -> Result<(), HostError> {
        self.enter(Call::Delete).await?;
        self.add(session, Line::Deleted)?;
        let deleted = SessionEvent::Deleted;
        self.inner.report(Report::Session(session.clone(), deleted));
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

/// A child exists when it was made. Any other session is somebody's, and exists.
fn exists(session: &SessionId, lines: &[Line]) -> bool {
    let is_child = session.as_str().starts_with("ses_");
    let made = lines
        .iter()
        .any(|line| matches!(line, Line::Created { .. }));
    let deleted = lines.iter().any(|line| matches!(line, Line::Deleted));
    (made || !is_child) && !deleted
}

fn said(id: &str, role: Role, parts: Vec<Part<'static>>) -> Message<'static> {
    Message {
        id: Some(MessageId::new(id.to_owned())),
        role,
        finished: true,
        compaction: None,
        parts,
    }
}

fn spoken(text: &str) -> Part<'static> {
    Part::Text(Text::new(text.to_owned()))
}

/// Timers and clocks round differently; nothing happens before its time.
async fn sleep_until(clock: &dyn Clock, due: Moment) {
    loop {
        let left = due.since(clock.now());
        if left.is_zero() {
            return;
        }
        time::sleep(left.max(Duration::from_millis(1))).await;
    }
}

fn unreachable(error: io::Error) -> HostError {
    HostError::Unreachable(error.to_string())
}
