//! What a session is told while it works, and when it has done.

use std::time::Duration;

use asyncagents_core::{
    answer::MessageState,
    id::{SessionId, TaskId},
    notify::Message,
    port::{Delivery, Host, Notice},
    request::{Caller, OutputRequest},
};
use asyncagents_scripted_model::{Gate, Reply, Script, When};
use serde_json::json;
use tokio::time;

use crate::{delegating::launch, harness::Harness};

/// It could say something of it only when it is prompted again, so it is not taken.
#[tokio::test]
async fn a_message_to_a_session_that_has_done_is_not_taken() {
    let script = Script::new().rule(When::always(), Reply::text("Done."));
    let harness = Harness::new(script).await;
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Go").await;
    harness.ended(&session, &prompt).await;
    let id = TaskId::from_random(7).message(9);
    let message = Notice {
        id: id.clone(),
        message: Message {
            visible: "left".to_owned(),
            hidden: String::new(),
        },
    };
    let delivered = harness.engine.deliver(&session, message).await;
    assert_eq!(delivered, Ok(Delivery::NotNow));
    assert_eq!(harness.engine.confirm(&session, &id).await, Ok(false));
    harness.close().await;
}

/// Whether the task of a session has been told what it was sent.
async fn is_delivered(harness: &Harness, session: &SessionId) -> bool {
    let Some(task) = harness.tasks(session).await.pop() else {
        return false;
    };
    let look = OutputRequest::new(task.id.as_str(), false, None).expect("a request");
    let report = harness.manager.output(&Caller::Person, look).await;
    let messages = report.expect("a report").messages;
    let mut told = messages.iter();
    // One that came before the child had begun goes with its prompt.
    let is_told = [MessageState::Delivered, MessageState::WithPrompt];
    told.any(|told| is_told.contains(&told.state))
}

/// A parent corrects its child with the tool for that; the child hears of it with its next step.
#[tokio::test]
async fn a_child_at_work_is_told_what_its_parent_has_to_say() {
    let gate = Gate::closed();
    let script = Script::new()
        .rule(
            When::turn(0).first("Child:\n"),
            Reply::call("read", json!({"path": "a.txt"})).behind(&gate),
        )
        .rule(
            When::turn(1).first("Child:\n").contains("Turn left"),
            Reply::text("I turned left."),
        )
        .rule(
            When::turn(0),
            Reply::call("asyncagents_task", launch("child", "Child:\nx", false)),
        )
        .rule(
            When::turn(1).capture("id", "(task_[0-9a-f]+)"),
            Reply::call(
                "asyncagents_message",
                json!({"task_id": "{{id}}", "text": "Turn left"}),
            ),
        )
        .rule(When::always(), Reply::text("ok"));
    let harness = Harness::new(script).await;
    harness.write("a.txt", "a crossing\n");
    let session = harness.begin("general").await;
    let prompt = harness.prompt(&session, "Delegate").await;
    // The parent's call is answered before the child is told.
    let told = async {
        while !is_delivered(&harness, &session).await {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    let told = time::timeout(Duration::from_secs(60), told).await;
    told.expect("told within a minute");
    gate.open();
    harness.ended(&session, &prompt).await.said();
    let after = harness.bodies("a crossing");
    let told: usize = after
        .iter()
        .map(|body| body.matches("Turn left").count())
        .sum();
    assert_eq!((after.len(), told), (1, 1), "{after:?}");
    harness.close().await;
}
