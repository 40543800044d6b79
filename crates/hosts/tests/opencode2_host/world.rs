//! A host, the OpenCode 2 it talks to, and the time.

use std::{sync::Arc, time::Duration};

use asyncagents_core::{
    id::{PostId, SessionId, TaskId},
    lifecycle::Standing,
    notify::Message,
    port::{Clock, Host, HostEvents, Inspection, NewSession, Notice, Prompt, Report, SessionEvent},
    progress::Observation,
    question::Question,
    task::Outcome,
};
use asyncagents_hosts::opencode2::{OpenCode2, Settings};
use asyncagents_testkit::{clock::SetClock, plain};
use tokio::time::timeout;

use crate::{build::Build, fake::FakeOpenCode};

pub(crate) const FOLDER: &str = "/home/user/project";
/// In seconds.
const DAY: i64 = 24 * 60 * 60;

pub(crate) struct World {
    pub(crate) opencode: FakeOpenCode,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) host: Arc<OpenCode2>,
    pub(crate) parent: SessionId,
    events: Box<dyn HostEvents>,
}

impl World {
    pub(crate) fn new(build: Build) -> Self {
        let clock = Arc::new(SetClock::start());
        let opencode = FakeOpenCode::new(build, clock.clone());
        let parent = opencode.parent(FOLDER);
        Self::begin(opencode, clock, parent, settings())
    }

    /// Another process of ours, which knows nothing of what was before. What happens until it
    /// listens is missed.
    pub(crate) fn restarted(self) -> Self {
        self.with_settings(settings())
    }

    /// OpenCode is opened again, a day later.
    pub(crate) fn another_day(self) -> Self {
        self.clock.set_forward(DAY);
        let began = Some(self.clock.now());
        self.with_settings(Settings {
            began,
            ..settings()
        })
    }

    pub(crate) fn with_settings(self, settings: Settings) -> Self {
        self.opencode.is_deaf();
        Self::begin(self.opencode, self.clock, self.parent, settings)
    }

    fn begin(
        opencode: FakeOpenCode,
        clock: Arc<SetClock>,
        parent: SessionId,
        settings: Settings,
    ) -> Self {
        let connection = Arc::new(opencode.clone());
        let host = OpenCode2::new(connection, clock.clone(), settings);
        let events = host.subscribe();
        Self {
            opencode,
            clock,
            host: Arc::new(host),
            parent,
            events,
        }
    }

    /// The next report. Whoever waits in vain for one is told so after a while.
    pub(crate) async fn next(&mut self) -> Report {
        let next = timeout(Duration::from_secs(20), self.events.next()).await;
        next.expect("something is reported").expect("the host")
    }

    /// What is reported of a session, until it is idle or asks.
    pub(crate) async fn until(&mut self, fits: impl Fn(&SessionEvent) -> bool) -> SessionEvent {
        loop {
            match self.next().await {
                Report::Session(_, event) if fits(&event) => return event,
                Report::Session(..) | Report::Missed => {}
            }
        }
    }

    pub(crate) async fn until_idle(&mut self) {
        self.until(|event| *event == SessionEvent::Idle).await;
    }

    /// What is asked next, with OpenCode's name for it.
    pub(crate) async fn until_asked(&mut self) -> (String, Question) {
        let is_question = |event: &SessionEvent| {
            let SessionEvent::Observed { what, .. } = event else {
                return false;
            };
            matches!(what, Observation::Asked { .. })
        };
        match self.until(is_question).await {
            SessionEvent::Observed {
                what: Observation::Asked { id, question },
                ..
            } => (id, question),
            other => panic!("no question: {other:?}"),
        }
    }

    pub(crate) async fn child(&self) -> SessionId {
        let made = self.host.create(self.new_session()).await;
        made.expect("a session")
    }

    pub(crate) fn new_session(&self) -> NewSession {
        plain::new_session(&task(), &self.parent)
    }

    /// A child that was prompted.
    pub(crate) async fn at_work(&self, text: &str) -> SessionId {
        let session = self.child().await;
        let prompted = self.host.prompt(&session, prompt(text)).await;
        prompted.expect("it is taken");
        session
    }

    pub(crate) async fn inspect(&self, session: &SessionId) -> Inspection {
        let seen = self.host.inspect(session, &task().prompt(0)).await;
        seen.expect("it is known")
    }

    pub(crate) async fn standing(&self, session: &SessionId) -> Standing {
        self.inspect(session).await.standing
    }

    /// How a child has ended.
    pub(crate) async fn outcome(&self, session: &SessionId) -> Outcome {
        match self.standing(session).await {
            Standing::Done { outcome, .. } => outcome,
            Standing::ModelUnavailable(unavailable) => Outcome::Failed {
                why: unavailable.why,
            },
            other => panic!("it has not ended: {other:?}"),
        }
    }

    pub(crate) async fn is_told(&self, session: &SessionId, notice: &PostId) -> bool {
        let told = self.host.confirm(session, notice).await;
        told.expect("it is known")
    }

    /// The texts in a session's history, oldest first.
    pub(crate) fn texts(&self, session: &SessionId) -> Vec<String> {
        let messages = self
            .opencode
            .with(session.as_str(), |it| it.messages.clone());
        let messages = messages.expect("a session");
        let of_input = messages.iter().filter_map(|it| it["text"].as_str());
        of_input.map(str::to_owned).collect()
    }
}

fn settings() -> Settings {
    Settings {
        prefix: "asyncagents_".to_owned(),
        ..Settings::default()
    }
}

pub(crate) fn task() -> TaskId {
    TaskId::from_random(1)
}

pub(crate) fn prompt(text: &str) -> Prompt {
    plain::prompt(task().prompt(0), text)
}

pub(crate) fn notice(number: u32) -> Notice {
    Notice {
        id: task().notice(number),
        message: Message {
            visible: format!("✓ **Agent \"{number}\" finished.**\nTask Progress: 1/1"),
            hidden: "Use asyncagents_output to see agent responses.".to_owned(),
        },
    }
}
