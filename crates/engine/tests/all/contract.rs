//! The engine keeps what the port promises of a host.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    fork::{Mode, Plan as ForkPlan, Preset},
    id::SessionId,
    port::Host,
};
use asyncagents_engine::Unanswered;
use asyncagents_scripted_model::{Fault, Reply, Script, When};
use asyncagents_testkit::host_contract::{Abilities, Does, SCRIPT, Site, TOOL, host_contract};
use serde_json::json;

use crate::harness::{Harness, Plan};

const NOTES: &str = "the plants are dry";

/// A child that gets this asks for a permission.
const ASKS: &str = "Make the program";

/// A process with its engine, and the one after it.
struct Process(Mutex<Option<Harness>>);

impl Process {
    async fn start() -> Self {
        let mut plan = Plan {
            settings: Box::new(|settings| {
                settings.permissions.ask = vec!["write".parse().expect("a rule")];
                settings.unanswered = Unanswered::Wait;
            }),
            ..Plan::default()
        };
        plan.runtime.lease = Duration::from_millis(300);
        let harness = Harness::with(script(), plan).await;
        harness.write("notes.md", NOTES);
        Self(Mutex::new(Some(harness)))
    }

    fn with<T>(&self, look: impl FnOnce(&Harness) -> T) -> T {
        let harness = self.0.lock().expect("not poisoned");
        look(harness.as_ref().expect("a process"))
    }
}

#[async_trait]
impl Site for Process {
    fn abilities(&self) -> Abilities {
        Abilities {
            keeps_posts_once: true,
            holds_notices: false,
            has_foreign_sessions: true,
            branches: Some(ForkPlan {
                limits: Preset::Exact.limits(),
                mode: Mode::Messages,
                ..ForkPlan::default()
            }),
            // It gives a task its last turn itself.
            asks_once: false,
            is_another_process: false,
        }
    }

    fn host(&self) -> Arc<dyn Host> {
        self.with(|harness| Arc::new(harness.engine.clone()))
    }

    async fn parent(&self) -> SessionId {
        let harness = self.0.lock().expect("not poisoned").take();
        let harness = harness.expect("a process");
        let session = harness.begin("general").await;
        let prompt = harness.prompt(&session, SCRIPT[0].0).await;
        harness.ended(&session, &prompt).await;
        *self.0.lock().expect("not poisoned") = Some(harness);
        session
    }

    fn asks_for_permission_on(&self) -> &'static str {
        ASKS
    }

    async fn shown(&self, _: &SessionId) -> String {
        let requests = self.with(|harness| harness.model.requests());
        requests.last().expect("a request").text()
    }

    async fn restart(&self) {
        let harness = self.0.lock().expect("not poisoned").take();
        let next = harness.expect("a process").killed().await;
        *self.0.lock().expect("not poisoned") = Some(next);
    }
}

fn script() -> Script {
    let write = json!({"path": "made.txt", "content": "made"});
    let mut script = Script::new()
        .rule(When::always().last(ASKS), Reply::call("write", write))
        .rule(When::always().contains(ASKS), Reply::text("made"));
    let call = || Reply::call(TOOL, json!({"path": "notes.md"}));
    for (words, does) in SCRIPT {
        let asked = When::always().last(*words);
        // What is read is the last that the model is shown.
        let has_read = When::always().last(NOTES).contains(*words);
        script = match *does {
            Does::Answer(text) => script.rule(asked, Reply::text(text)),
            Does::AnswerAfter(time, text) => script.rule(asked, Reply::text(text).delay(time)),
            Does::Fail(why) => script.rule(asked, Reply::status(400).message(why)),
            Does::CallAndAnswer(text) => {
                script.rule(asked, call()).rule(has_read, Reply::text(text))
            }
            Does::CallAndHang => script
                .rule(asked, call())
                .rule(has_read, Reply::fault(Fault::Hang)),
        };
    }
    script
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_keeps_the_promises_of_a_host() {
    host_contract(Process::start).await;
}
