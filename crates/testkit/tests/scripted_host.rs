//! The scripted host keeps what the port promises.
#![expect(clippy::expect_used, reason = "a test may panic; its helpers too")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    budget::Cost,
    id::{SessionId, TaskId},
    lifecycle::Standing,
    port::Host,
    question::Question,
};
use asyncagents_testkit::{
    clock::TokioClock,
    host_contract::{Abilities, Does, LAST_TURN, SCRIPT, Site, TOOL, host_contract},
    plain::{new_session, prompt},
    scripted_host::{LastTurn, Line, Script, ScriptedHost, Step, World},
};
use tokio::time;

/// A child that gets this asks for a permission.
const ASKS: &str = "Make the program";

/// A host in memory. Its children are worked out from the time, so they outlive it.
struct Scripted {
    world: World,
    clock: Arc<TokioClock>,
    host: Mutex<ScriptedHost>,
}

impl Scripted {
    fn new() -> Self {
        let (world, clock) = (World::in_memory(), Arc::new(TokioClock::start()));
        let host = ScriptedHost::new(script(), world.clone(), clock.clone());
        Self {
            world,
            clock,
            host: Mutex::new(host),
        }
    }

    fn get(&self) -> ScriptedHost {
        self.host.lock().expect("not poisoned").clone()
    }
}

#[async_trait]
impl Site for Scripted {
    fn abilities(&self) -> Abilities {
        Abilities {
            // So that a story about the runtime shows what was sent twice.
            keeps_posts_once: false,
            holds_notices: false,
            has_foreign_sessions: true,
            branches: None,
            asks_once: true,
            is_another_process: true,
        }
    }

    fn host(&self) -> Arc<dyn Host> {
        Arc::new(self.get())
    }

    async fn parent(&self) -> SessionId {
        let (host, task) = (self.get(), TaskId::from_random(99));
        let new = new_session(&task, &"main".into());
        let session = host.create(new).await.expect("a session");
        let prompt = prompt(task.prompt(0), SCRIPT[0].0);
        let id = prompt.id.clone();
        host.prompt(&session, prompt).await.expect("taken");
        let standing = async || host.inspect(&session, &id).await.expect("seen").standing;
        while standing().await == Standing::Working {
            time::sleep(Duration::from_millis(10)).await;
        }
        session
    }

    fn asks_for_permission_on(&self) -> &'static str {
        ASKS
    }

    async fn shown(&self, session: &SessionId) -> String {
        let lines = self.world.lines(session).expect("readable");
        let texts = lines.into_iter().map(|line| match line {
            Line::Inherited {
                preamble, context, ..
            } => format!("{preamble}\n{context}\n"),
            Line::Prompted { text, .. } => format!("{text}\n"),
            Line::Told {
                visible, hidden, ..
            } => format!("{visible}\n{hidden}\n"),
            _ => String::new(),
        });
        texts.collect()
    }

    async fn restart(&self) {
        let next = ScriptedHost::new(script(), self.world.clone(), self.clock.clone());
        *self.host.lock().expect("not poisoned") = next;
    }

    async fn restart_agent(&self) {
        self.get().restart().expect("written");
    }
}

fn script() -> Script {
    let mut script = Script::of([]);
    for (words, does) in SCRIPT {
        script = script.when(words, steps(*does));
    }
    let permission = Question::permission("May I make it?");
    let asks = [
        Step::Wait(Duration::from_millis(10)),
        Step::AskAndWait(permission),
        Step::Answer("made".to_owned()),
    ];
    script = script.when(ASKS, asks);
    let (_, Does::AnswerAfter(after, text)) = LAST_TURN else {
        return script;
    };
    script.with_last_turn(LastTurn {
        after,
        text: text.to_owned(),
        tokens: 50,
        cost: Cost(5),
    })
}

fn steps(does: Does) -> Vec<Step> {
    let moment = || Step::Wait(Duration::from_millis(10));
    let turn = || Step::Turn {
        tokens: 120,
        cost: Cost(12),
    };
    let call = || Step::Tool {
        name: TOOL.to_owned(),
        input: "{}".to_owned(),
    };
    let answer = |text: &str| Step::Answer(text.to_owned());
    match does {
        Does::Answer(text) => vec![moment(), turn(), answer(text)],
        Does::AnswerAfter(time, text) => vec![Step::Wait(time), turn(), answer(text)],
        Does::Fail(why) => vec![moment(), Step::Fail(why.to_owned())],
        Does::CallAndAnswer(text) => {
            vec![moment(), turn(), call(), moment(), turn(), answer(text)]
        }
        Does::CallAndHang => vec![moment(), turn(), call(), Step::Hang],
    }
}

#[tokio::test(start_paused = true)]
async fn the_scripted_host_keeps_the_promises_of_a_host() {
    host_contract(async || Scripted::new()).await;
}
