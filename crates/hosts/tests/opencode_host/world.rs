//! A host, the OpenCode it talks to, and the time.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    fork::{Mode, Plan},
    id::{AgentName, PostId, SessionId, TaskId},
    moment::Moment,
    notify::Message,
    port::{Clock, Host, HostEvents, Inheritance, NewSession, Notice, Prompt, Report},
};
use asyncagents_hosts::opencode::{OpenCode, Settings};
use asyncagents_testkit::{clock::SetClock, plain};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::fake::FakeOpenCode;

/// In seconds.
const DAY: i64 = 24 * 60 * 60;

pub(crate) struct World {
    pub(crate) opencode: FakeOpenCode,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) host: OpenCode,
    events: Box<dyn HostEvents>,
    began: Option<Moment>,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(SetClock::start());
        Self::begin(FakeOpenCode::new(clock.clone()), clock, None)
    }

    /// Where sessions that nobody works in are not set to work.
    pub(crate) fn letting_sleep() -> Self {
        Self::new().another_day()
    }

    /// Another process of ours, which knows nothing of what was before.
    pub(crate) fn restarted(self) -> Self {
        Self::begin(self.opencode, self.clock, self.began)
    }

    /// OpenCode is opened again, a day later.
    pub(crate) fn another_day(self) -> Self {
        self.clock.set_forward(DAY);
        let began = Some(self.clock.now());
        Self::begin(self.opencode, self.clock, began)
    }

    fn begin(opencode: FakeOpenCode, clock: Arc<SetClock>, began: Option<Moment>) -> Self {
        let settings = Settings {
            prefix: "asyncagents_".to_owned(),
            began,
        };
        let connection = Arc::new(opencode.clone());
        let host = OpenCode::new(connection, clock.clone(), settings);
        let events = host.subscribe();
        Self {
            opencode,
            clock,
            host,
            events,
            began,
        }
    }

    /// What is made of something that happens.
    pub(crate) async fn hears(&mut self, event: Value) -> Report {
        self.opencode.emit(&event.to_string());
        self.next().await
    }

    /// The next report. Whoever waits in vain for one is told so after a while.
    pub(crate) async fn next(&mut self) -> Report {
        let next = timeout(Duration::from_secs(20), self.events.next()).await;
        next.expect("something is reported").expect("the host")
    }

    /// Whether the host is gone for good.
    pub(crate) async fn is_over(&mut self) -> bool {
        let next = timeout(Duration::from_secs(20), self.events.next()).await;
        next.expect("an end").is_none()
    }

    /// What is reported after something of which nothing should be.
    pub(crate) async fn hears_past(&mut self, ignored: &str) -> Report {
        self.opencode.emit(ignored);
        self.hears(idle(&"ses_next".into())).await
    }

    pub(crate) async fn hears_busy(&mut self, session: &SessionId) {
        self.hears(busy(session)).await;
    }

    pub(crate) async fn hears_idle(&mut self, session: &SessionId) {
        self.hears(idle(session)).await;
    }

    /// A child that was set to work and has begun.
    pub(crate) async fn working_child(&mut self) -> (SessionId, PostId) {
        let parent = self.opencode.parent();
        let child = self.host.create(new_session(&parent)).await;
        let child = child.expect("a session");
        let prompt = prompt();
        let sent = self.host.prompt(&child, prompt.clone()).await;
        sent.expect("it is taken");
        self.hears_busy(&child).await;
        (child, prompt.id)
    }
}

pub(crate) fn busy(session: &SessionId) -> Value {
    json!({"type": "session.status", "properties": {
        "sessionID": session.as_str(), "status": {"type": "busy"},
    }})
}

pub(crate) fn idle(session: &SessionId) -> Value {
    json!({"type": "session.idle", "properties": {"sessionID": session.as_str()}})
}

pub(crate) fn task() -> TaskId {
    TaskId::from_random(7)
}

pub(crate) fn new_session(parent: &SessionId) -> NewSession {
    plain::new_session(&task(), parent)
}

pub(crate) fn for_agent(agent: &str, parent: &SessionId) -> NewSession {
    NewSession {
        agent: AgentName::from(agent),
        ..new_session(parent)
    }
}

pub(crate) fn prompt() -> Prompt {
    plain::prompt(task().prompt(0), "count the files")
}

pub(crate) fn inheritance() -> Inheritance {
    Inheritance {
        id: task().inheritance(),
        preamble: "You are a background agent.".to_owned(),
        context: "<inherited_context>".to_owned(),
    }
}

pub(crate) fn notice() -> Notice {
    Notice {
        id: task().notice(0),
        message: Message {
            visible: "Agent finished.".to_owned(),
            hidden: "Use asyncagents_output.".to_owned(),
        },
    }
}

/// A fork, asked for in a message.
pub(crate) fn plan(asked_in: Option<&str>) -> Plan {
    Plan {
        asked_in: asked_in.map(str::to_owned),
        ..Plan::default()
    }
}

/// A fork as messages, within limits.
pub(crate) fn as_messages(asked_in: Option<&str>, limits: &[(&str, usize)]) -> Plan {
    let mut plan = Plan {
        mode: Mode::Messages,
        ..plan(asked_in)
    };
    for (key, value) in limits {
        let set = plan.limits.set(key, *value);
        set.expect("an allowed value");
    }
    plan
}
