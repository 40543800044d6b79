//! Starts a process of the agent in which its session is open.

use std::{path::PathBuf, sync::Arc, time::Duration};

use asyncagents_core::{
    agent::{End, Entry, Filed},
    id::PostId,
};
use tokio::time;

use super::{
    super::{
        OpenSession, START_TIMEOUT, Which, WireError,
        drivers::{Command, Orders},
        events,
        journal::SessionError,
        turn::CostCounter,
    },
    Driver, Live, RETRY_AFTER,
};

/// How much longer it is waited for, so that who starts it can say what is missing.
const START_GRACE: Duration = Duration::from_secs(10);

/// How often a process may end by itself in one turn: each time what it did is paid for again.
const MOST_CRASHES: u32 = 3;

impl Driver {
    /// Makes sure that there is a process with the session open.
    pub(super) async fn connect(&mut self) -> Result<(), SessionError> {
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
        let mut replies = Vec::new();
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
                        Some(Command::Reply(question, reply)) => replies.push((question, reply)),
                        // What has come is looked at when it has started.
                        Some(Command::Look) => {}
                        None => return Err(SessionError::NotOurs),
                    },
                }
            }
        };
        self.orders = orders;
        for (question, reply) in replies {
            // Nobody waits for the answer any more, but there may be words in it.
            self.tell_later(&question, &reply).await?;
        }
        let Some(started) = started else {
            self.finish(End::Aborted).await?;
            if let Some(done) = aborted {
                let _ = done.send(());
            }
            return Ok(());
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
                let before = self.cost_of_base + self.conversation.totals().cost;
                self.cost = CostCounter::new(before);
                let session = Entry::AgentSession {
                    id: opened.id,
                    process: opened.process,
                    forks: opened.forks,
                };
                self.save(vec![session]).await?;
            }
            Err(error @ WireError::NotStarted(_)) => self.broken = Some(error.to_string()),
            // Nothing was said to it yet. What one process could not, the next one may: two that
            // begin at once get in each other's way, and one that was killed may not be quite gone.
            Err(error) => self.crashed(error.to_string()),
        }
        Ok(())
    }

    /// Loads the session, or begins it if the agent has lost it before anything was done in it.
    async fn load_or_begin(&self, first: Which) -> Result<Live, WireError> {
        if self.crashes > 0 {
            time::sleep(RETRY_AFTER).await;
        }
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
            has_answered: self.conversation.totals().turns > 0,
            ends: self.process.clone(),
            look_for: self.post_ids(),
        };
        let (sender, events) = events();
        let started = self.shared.wire.start(&open, sender);
        let started = time::timeout(START_TIMEOUT + START_GRACE, started).await;
        let late = || {
            let seconds = (START_TIMEOUT + START_GRACE).as_secs();
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

    pub(super) fn has_done_nothing(&self) -> bool {
        let totals = self.conversation.totals();
        totals.turns == 0 && totals.by_tool.is_empty() && !self.has_begun
    }

    /// The newest entry that the agent has answered to.
    fn conversation_seen(&self) -> u64 {
        let posts = self.posts.first();
        posts.map_or(self.sent, |first| first.seq.saturating_sub(1))
    }

    pub(super) fn crashed(&mut self, why: String) {
        self.live = None;
        self.over = None;
        self.crashes += 1;
        tracing::warn!(session = %self.session.id, why, "the agent's process has ended");
        if self.crashes >= MOST_CRASHES {
            self.broken = Some(why);
        }
    }
}
