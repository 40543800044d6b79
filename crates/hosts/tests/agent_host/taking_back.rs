//! An agent that has not got something that it was told in the middle of its work.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use asyncagents_core::{
    agent::Kind,
    id::{PostId, TaskId},
    notify,
    port::{Host, Notice},
    question::{Answered, Reply},
};
use asyncagents_hosts::agent::{
    Ask, Asked, AskedCall, Connection, EventSender, Message, OpenSession, SessionOpened, TurnEnd,
    TurnStop, Wire, WireError, WireEvent,
};
use asyncagents_testkit::plain;
use tokio::sync::watch;

use crate::{
    talking::question,
    world::{World, child, ended, until},
};

/// It works at its first prompt until it is stopped, and queues what it is told meanwhile.
#[derive(Clone, Default)]
struct Queueing(Arc<State>);

#[derive(Default)]
struct State {
    said: Mutex<Vec<String>>,
    /// What it asks at its first prompt, and what came of that.
    asks: Mutex<Option<Ask>>,
    answered: watch::Sender<bool>,
    queued: Mutex<Vec<PostId>>,
    stopped: watch::Sender<bool>,
    told: watch::Sender<usize>,
}

struct Process {
    agent: Queueing,
    opened: SessionOpened,
    /// A process that says nothing more is one that has ended.
    events: EventSender,
}

#[async_trait]
impl Wire for Queueing {
    async fn start(
        &self,
        _: &OpenSession,
        events: EventSender,
    ) -> Result<Box<dyn Connection>, WireError> {
        let opened = SessionOpened {
            id: "theirs".to_owned(),
            found: Default::default(),
            process: None,
            forks: false,
        };
        Ok(Box::new(Process {
            agent: self.clone(),
            opened,
            events,
        }))
    }
}

#[async_trait]
impl Connection for Process {
    fn session(&self) -> &SessionOpened {
        &self.opened
    }

    async fn prompt(&self, message: &Message) -> Result<TurnEnd, WireError> {
        let state = &self.agent.0;
        let is_first = {
            let mut said = state.said.lock().expect("not poisoned");
            said.push(message.text());
            said.len() == 1
        };
        let ask = state.asks.lock().expect("not poisoned").take();
        if let Some(ask) = ask {
            self.events.send(WireEvent::Asked(ask));
        }
        let stop = if is_first {
            let _ = state.stopped.subscribe().wait_for(|stopped| *stopped).await;
            TurnStop::Cancelled
        } else {
            TurnStop::Finished
        };
        Ok(TurnEnd { stop, usage: None })
    }

    async fn steer(&self, message: &Message) -> Result<bool, WireError> {
        let post = message.id.clone().expect("a post");
        let state = &self.agent.0;
        state.queued.lock().expect("not poisoned").push(post);
        state.told.send_modify(|told| *told += 1);
        Ok(true)
    }

    async fn cancel(&self) {
        self.agent.0.stopped.send_replace(true);
    }

    fn take_untold(&self) -> Vec<PostId> {
        std::mem::take(&mut self.agent.0.queued.lock().expect("not poisoned"))
    }

    /// It has no place for words.
    fn reply(&self, _: &str, _: &Reply) -> bool {
        self.agent.0.answered.send_replace(true);
        false
    }

    async fn close(&self) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stopped_agent_has_not_got_is_told_with_the_next_prompt() {
    let agent = Queueing::default();
    let world = World::new(Default::default()).driving(agent.clone());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), "Count the files");
    host.prompt(&session, prompt).await.expect("it is taken");
    until("it is prompted", || {
        !agent.0.said.lock().expect("not poisoned").is_empty()
    })
    .await;
    let mut told = agent.0.told.subscribe();
    // Whoever is told the second one has said of the first that it is told.
    for (n, words) in [(1, "the colour is blue"), (2, "the number is nine")] {
        let message = notify::Message {
            visible: words.to_owned(),
            hidden: String::new(),
        };
        let id = task.message(n);
        let notice = Notice { id, message };
        host.deliver(&session, notice).await.expect("it is taken");
        let is_there = |told: &usize| *told == n as usize;
        told.wait_for(is_there).await.expect("it is there");
    }
    host.abort(&session).await.expect("it stops");

    let prompt = plain::prompt(task.prompt(1), "And its opposite");
    host.prompt(&session, prompt).await.expect("it is taken");
    ended(&host, &session, &task.prompt(1)).await;
    let said = agent.0.said.lock().expect("not poisoned").clone();
    assert_eq!(said.len(), 2, "{said:?}");
    for words in [
        "the colour is blue",
        "the number is nine",
        "And its opposite",
    ] {
        assert_eq!(said[1].matches(words).count(), 1, "{said:?}");
    }
}

/// Whoever rejects something says why once. The agent hears it, also if our process dies before it can.
#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_a_rejection_survive_us() {
    let agent = Queueing::default();
    let call = AskedCall {
        tool: "bash".to_owned(),
        kind: Some(Kind::Run),
        target: "make it".to_owned(),
        is_exact: true,
        also: Vec::new(),
        is_ours: false,
        details: String::new(),
    };
    *agent.0.asks.lock().expect("not poisoned") = Some(Ask {
        id: "1".to_owned(),
        what: Asked::Call(call),
    });
    let world = World::new(Default::default()).driving(agent.clone());
    let (host, task) = (world.host(), TaskId::from_random(1));
    let session = child(&world, &task).await;
    let prompt = plain::prompt(task.prompt(0), "Make it");
    host.prompt(&session, prompt).await.expect("it is taken");
    let (name, _) = question(&host, &session, &task.prompt(0)).await;
    let text = Some("use the mock".to_owned());
    let taken = host.answer(&session, &name, Reply::Reject { text }).await;
    assert_eq!(taken, Ok(Answered::Taken));
    let mut answered = agent.0.answered.subscribe();
    let heard = answered.wait_for(|answered| *answered).await;
    drop(heard.expect("it is there"));
    world.until_kept(&session, "use the mock").await;
    world.restart().await;

    ended(&world.host(), &session, &task.prompt(0)).await;
    let said = agent.0.said.lock().expect("not poisoned").clone();
    let [_, after] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert_eq!(after.matches("use the mock").count(), 1, "{after}");
}
