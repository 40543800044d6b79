//! Drives one session: sends its agent what it has not got, saves what happens, and ends its runs.

mod ask;
mod follow;
mod idle;
mod save;
mod start;

use std::{collections::HashMap, sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{Conversation, End, Entry, Filed, Stop},
    budget::Cost,
    id::{ModelName, OwnerId, PostId, SessionId},
    port::{Session, SessionEvent, WholeSession, is_driven_elsewhere},
};
use tokio::time;
use uuid::Uuid;

use self::{ask::OpenQuestion, follow::Telling};
use super::{
    Connection, EventReceiver, Message, TurnStop, drivers::Orders, host::Shared,
    journal::SessionError, message, turn::CostCounter,
};

/// How often a working session reports that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a session is left alone after its driver has failed, or its agent's process.
const RETRY_AFTER: Duration = Duration::from_secs(1);

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
    /// Whether a call was begun in the session that may have changed something.
    has_begun: bool,
    live: Option<Live>,
    /// How the newest turn ended, if this driver has seen that.
    over: Option<TurnStop>,
    /// Why it cannot go on.
    broken: Option<String>,
    crashes: u32,
    cost: CostCounter,
    /// What the session that this one begins with had cost: some agents go on with its sum.
    cost_of_base: Cost,
    /// What it has spent while it had no work.
    owed: Option<Cost>,
    /// Which model answers, as far as the agent has said.
    model: ModelName,
    /// What its window holds, as far as the agent has said.
    window: u64,
    /// The questions that are open, by our names for them.
    asked: HashMap<String, OpenQuestion>,
    reports: u64,
}

/// A process of the agent.
struct Live {
    connection: Arc<dyn Connection>,
    events: EventReceiver,
    /// What it is told in the middle of its work, until it says whether it has got that.
    telling: Option<Telling>,
    /// What it was told with the turn and in the middle of it, and the newest entry that it had got before
    /// each.
    told: Vec<(PostId, u64)>,
    /// It was told to stop, because its run has ended.
    is_cancelled: bool,
    /// The model that it has said while it had no work.
    said_model: Option<String>,
    /// Since when it has no work.
    idle_since: time::Instant,
}

impl Live {
    fn new(connection: Arc<dyn Connection>, events: EventReceiver) -> Self {
        Self {
            connection,
            events,
            telling: None,
            told: Vec::new(),
            is_cancelled: false,
            said_model: None,
            idle_since: time::Instant::now(),
        }
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
            Ok(whole)
        });
        let whole = claimed.await?;
        let conversation = whole.conversation();
        let mut driver = Self {
            cost_of_base: cost_of(whole.before.iter().flatten()),
            cost: CostCounter::new(Cost::default()),
            fork_of: whole.before.last().and_then(|base| agents_session(base)),
            model: whole.session.model.clone(),
            window: window(&whole.own),
            session: whole.session,
            shared,
            orders: std::mem::replace(orders, Orders::closed()),
            name,
            conversation: Conversation::default(),
            agents: None,
            process: None,
            posts: Vec::new(),
            sent: 0,
            has_begun: false,
            live: None,
            over: None,
            broken: None,
            crashes: 0,
            asked: HashMap::new(),
            owed: None,
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
            // Nothing is said to it that somebody has stopped already.
            if self.await_told().await? || self.take_commands().await? {
                continue;
            }
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
}

/// At a moment, if there is one.
async fn at(moment: Option<time::Instant>) {
    match moment {
        Some(moment) => time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// What the window held after the newest answer: most of it is read from the provider's cache.
fn window(entries: &[Filed]) -> u64 {
    let newest = entries.iter().rev().find_map(|filed| match &filed.entry {
        Entry::Answered { answer, .. } => Some(answer.usage.context()),
        _ => None,
    });
    newest.unwrap_or_default()
}

fn cost_of<'e>(entries: impl Iterator<Item = &'e Filed>) -> Cost {
    let costs = entries.filter_map(|filed| match &filed.entry {
        Entry::Answered { answer, .. } => answer.cost,
        _ => None,
    });
    costs.fold(Cost::default(), |sum, cost| sum + cost)
}

/// The agent's name for a session, of its entries.
fn agents_session(entries: &[Filed]) -> Option<String> {
    entries.iter().rev().find_map(|filed| match &filed.entry {
        Entry::AgentSession { id, .. } => Some(id.clone()),
        _ => None,
    })
}
