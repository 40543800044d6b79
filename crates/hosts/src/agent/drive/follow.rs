//! Follows an agent at work: what it says, asks and is told meanwhile.

use std::time::Duration;

use asyncagents_core::{
    agent::{End, Entry, Filed},
    port::SessionEvent,
    progress::Observation,
};
use futures_util::FutureExt;
use tokio::{sync::oneshot, task::JoinSet, time};

use super::{
    super::{
        Connection, EventReceiver, Message, TurnEnd, WireError, WireEvent,
        drivers::Command,
        journal::SessionError,
        message,
        turn::{Step, Turn},
    },
    Driver, HEARTBEAT, Live, at, idle,
};

/// How long an agent may take to stop its work.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it may take, after a turn, to say whether it was told something in it.
const TOLD_TIMEOUT: Duration = Duration::from_secs(10);

/// How many pieces of news are taken in before they are saved.
const TOGETHER: usize = 256;

/// Something that an agent is told in the middle of its work. It may say only later whether it has
/// got that: until then it must not be said again.
pub(super) struct Telling {
    /// The newest of the entries in it.
    until: u64,
    told: JoinSet<bool>,
}

impl Live {
    /// Ends the process. What it has said before can be taken still.
    fn end(self) -> EventReceiver {
        self.events
    }

    /// Begins to tell it the entries up to a number.
    fn tell(&mut self, until: u64, message: Message) {
        let connection = self.connection.clone();
        let mut told = JoinSet::new();
        // Where it cannot be told now, or has gone, it has not got it.
        told.spawn(async move { connection.steer(&message).await.unwrap_or(false) });
        self.telling = Some(Telling { until, told });
    }
}

impl Driver {
    /// Says something to the agent and follows it until it has done with that.
    pub(super) async fn turn(&mut self, said: Message, until: u64) -> Result<(), SessionError> {
        let Some(mut live) = self.live.take() else {
            return self.connect().await;
        };
        // It may be cancelled before it has got even this.
        live.told = said
            .id
            .iter()
            .map(|post| (post.clone(), self.sent))
            .collect();
        (self.sent, self.over, live.is_cancelled) = (until, None, false);
        let model = live.said_model.take().map(|model| model.as_str().into());
        let fresh = said.about_tokens();
        let model = model.unwrap_or(self.model.clone());
        let mut turn = Turn::begin(model, (self.window, fresh), until);
        if let Some(cost) = self.owed.take() {
            turn.costs(cost);
        }
        self.orders
            .activity
            .send_modify(|activity| activity.is_at_work = true);
        let mut heartbeat = time::interval_at(time::Instant::now() + HEARTBEAT, HEARTBEAT);
        // Some are told of something through the journal alone: their tasks run elsewhere.
        let store = self.shared.sessions.store.clone();
        let version = self.shared.sessions.version().await;
        let written = idle::written(store.clone(), Some(version));
        tokio::pin!(written);
        let mut steers = true;
        let mut aborted: Option<Abort> = None;
        let ended = {
            let connection = live.connection.clone();
            let prompt = connection.prompt(&said);
            tokio::pin!(prompt);
            // It is on its way before anything else is: an order to stop must not overtake it.
            let mut at_once = (&mut prompt).now_or_never();
            loop {
                if let Some(ended) = at_once.take() {
                    break ended;
                }
                let deadline = aborted.as_ref().map(|abort| abort.until);
                tokio::select! {
                    ended = &mut prompt => break ended,
                    event = live.events.recv() => {
                        let Some(event) = event else {
                            // The prompt says what has happened.
                            break (&mut prompt).await;
                        };
                        let mut events = vec![event];
                        while events.len() < TOGETHER && let Some(next) = live.events.try_recv() {
                            events.push(next);
                        }
                        let disobeys = disobeys(&events);
                        self.take(&mut turn, events, Some(&*connection)).await?;
                        if let Some(error) = disobeys {
                            break Err(error);
                        }
                    }
                    command = self.orders.commands.recv() => match command {
                        Some(Command::Look) => {
                            let steers = steers && aborted.is_none();
                            self.look(&mut live, steers).await?;
                        }
                        Some(Command::Abort(done)) => {
                            let until = time::Instant::now() + CANCEL_TIMEOUT;
                            connection.cancel().await;
                            let abort = aborted.get_or_insert(Abort { until, done: Vec::new() });
                            abort.done.push(done);
                        }
                        Some(Command::Reply(question, reply)) => {
                            self.reply(&*connection, &question, &reply).await?;
                            if steers && aborted.is_none() {
                                self.steer(&mut live);
                            }
                        }
                        None => return Err(SessionError::NotOurs),
                    },
                    () = &mut written => {
                        let version = self.shared.sessions.version().await;
                        written.set(idle::written(store.clone(), Some(version)));
                        let steers = steers && aborted.is_none();
                        self.look(&mut live, steers).await?;
                    }
                    (until, told) = told(&mut live.telling) => {
                        live.telling = None;
                        // Where it cannot be told now, it is told after the turn.
                        steers = told;
                        if steers {
                            self.sent = self.sent.max(until);
                            if aborted.is_none() {
                                self.steer(&mut live);
                            }
                        }
                    }
                    _ = heartbeat.tick() => {
                        // A process that was stopped finds out by this that another has taken over.
                        self.check_ours().await?;
                        // Else its silence counts: it may have been stopped, or wait for nothing.
                        if turn.has_open_calls() || self.asks() {
                            self.shared.report(&self.session.id, SessionEvent::Alive);
                        }
                    }
                    () = at(deadline) => {
                        let why = "it did not stop when it was told to".to_owned();
                        break Err(WireError::Gone(why));
                    }
                }
            }
        };
        let settled = self.settle(live, turn, ended, aborted).await;
        self.orders
            .activity
            .send_modify(|activity| activity.is_at_work = false);
        settled
    }

    /// Looks at what has come into the session.
    async fn look(&mut self, live: &mut Live, steers: bool) -> Result<(), SessionError> {
        self.catch_up().await?;
        if steers {
            self.steer(live);
        }
        if self.conversation.run().is_none() && !live.is_cancelled {
            // Somebody else has ended it.
            live.is_cancelled = true;
            live.connection.clone().cancel().await;
        }
        Ok(())
    }

    /// Takes in what is left of a turn that is over, and what its end means.
    async fn settle(
        &mut self,
        mut live: Live,
        mut turn: Turn,
        ended: Result<TurnEnd, WireError>,
        aborted: Option<Abort>,
    ) -> Result<(), SessionError> {
        let ended = match ended {
            // Its process ends before anything else: it may say more than can be saved.
            Err(WireError::Gone(_) | WireError::Disobeys(_)) => {
                let mut news = live.end();
                let rest = news.take_waiting();
                let ended = disobeys(&rest).map_or(ended, Err);
                self.take(&mut turn, rest, None).await?;
                (ended, None)
            }
            ended => {
                let rest = live.events.take_waiting();
                let connection = live.connection.clone();
                let disobeys = disobeys(&rest);
                self.take(&mut turn, rest, Some(&*connection)).await?;
                match disobeys {
                    Some(error) => (Err(error), None),
                    None => (ended, Some(live)),
                }
            }
        };
        let (ended, live) = ended;
        if aborted.is_some()
            && let Some(live) = &live
        {
            // The agent was stopped before it got these: the next prompt has them.
            let untold = live.connection.take_untold();
            let before = live.told.iter().filter(|(post, _)| untold.contains(post));
            let before = before.map(|(_, sent)| *sent).min();
            self.sent = self.sent.min(before.unwrap_or(u64::MAX));
        }
        let prices = self.shared.prices.clone();
        let steps = turn.end(ended.as_ref().ok(), self.sent, &*prices, &mut self.cost);
        self.carry_out(steps).await?;
        self.carry_out(turn.lose_calls()).await?;
        (self.model, self.window) = (turn.model.clone(), turn.window);
        self.close_questions();
        match ended {
            Ok(TurnEnd { stop, .. }) => {
                self.live = live.map(|live| Live {
                    idle_since: time::Instant::now(),
                    ..live
                });
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
                self.live = live;
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
        let unsent: Vec<Filed> = self.unsent().cloned().collect();
        if let Some(last) = unsent.last() {
            let message = message::message(&unsent);
            live.told
                .extend(message.id.clone().map(|post| (post, self.sent)));
            live.tell(last.seq, message);
        }
    }

    /// Waits until the agent has said whether it was told something in the turn before. One that does
    /// not say that is loaded anew: its history does. True if a command has come meanwhile.
    pub(super) async fn await_told(&mut self) -> Result<bool, SessionError> {
        let deadline = time::Instant::now() + TOLD_TIMEOUT;
        let mut has_come = false;
        loop {
            let live = self.live.as_mut().filter(|live| live.telling.is_some());
            let Some(live) = live.filter(|_| self.conversation.run().is_some()) else {
                return Ok(has_come);
            };
            tokio::select! {
                (until, is_told) = told(&mut live.telling) => {
                    live.telling = None;
                    if is_told {
                        self.sent = self.sent.max(until);
                    }
                }
                command = self.orders.commands.recv() => {
                    has_come = true;
                    self.idle_command(command).await?;
                }
                () = time::sleep_until(deadline) => self.live = None,
            }
        }
    }

    /// Takes in what has happened, and saves it.
    async fn take(
        &mut self,
        turn: &mut Turn,
        events: Vec<WireEvent>,
        connection: Option<&dyn Connection>,
    ) -> Result<(), SessionError> {
        let mut steps = Vec::new();
        for event in events {
            match event {
                WireEvent::Asked(ask) => {
                    // What has gone needs no answer.
                    if let Some(connection) = connection {
                        // What it asks about comes first.
                        self.carry_out(std::mem::take(&mut steps)).await?;
                        self.asked(ask, connection).await?;
                    }
                }
                WireEvent::Withdrawn(id) => self.withdrawn(&id),
                WireEvent::Alive => self.shared.report(&self.session.id, SessionEvent::Alive),
                event => {
                    if let WireEvent::Tool(news) = &event
                        && news.began
                    {
                        steps.extend(self.begins(&news.id).map(Step::File));
                    }
                    steps.extend(turn.take(event, &*self.shared.prices));
                }
            }
        }
        self.carry_out(steps).await
    }

    /// Before the first call of a session is made: from then on the session is not begun anew.
    pub(super) fn begins(&mut self, call: &str) -> Option<Entry> {
        let is_first = self.has_done_nothing();
        self.has_begun = true;
        is_first.then(|| Entry::ToolBegan {
            call: call.to_owned(),
        })
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
            if matches!(&what, Observation::ToolCalled { tool, .. } if launches(tool)) {
                let now = time::Instant::now();
                self.orders
                    .activity
                    .send_modify(|activity| activity.launched = Some(now));
            }
            let what = match what {
                // An answer would say that nothing is asked any more, and another call may be.
                Observation::Turned(_) if self.asks() => {
                    Observation::Counted(self.conversation.totals().clone())
                }
                what => what,
            };
            self.observe(what);
        }
        Ok(())
    }

    pub(super) fn observe(&mut self, what: Observation) {
        self.reports += 1;
        let key = format!("{} {}", self.name, self.reports);
        let event = SessionEvent::Observed { key, what };
        self.shared.report(&self.session.id, event);
    }
}

/// Whether this is what an agent calls our tool that launches tasks.
fn launches(tool: &str) -> bool {
    tool == "task" || tool.ends_with("_task")
}

/// Whether an agent has done what it may not do unasked.
fn disobeys(events: &[WireEvent]) -> Option<WireError> {
    events.iter().find_map(|event| match event {
        WireEvent::Disobeyed(why) => Some(WireError::Disobeys(why.clone())),
        _ => None,
    })
}

/// What an agent was told and whether it has got that, once it says so.
async fn told(telling: &mut Option<Telling>) -> (u64, bool) {
    match telling {
        Some(telling) => {
            let told = telling.told.join_next().await;
            let told = told.is_some_and(|told| told.unwrap_or(false));
            (telling.until, told)
        }
        None => std::future::pending().await,
    }
}

/// An abort that is under way, and who waits for it.
struct Abort {
    until: time::Instant,
    done: Vec<oneshot::Sender<()>>,
}
