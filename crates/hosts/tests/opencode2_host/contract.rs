//! OpenCode 2 keeps what the port promises of a host.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use asyncagents_core::{
    fork::{Mode, Plan},
    id::SessionId,
    port::Host,
};
use asyncagents_hosts::opencode2::{OpenCode2, Settings};
use asyncagents_testkit::{
    clock::SetClock,
    host_contract::{Abilities, Does, SCRIPT, Site, host_contract},
};
use serde_json::{Value, json};

use crate::{build::Build, fake::FakeOpenCode, working::ASK_PERMISSION, world::FOLDER};

/// An OpenCode and the process of ours that talks to it.
struct Talking {
    opencode: FakeOpenCode,
    host: Mutex<Arc<OpenCode2>>,
}

impl Talking {
    fn new(build: Build) -> Self {
        let opencode = FakeOpenCode::new(build, Arc::new(SetClock::start()));
        let host = Mutex::new(connect(&opencode));
        Self { opencode, host }
    }
}

fn connect(opencode: &FakeOpenCode) -> Arc<OpenCode2> {
    let settings = Settings {
        prefix: "asyncagents_".to_owned(),
        folder: Some(FOLDER.to_owned()),
        ..Settings::default()
    };
    let clock = opencode.clock.clone();
    Arc::new(OpenCode2::new(Arc::new(opencode.clone()), clock, settings))
}

#[async_trait]
impl Site for Talking {
    fn abilities(&self) -> Abilities {
        Abilities {
            keeps_posts_once: true,
            holds_notices: true,
            branches: Some(Plan {
                mode: Mode::Messages,
                ..Plan::default()
            }),
            asks_once: true,
            is_another_process: true,
            ..Abilities::default()
        }
    }

    fn host(&self) -> Arc<dyn Host> {
        self.host.lock().expect("not poisoned").clone()
    }

    async fn parent(&self) -> SessionId {
        let parent = self.opencode.parent(FOLDER);
        let (prompt, Does::Answer(answer)) = SCRIPT[0] else {
            panic!("a parent is answered");
        };
        let asked = json!({"id": self.opencode.next_id("msg"), "type": "user", "text": prompt,
            "time": {"created": 1}});
        let answer = json!({"id": self.opencode.next_id("msg"), "type": "assistant",
            "agent": "build", "finish": "stop", "time": {"created": 2, "completed": 3},
            "model": {"providerID": "fake", "id": "fake-1"},
            "content": [{"type": "text", "text": answer}]});
        self.opencode
            .with(parent.as_str(), |it| it.messages.extend([asked, answer]));
        parent
    }

    fn asks_for_permission_on(&self) -> &'static str {
        ASK_PERMISSION
    }

    async fn shown(&self, session: &SessionId) -> String {
        let messages = self
            .opencode
            .with(session.as_str(), |it| it.messages.clone());
        let messages = messages.expect("a session");
        let said = |it: &Value| {
            let pieces = it["content"].as_array().into_iter().flatten();
            let pieces = pieces.filter_map(|piece| piece["text"].as_str());
            let texts = it["text"].as_str().into_iter().chain(pieces);
            texts.collect::<Vec<_>>().join("\n")
        };
        messages.iter().map(said).collect::<Vec<_>>().join("\n")
    }

    async fn restart(&self) {
        self.opencode.is_deaf();
        *self.host.lock().expect("not poisoned") = connect(&self.opencode);
    }

    async fn restart_agent(&self) {
        self.opencode.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn opencode_2_keeps_the_promises_of_a_host() {
    host_contract(async || Talking::new(Build::measured())).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_of_opencode_2_keeps_the_promises_of_a_host() {
    host_contract(async || Talking::new(Build::release())).await;
}

/// One that has some of what later releases have.
#[tokio::test(start_paused = true)]
async fn an_early_release_of_opencode_2_keeps_the_promises_of_a_host() {
    host_contract(async || Talking::new(Build::v2_0_18())).await;
}
