//! OpenCode keeps what the port promises of a host.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use asyncagents_core::{id::SessionId, port::Host};
use asyncagents_hosts::opencode::{OpenCode, Settings};
use asyncagents_testkit::{
    clock::SetClock,
    host_contract::{Abilities, Does, SCRIPT, Site, host_contract},
};

use crate::{
    fake::FakeOpenCode,
    message::{agent, said, text, user},
    playing::{ASK_PERMISSION, PlayingOpenCode},
    world::as_messages,
};

/// An OpenCode and the process of ours that talks to it.
struct Talking {
    opencode: PlayingOpenCode,
    clock: Arc<SetClock>,
    host: Mutex<Arc<OpenCode>>,
}

impl Talking {
    fn new() -> Self {
        let clock = Arc::new(SetClock::start());
        let opencode = PlayingOpenCode::new(FakeOpenCode::new(clock.clone()));
        let host = Mutex::new(connect(&opencode, &clock));
        Self {
            opencode,
            clock,
            host,
        }
    }
}

fn connect(opencode: &PlayingOpenCode, clock: &Arc<SetClock>) -> Arc<OpenCode> {
    let settings = Settings {
        prefix: "asyncagents_".to_owned(),
        began: None,
    };
    let connection = Arc::new(opencode.clone());
    Arc::new(OpenCode::new(connection, clock.clone(), settings))
}

#[async_trait]
impl Site for Talking {
    fn abilities(&self) -> Abilities {
        Abilities {
            // OpenCode gives messages names of its own.
            keeps_posts_once: false,
            holds_notices: false,
            has_foreign_sessions: false,
            branches: Some(as_messages(None, &[])),
            asks_once: true,
            is_another_process: true,
        }
    }

    fn host(&self) -> Arc<dyn Host> {
        self.host.lock().expect("not poisoned").clone()
    }

    async fn parent(&self) -> SessionId {
        let fake = &self.opencode.opencode;
        let parent = fake.parent();
        let (prompt, Does::Answer(answer)) = SCRIPT[0] else {
            panic!("a parent is answered");
        };
        fake.add(&parent, user(prompt));
        fake.add(&parent, agent(vec![text(answer)]));
        parent
    }

    fn asks_for_permission_on(&self) -> &'static str {
        ASK_PERMISSION
    }

    async fn shown(&self, session: &SessionId) -> String {
        let shown = self.opencode.opencode.model_sees(session);
        let texts: Vec<String> = shown.iter().map(said).collect();
        texts.join("\n")
    }

    async fn restart(&self) {
        *self.host.lock().expect("not poisoned") = connect(&self.opencode, &self.clock);
    }

    async fn restart_agent(&self) {
        self.opencode.restart();
    }
}

#[tokio::test(start_paused = true)]
async fn opencode_keeps_the_promises_of_a_host() {
    host_contract(async || Talking::new()).await;
}
