//! What OpenCode's events mean to a task.

use std::sync::Arc;

use async_trait::async_trait;
use asyncagents_core::{
    digest::digest,
    id::SessionId,
    port::{Clock, HostEvents, Report, SessionEvent},
    progress::Observation,
};
use tokio::sync::mpsc;

use crate::{both::usage, connection::Signal};

use super::{
    activity::Activity,
    questions,
    wire::{Event, Part, Properties},
};

/// The kinds of events that mean something to us.
pub const EVENTS: &[&str] = &[
    "session.status",
    "session.idle",
    "session.error",
    "session.deleted",
    "message.updated",
    "message.part.updated",
    "message.part.delta",
    "permission.asked",
    "permission.replied",
    "question.asked",
    "question.replied",
    "question.rejected",
];

/// The events of one OpenCode as reports.
pub(super) struct EventStream {
    pub(super) signals: mpsc::UnboundedReceiver<Signal>,
    pub(super) activity: Arc<Activity>,
    pub(super) clock: Arc<dyn Clock>,
}

impl EventStream {
    /// What a signal means, if it means something.
    fn report(&self, signal: Signal) -> Option<Report> {
        let event: Event = match signal {
            Signal::Missed => {
                self.activity.events_lost();
                return Some(Report::Missed);
            }
            Signal::Event(text) => serde_json::from_str(text.get())
                .inspect_err(|error| tracing::debug!(%error, "ignoring malformed event"))
                .ok()?,
        };
        let session = session(&event)?;
        let meaning = self.meaning(&session, &event)?;
        Some(Report::Session(session, meaning))
    }

    fn meaning(&self, session: &SessionId, event: &Event) -> Option<SessionEvent> {
        let (activity, now) = (&self.activity, self.clock.now());
        activity.event(session, now);
        let about = &event.properties;
        Some(match event.kind.as_str() {
            "session.status" => match about.status.as_ref()?.kind.as_str() {
                // What follows is `session.idle`.
                "idle" => return None,
                // Whether another model is asked meanwhile is for the runtime to say.
                "retry" if about.status.as_ref()?.long_wait(now).is_some() => {
                    activity.idle(session);
                    SessionEvent::Idle
                }
                _ => {
                    activity.busy(session, now);
                    SessionEvent::Alive
                }
            },
            "session.idle" => {
                activity.idle(session);
                SessionEvent::Idle
            }
            "session.error" => {
                activity.ended(session, about.error.as_ref()?.end());
                SessionEvent::Idle
            }
            "session.deleted" => {
                activity.deleted(session);
                SessionEvent::Deleted
            }
            "message.part.updated" => seen(&about.part.as_ref()?.part),
            "message.updated" | "message.part.delta" => SessionEvent::Alive,
            "permission.asked" | "question.asked" => asked(about)?,
            "permission.replied" | "question.replied" | "question.rejected" => {
                let id = about.request.clone()?;
                let key = format!("{id}.answered");
                let what = Observation::Answered { id };
                SessionEvent::Observed { key, what }
            }
            _ => return None,
        })
    }
}

#[async_trait]
impl HostEvents for EventStream {
    async fn next(&mut self) -> Option<Report> {
        loop {
            let signal = self.signals.recv().await?;
            if let Some(report) = self.report(signal) {
                return Some(report);
            }
        }
    }
}

/// The session that an event is about.
fn session(event: &Event) -> Option<SessionId> {
    let about = &event.properties;
    let info = about.info.as_ref();
    let deleted = || info.and_then(|info| info.id.as_ref());
    let id = match event.kind.as_str() {
        "session.deleted" => about.session.as_ref().or_else(deleted)?,
        _ => {
            let of_part = || about.part.as_ref().and_then(|part| part.session.as_ref());
            let of_info = || info.and_then(|info| info.session.as_ref());
            about.session.as_ref().or_else(of_part).or_else(of_info)?
        }
    };
    Some(id.as_str().into())
}

/// What a part that has changed means.
fn seen(part: &Part) -> SessionEvent {
    let key = part.id.clone();
    if let (Some(tool), Some(state)) = (&part.tool, &part.state) {
        if !state.has_begun() {
            return SessionEvent::Alive;
        }
        let what = Observation::ToolCalled {
            tool: tool.clone(),
            call: digest(&[tool, &state.input.to_string()]),
        };
        return SessionEvent::Observed { key, what };
    }
    if part.kind == "step-finish" {
        let what = Observation::Turned(usage::answer(part.tokens, part.cost));
        return SessionEvent::Observed { key, what };
    }
    SessionEvent::Alive
}

fn asked(about: &Properties) -> Option<SessionEvent> {
    let (id, question) = questions::question(about)?;
    Some(SessionEvent::Observed {
        key: format!("{id}.asked"),
        what: Observation::Asked { id, question },
    })
}
