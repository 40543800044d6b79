//! A session whose agent has no work: it waits, and its process ends after a while.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    agent::End,
    budget::Cost,
    port::{SessionEvent, Store},
    question::Reply,
};
use tokio::time;

use super::{
    super::{WireEvent, drivers::Command, journal::SessionError},
    Driver, HEARTBEAT, Live, at,
    save::check_driver,
};

/// How often a session looks at what was written, at most.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// For how long a process without work is kept: a follow-up mostly comes at once or much later.
const LINGER: Duration = Duration::from_secs(3);

/// How long an agent may take to end in order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

impl Driver {
    /// Waits for something to do, and lets go of the process after a while. True when the driver may
    /// end.
    pub(super) async fn rest(&mut self) -> Result<bool, SessionError> {
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

    /// Waits for a command, or until the journal has changed since a version, and lets go of the
    /// process after a while: it can be started again, and needs much memory. False if nothing has
    /// come and there is no process any more.
    pub(super) async fn idle(&mut self, version: Option<i64>) -> Result<bool, SessionError> {
        let store = self.shared.sessions.store.clone();
        let written = written(store, version);
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
                () = drained(&mut self.live, &mut self.owed) => {}
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

    /// Does what was ordered until now. True if something was.
    pub(super) async fn take_commands(&mut self) -> Result<bool, SessionError> {
        let mut has_come = false;
        while let Ok(command) = self.orders.commands.try_recv() {
            has_come = true;
            self.idle_command(Some(command)).await?;
        }
        Ok(has_come)
    }

    pub(super) async fn idle_command(
        &mut self,
        command: Option<Command>,
    ) -> Result<(), SessionError> {
        match command {
            None => Err(SessionError::NotOurs),
            Some(Command::Abort(done)) => {
                self.finish(End::Aborted).await?;
                let _ = done.send(());
                Ok(())
            }
            // It does not wait for the answer any more, but there may be words in it.
            Some(Command::Reply(question, reply)) => self.tell_later(&question, &reply).await,
            Some(Command::Look) => Ok(()),
        }
    }
}

/// Waits until the journal has changed since a version, if one is given.
pub(super) async fn written(store: Arc<dyn Store>, version: Option<i64>) {
    match version {
        Some(version) => {
            time::sleep(LOOK_INTERVAL).await;
            store.changed_since(version).await;
        }
        None => std::future::pending().await,
    }
}

/// Takes in what an agent says while it has no work. Nobody follows that: what it asks for is not
/// permitted.
async fn drained(live: &mut Option<Live>, owed: &mut Option<Cost>) {
    let Some(live) = live else {
        return std::future::pending().await;
    };
    while let Some(event) = live.events.recv().await {
        match event {
            WireEvent::Asked(ask) => {
                let reject = Reply::Reject { text: None };
                live.connection.reply(&ask.id, &reject);
            }
            WireEvent::Spent(cost) => *owed = Some(owed.unwrap_or_default() + cost),
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
