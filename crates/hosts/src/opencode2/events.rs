//! What OpenCode's events mean to a task.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use asyncagents_core::{
    digest::digest,
    id::SessionId,
    port::{Clock, HostEvents, Report, SessionEvent},
    progress::Observation,
    question::Question,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    both::{
        json::or_default,
        session_model::SessionModel,
        usage::{self, Tokens},
    },
    connection::Signal,
};

use super::{
    activity::{Activity, End},
    capabilities::Capabilities,
    questions,
    retry::Retry,
    wire::{self, Form, Permission, Problem},
};

/// The kinds of events that mean something to us.
pub const EVENTS: &[&str] = &[
    "session.deleted",
    "session.inbox.enqueued",
    "session.inbox.delivered",
    "session.execution.started",
    "session.execution.succeeded",
    "session.execution.failed",
    "session.execution.interrupted",
    "session.step.started",
    "session.step.ended",
    "session.step.failed",
    "session.text.delta",
    "session.reasoning.delta",
    "session.tool.input.started",
    "session.tool.input.delta",
    "session.tool.called",
    "session.tool.progress",
    "session.tool.success",
    "session.tool.failed",
    "session.retry.scheduled",
    "session.compaction.started",
    "session.compaction.delta",
    "session.compaction.ended",
    "permission.asked",
    "permission.replied",
    "form.created",
    "form.replied",
    "form.cancelled",
];

/// So many calls whose names are known wait for their input, at most.
const CALLS: usize = 4_096;

/// An event: its kind, and what it is about.
#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "or_default")]
    data: About,
}

/// What events are about, as far as we read it.
#[derive(Debug, Default, Deserialize)]
struct About {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(rename = "assistantMessageID")]
    message: Option<String>,
    #[serde(rename = "inboxID")]
    inbox: Option<String>,
    error: Option<Problem>,
    reason: Option<String>,
    /// Of a call, a permission or a form.
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
    tokens: Option<Tokens>,
    cost: Option<f64>,
    /// When the next attempt is made.
    #[serde(default, deserialize_with = "wire::known_or_none")]
    at: Option<f64>,
    /// Of a step: the model that is asked.
    #[serde(default, deserialize_with = "wire::known_or_none")]
    model: Option<SessionModel>,
    #[serde(rename = "requestID")]
    request: Option<String>,
    action: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    save: Vec<String>,
    metadata: Option<Value>,
    form: Option<Form>,
}

/// The events of one OpenCode as reports.
pub(super) struct EventStream {
    pub(super) signals: mpsc::UnboundedReceiver<Signal>,
    pub(super) activity: Arc<Activity>,
    pub(super) capabilities: Arc<Capabilities>,
    pub(super) clock: Arc<dyn Clock>,
    /// The names of tools that were called: the event of a call does not have it.
    pub(super) calls: HashMap<String, String>,
}

impl EventStream {
    /// What a signal means, if it means something.
    fn report(&mut self, signal: Signal) -> Option<Report> {
        let event: Event = match signal {
            Signal::Missed => {
                self.activity.events_lost();
                self.capabilities.forget();
                return Some(Report::Missed);
            }
            Signal::Event(text) => serde_json::from_str(text.get())
                .inspect_err(|error| tracing::debug!(%error, "ignoring malformed event"))
                .ok()?,
        };
        let about = event.data;
        let of_form = || about.form.as_ref().and_then(|form| form.session.as_deref());
        let session: SessionId = about.session.as_deref().or_else(of_form)?.into();
        let meaning = self.meaning(&session, &event.kind, about)?;
        Some(Report::Session(session, meaning))
    }

    fn meaning(&mut self, session: &SessionId, kind: &str, about: About) -> Option<SessionEvent> {
        let (activity, now) = (self.activity.clone(), self.clock.now());
        activity.event(session, now);
        Some(match kind {
            "session.inbox.enqueued" | "session.inbox.delivered" => {
                activity.admitted(session, &about.inbox?);
                return None;
            }
            "session.execution.started" => {
                activity.started(session, now);
                SessionEvent::Alive
            }
            "session.execution.succeeded"
            | "session.execution.failed"
            | "session.execution.interrupted" => {
                activity.ended(session, end(kind, about), now);
                SessionEvent::Idle
            }
            "session.step.started" => {
                activity.asked(session, about.model.as_ref().map(SessionModel::name));
                SessionEvent::Alive
            }
            "session.retry.scheduled" => {
                let retry = about.retry();
                let is_long = retry.long_wait(None, now).is_some();
                activity.retries(session, retry, now);
                // Whether another model is asked meanwhile is for the runtime to say.
                if is_long {
                    SessionEvent::Idle
                } else {
                    SessionEvent::Alive
                }
            }
            "session.deleted" => {
                activity.deleted(session);
                SessionEvent::Deleted
            }
            "session.tool.input.started" => {
                self.name_call(about.id?, about.name?);
                SessionEvent::Alive
            }
            "session.tool.called" => self.called(about),
            "session.step.ended" => stepped(true, about),
            "session.step.failed" => stepped(false, about),
            "permission.asked" => asked(questions::of_permission(&about.permission()?)),
            "form.created" => asked(questions::of_form(&about.form?)),
            "permission.replied" => answered(about.request?),
            "form.replied" | "form.cancelled" => answered(about.id?),
            kind if EVENTS.contains(&kind) => SessionEvent::Alive,
            _ => return None,
        })
    }

    fn name_call(&mut self, call: String, tool: String) {
        if self.calls.len() >= CALLS {
            self.calls.clear();
        }
        self.calls.insert(call, tool);
    }

    /// A tool is called. If its name was missed, the call is counted when the session is inspected.
    fn called(&mut self, about: About) -> SessionEvent {
        let call = about.id.unwrap_or_default();
        let Some(tool) = about.name.or_else(|| self.calls.remove(&call)) else {
            return SessionEvent::Alive;
        };
        let input = about.input.unwrap_or_default().to_string();
        let what = Observation::ToolCalled {
            call: digest(&[&tool, &input]),
            tool,
        };
        // Models may use the name of a call again in another message.
        let message = about.message.unwrap_or_default();
        let key = format!("{message}.{call}");
        SessionEvent::Observed { key, what }
    }
}

impl About {
    fn retry(self) -> Retry {
        Retry {
            at: self.at,
            error: self.error,
        }
    }

    fn permission(self) -> Option<Permission> {
        Some(Permission {
            id: self.id?,
            action: self.action?,
            resources: self.resources,
            save: self.save,
            metadata: self.metadata,
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

/// How an execution ended, if it did not go well.
fn end(kind: &str, about: About) -> Option<End> {
    match kind {
        "session.execution.failed" => Some(End::Failed {
            why: wire::reason(about.error.as_ref()),
            by_model: about.error.as_ref().is_some_and(Problem::is_about_model),
        }),
        "session.execution.interrupted" => Some(End::Interrupted {
            reason: about.reason.unwrap_or_default(),
        }),
        _ => None,
    }
}

/// A model has answered, or failed to and used something.
fn stepped(has_answered: bool, about: About) -> SessionEvent {
    let answer = usage::answer(about.tokens, about.cost);
    match about.message {
        Some(key) if has_answered || answer.tokens > 0 => {
            let what = Observation::Turned(answer);
            SessionEvent::Observed { key, what }
        }
        _ => SessionEvent::Alive,
    }
}

fn asked((id, question): (String, Question)) -> SessionEvent {
    SessionEvent::Observed {
        key: format!("{id}.asked"),
        what: Observation::Asked { id, question },
    }
}

fn answered(id: String) -> SessionEvent {
    SessionEvent::Observed {
        key: format!("{id}.answered"),
        what: Observation::Answered { id },
    }
}
