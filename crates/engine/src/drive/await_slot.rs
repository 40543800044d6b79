//! Waits until a command may run.

use std::time::Duration;

use asyncagents_core::{
    agent::{Call, Kind},
    port::SessionEvent,
    progress::Observation,
};
use tokio::time;

use super::{Driven, Driver};
use crate::{Live, command_slots::CommandSlot};

/// A wait that is shorter is not worth telling.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Whether a call may be run now.
pub(super) enum Turn {
    /// It may, as long as this is held.
    Now(Option<CommandSlot>),
    /// The time for the task was up first.
    TimeIsUp,
}

impl Driver {
    /// Waits for a slot if the call is a command.
    pub(super) async fn await_slot(&self, call: &Call, kind: Kind) -> Driven<Turn> {
        if kind != Kind::Run {
            return Ok(Turn::Now(None));
        }
        let time_is_up = async {
            match self.work_deadline() {
                Some(until) => time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let turn = async {
            tokio::select! {
                biased;
                slot = self.take_slot(call) => Turn::Now(slot),
                () = time_is_up => Turn::TimeIsUp,
            }
        };
        self.unless_halted(turn).await
    }

    /// Takes a slot, and tells if that takes long.
    async fn take_slot(&self, call: &Call) -> Option<CommandSlot> {
        let slot = self.shared.commands.take(self.depth);
        tokio::pin!(slot);
        if let Ok(slot) = time::timeout(TOLD_AFTER, &mut slot).await {
            return slot;
        }
        self.show(Live::CommandQueued);
        self.tell_of_slot(call, Observation::CommandQueued);
        let slot = slot.await;
        self.tell_of_slot(call, Observation::CommandStarted);
        slot
    }

    fn tell_of_slot(&self, call: &Call, what: Observation) {
        let queued = matches!(what, Observation::CommandQueued);
        let word = if queued { "queued" } else { "started" };
        // A model may use a name for calls again, in another answer.
        let answer = self.conversation.newest_answer();
        let key = format!("{}.{answer}.{}.{word}", self.session.id, call.id);
        let event = SessionEvent::Observed { key, what };
        self.shared.report(&self.session.id, event);
    }
}
