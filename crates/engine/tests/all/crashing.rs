//! The process dies at the worst moment, and another one goes on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use asyncagents_core::{
    agent::{ToolOutcome, ToolSpec},
    id::SessionId,
    port::{Delegation, Host},
    task::{Outcome, State},
    tool_set::{self, ToolRequest},
};
use asyncagents_scripted_model::{Fault, Reply, Script, When};
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    delegating::launch,
    harness::{Harness, Plan},
};

/// Dead processes are found out soon.
fn short_lease() -> Plan {
    let mut plan = Plan::default();
    plan.runtime.lease = Duration::from_millis(300);
    plan
}

#[tokio::test]
async fn killed_while_the_model_answers() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "a.txt", "content": "a"})),
        )
        .rule(When::turn(1).times(1), Reply::fault(Fault::Hang))
        .rule(When::turn(1), Reply::text("Done."));
    let harness = Harness::with(script, short_lease()).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Write").await;
    harness.model.wait_for(|requests| requests.len() == 2).await;
    let harness = harness.killed().await;
    harness.until_free(&session).await;
    assert_eq!(
        harness.engine.go_on(&session).await.expect("there"),
        Some(prompt.clone())
    );
    assert_eq!(harness.ended(&session, &prompt).await.said(), "Done.");
    assert_eq!(
        harness.model.requests().len(),
        3,
        "only the answer that was lost is asked for again"
    );
    harness.close().await;
}

/// A tool that changes something and takes its time.
struct Slow {
    begun: Arc<Notify>,
    calls: Arc<AtomicUsize>,
}

#[async_trait]
impl Delegation for Slow {
    fn tools(&self) -> Vec<ToolSpec> {
        tool_set::specs("asyncagents_")
    }

    async fn call(&self, _: &SessionId, _: &str, _: ToolRequest) -> ToolOutcome {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.begun.notify_one();
        std::future::pending().await
    }
}

#[tokio::test]
async fn killed_while_a_tool_runs() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::call("write", json!({"path": "before.txt", "content": "1"}))
                .and_call("asyncagents_clear", json!({}))
                .and_call("write", json!({"path": "after.txt", "content": "2"})),
        )
        .rule(
            When::always().last("Interrupted: the process ended while this tool was running"),
            Reply::text("I check first."),
        );
    let (begun, calls) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let plan = Plan {
        delegation: Some(Arc::new(Slow {
            begun: begun.clone(),
            calls: calls.clone(),
        })),
        ..short_lease()
    };
    let harness = Harness::with(script, plan).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Do three things").await;
    begun.notified().await;
    assert_eq!(
        (
            harness.read("before.txt").as_str(),
            harness.read("after.txt").as_str()
        ),
        ("1", "")
    );
    // Whoever was first would have to be run again to see this change.
    harness.write("before.txt", "changed by someone else");
    let harness = harness.killed().await;
    harness.until_free(&session).await;
    harness.engine.go_on(&session).await.expect("there");
    assert_eq!(
        harness.ended(&session, &prompt).await.said(),
        "I check first."
    );
    assert_eq!(calls.load(Ordering::SeqCst), 1, "it was not run again");
    assert_eq!(
        harness.read("before.txt"),
        "changed by someone else",
        "nor was what had ended"
    );
    assert_eq!(
        harness.read("after.txt"),
        "2",
        "what had not begun was done"
    );
    harness.close().await;
}

#[tokio::test]
async fn a_task_of_a_dead_process_is_taken_over_and_ends_once() {
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call("write", json!({"path": "child.txt", "content": "c"})),
        )
        .rule(
            When::turn(1).first("Child:\n").times(1),
            Reply::fault(Fault::Hang),
        )
        .rule(When::turn(1).first("Child:\n"), Reply::text("child done"))
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("child", "Child:\nx", false)),
        )
        .rule(
            When::always().contains("Agent \"child\" finished"),
            Reply::text("heard"),
        )
        .rule(When::always(), Reply::text("waiting"));
    let plan = short_lease();
    let harness = Harness::with(script, plan).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Delegate").await;
    let hangs = |requests: &[asyncagents_scripted_model::Recorded]| {
        requests
            .iter()
            .any(|request| request.turn() == 1 && request.text().starts_with("Child:"))
    };
    harness.model.wait_for(hangs).await;
    let harness = harness.killed().await;
    harness.until_free(&session).await;
    harness.engine.go_on(&session).await.expect("there");
    assert_eq!(harness.ended(&session, &prompt).await.said(), "heard");
    let task = harness.tasks(&session).await.pop().expect("a task");
    let State::Ended { outcome, .. } = &task.state else {
        panic!("{task:?}");
    };
    assert_eq!(*outcome, Outcome::Completed);
    let last = harness
        .model
        .requests()
        .into_iter()
        .max_by_key(|request| request.body.len());
    let told = last.expect("a request").text();
    assert_eq!(
        told.matches("Agent \"child\" finished").count(),
        1,
        "{told}"
    );
    harness.close().await;
}

#[tokio::test]
async fn a_session_that_a_living_process_drives_is_left_to_it() {
    let script = Script::new()
        .rule(
            When::turn(0),
            Reply::text("first").delay(Duration::from_millis(600)),
        )
        .rule(When::always(), Reply::text("second"));
    let harness = Harness::new(script).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Once").await;
    harness.model.wait_for(|requests| requests.len() == 1).await;
    let other = harness.beside().await;
    assert!(other.engine.is_busy(&session).await.expect("seen"));
    assert!(!harness.engine.is_busy(&session).await.expect("seen"));
    // Whoever looks, however often, takes nothing away.
    for _ in 0..5 {
        other.engine.go_on(&session).await.expect("there");
        other.engine.inspect(&session, &prompt).await.expect("seen");
    }
    assert_eq!(harness.ended(&session, &prompt).await.said(), "first");
    assert_eq!(
        harness.model.requests().len(),
        1,
        "it was asked and paid for once"
    );
    // When it is done, the other may go on.
    assert!(!other.engine.is_busy(&session).await.expect("seen"));
    let prompt = other.prompt(&session, "Again").await;
    assert_eq!(other.ended(&session, &prompt).await.said(), "second");
    other.close().await;
    harness.close().await;
}

#[tokio::test]
async fn a_driver_that_was_overtaken_writes_no_more() {
    let script = Script::new()
        .rule(
            When::turn(0).times(1),
            Reply::text("late").delay(Duration::from_millis(900)),
        )
        .rule(When::turn(0), Reply::text("first"));
    let plan = short_lease();
    let harness = Harness::with(script, plan).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Once").await;
    harness.model.wait_for(|requests| requests.len() == 1).await;
    // Its worker is gone, its driver is not: a process that was asleep.
    let sleeper = harness.engine.clone();
    let other = harness.asleep().await;
    other.until_free(&session).await;
    other.engine.go_on(&session).await.expect("there");
    assert_eq!(other.ended(&session, &prompt).await.said(), "first");
    // The answer of the one that was overtaken comes, and is not written down.
    let all = |requests: &[asyncagents_scripted_model::Recorded]| {
        requests.iter().all(|request| request.status != 0)
    };
    other.model.wait_for(all).await;
    sleeper.stop().await;
    let messages = other.engine.messages(&session).await.expect("read");
    assert_eq!(messages.messages().len(), 2);
    other.close().await;
}

#[tokio::test]
async fn a_newer_prompt_ends_the_run_before_it() {
    let script = Script::new()
        .rule(When::always().last("Second"), Reply::text("second"))
        .rule(When::always().times(1), Reply::fault(Fault::Hang));
    let plan = short_lease();
    let harness = Harness::with(script, plan).await;
    let session = harness.begin("general").await;
    let first = harness.prompt(&session, "First").await;
    harness.model.wait_for(|requests| requests.len() == 1).await;
    let harness = harness.killed().await;
    harness.until_free(&session).await;
    let second = harness.prompt(&session, "Second").await;
    assert_eq!(harness.ended(&session, &second).await.said(), "second");
    let ended = harness.ended(&session, &first).await;
    assert_eq!(ended.error(), "a newer prompt took its place");
    harness.close().await;
}

#[tokio::test]
async fn an_abort_ends_the_run_at_once_and_the_session_goes_on() {
    let script = Script::new()
        .rule(
            When::turn(0).first("Hang").times(1),
            Reply::fault(Fault::Hang),
        )
        .rule(When::always(), Reply::text("still here"));
    let harness = Harness::new(script).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Hang").await;
    harness.model.wait_for(|requests| requests.len() == 1).await;
    harness.engine.abort(&session).await.expect("stopped");
    let ended = harness.ended(&session, &prompt).await;
    assert_eq!(ended.outcome, Outcome::Cancelled);
    let prompt = harness.prompt(&session, "Again").await;
    assert_eq!(harness.ended(&session, &prompt).await.said(), "still here");
    harness.close().await;
}
